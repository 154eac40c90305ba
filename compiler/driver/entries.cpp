// Programs of further entry functions.
#include "compiler/driver/entries.h"

#include "compiler/driver/variants.h"

namespace firn::driver {
namespace {

std::string state_name(const Function& entry, size_t parameter) {
  bool has_name = parameter < entry.parameter_names.size() && !entry.parameter_names[parameter].empty();
  return has_name ? entry.parameter_names[parameter] : "input" + std::to_string(parameter);
}

Result make_entry(const CompileOptions& options, Compilation& c, EntryPrograms& entry, Stages& stages) {
  const std::string& name = entry.function->name();
  auto plans = plan_entry(options, c, *entry.function);
  if (!plans) return plans.error();
  entry.plans = std::move(*plans);
  for (size_t cpu = 0; cpu < c.cpus.size(); ++cpu) {
    ProgramSource source = source_of(options, c, *entry.function, entry.plans, cpu);
    source.holder = &c.program;
    source.suffix = "." + name + (cpu > 0 ? "." + c.cpus[cpu].name : "");
    if (cpu > 0) source.arena.interface_of = &entry.program;
    auto made = make_program(source, stages);
    if (!made) return made.error();
    if (cpu == 0)
      entry.program = std::move(made->program);
    else
      entry.variants.push_back({c.cpus[cpu], std::move(made->program), made->own_weight_bytes});
  }
  return {};
}

} // namespace

Result place_states(Compilation& c) {
  std::vector<Function*> entries = c.module->entries();
  std::map<std::string, Type> types;
  for (const Function* entry : entries) {
    for (size_t i = 0; entries.size() > 1 && i < entry->body().parameters().size(); ++i) {
      if (!entry->is_state(i)) continue;
      std::string name = state_name(*entry, i);
      const Type& type = entry->body().parameters()[i]->type();
      auto [known, is_new] = types.emplace(name, type);
      if (!is_new && known->second != type)
        return model_error("state '" + name + "' is " + type.to_string() + " in @" + entry->name() + " and " +
                           known->second.to_string() + " in another function");
      c.states.add(name, static_cast<int64_t>(type.at_bound().physical_byte_size()));
    }
  }
  return {};
}

Result add_entries(const CompileOptions& options, Compilation& c, Stages& stages) {
  std::vector<Function*> functions = c.module->entries();
  c.entries.resize(functions.size() - 1);
  for (size_t i = 1; i < functions.size(); ++i) {
    c.entries[i - 1].function = functions[i];
    if (Result made = make_entry(options, c, c.entries[i - 1], stages); !made) return made;
  }
  return {};
}

} // namespace firn::driver
