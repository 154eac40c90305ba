// Makes a module: memory and values of its variables, and its kernels decoded.
#include "compiler/ptx/module.h"

#include "compiler/ptx/block.h"
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/parser.h"

#include <algorithm>

namespace firn::ptx {
namespace {

using Places = std::map<std::string, Place, std::less<>>;

Result allocate_variables(const Unit& unit, Program& program, Places& places) {
  for (const Variable& variable : unit.variables) {
    if (variable.space == Space::Shared) continue;
    std::string where = "line " + std::to_string(variable.line) + ": '" + variable.name + "' ";
    if (variable.is_external) return unsupported_error(where + "is declared, but not in this module");
    if (places.count(variable.name)) return model_error(where + "is declared twice");
    uint64_t address =
        program.memory.allocate(variable.name, static_cast<uint64_t>(variable.size), Memory::Contents::Zero);
    places[variable.name] = {variable.space, address, false};
    program.variables.emplace_back(variable.name, address);
    if (auto written = program.memory.write(address, variable.values.data(), variable.values.size());
        !written)
      return written;
  }
  return {};
}

// Variables may hold the addresses of others, in any order.
Result fill_addresses(const Unit& unit, Program& program, const Places& places) {
  for (const Variable& variable : unit.variables)
    for (const Variable::Address& address : variable.addresses) {
      auto found = places.find(address.name);
      if (found == places.end())
        return unsupported_error("line " + std::to_string(variable.line) + ": the address of '" +
                                 address.name + "', which is no variable of space global or const");
      uint64_t value = found->second.offset + static_cast<uint64_t>(address.offset);
      uint64_t at = places.find(variable.name)->second.offset + static_cast<uint64_t>(address.at);
      if (auto written = program.memory.write(at, &value, sizeof value); !written) return written;
    }
  return {};
}

} // namespace

Expected<Module> parse(std::string_view text) {
  auto unit = parse_unit(text);
  if (!unit) return unit.error();
  auto program = std::make_shared<Program>();
  Places places;
  if (auto done = allocate_variables(*unit, *program, places); !done) return done.error();
  if (auto done = fill_addresses(*unit, *program, places); !done) return done.error();
  for (const Variable& variable : unit->variables)
    if (variable.space == Space::Const) program->memory.mark_constant(places[variable.name].offset);
  for (const Function& function : unit->functions) {
    if (!function.is_entry || !function.is_defined) continue;
    Kernel kernel;
    if (auto done = Decoder(*unit, places, kernel).decode(function); !done) return done.error();
    program->kernels.push_back(std::move(kernel));
  }
  return Module(std::move(program));
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const Kernel& kernel : program_->kernels) names.push_back(kernel.name);
  return names;
}

uint64_t Module::variable(const std::string& name) const {
  for (const auto& [variable, address] : program_->variables)
    if (variable == name) return address;
  return 0;
}

Memory& Module::variables() const {
  return program_->memory;
}

} // namespace firn::ptx
