// Programs of further entry functions.
#include "compiler/driver/entries.h"

#include "compiler/driver/variants.h"

#include <algorithm>

namespace firn::driver {
namespace {

std::string name_at(const std::vector<std::string>& names, size_t at, const char* fallback) {
  return at < names.size() && !names[at].empty() ? names[at] : fallback + std::to_string(at);
}

// Adds what one entry function has in common with others to the layouts of a compilation.
class SharedPlaces {
public:
  SharedPlaces(const CompileOptions& options, Compilation& c, const Function& entry)
      : options_(options), c_(c), entry_(entry), entries_(c.module->entries()),
        in_trainer_(is_in_trainer(entry)) {}

  Result add() {
    const Region& body = entry_.body();
    for (size_t i = 0; i < body.parameters().size(); ++i) {
      std::string name = name_at(entry_.parameter_names, i, "input");
      if (Result added = add_parameter(name, i); !added) return added;
    }
    for (size_t i = 0; in_trainer_ && i < body.results().size(); ++i) {
      std::string name = name_at(entry_.result_names, i, "output");
      if (entry_.updates_state(i) || is_external(name) || !others_return(name)) continue;
      if (Result added = place(c_.shared, Space::Output, name, body.results()[i].type()); !added)
        return added;
    }
    return {};
  }

private:
  using Space = kernel::Space;

  bool is_in_trainer(const Function& entry) const { return c_.has_trainer() && &entry != &c_.module->main(); }

  // Inputs of a training step stay from one of its functions to another, as a learning rate that is set once.
  Result add_parameter(const std::string& name, size_t index) {
    const Type& type = entry_.body().parameters()[index]->type();
    if (!entry_.is_state(index))
      return in_trainer_ && !is_external(name) ? place(c_.shared, Space::Input, name, type) : Result();
    if (c_.module->is_parameter(name)) return place(c_.parameters, Space::Parameters, name, type);
    if (c_.has_trainer() && !in_trainer_)
      return model_error("state '" + name + "' of @" + entry_.name() +
                         " is no parameter of the module, which has parameters and further functions");
    return entries_.size() > 1 ? place(c_.shared, Space::State, name, type) : Result();
  }

  bool is_external(const std::string& name) const {
    return std::find(options_.external.begin(), options_.external.end(), name) != options_.external.end();
  }

  bool others_return(const std::string& name) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Function* other) {
      return other != &entry_ && find(*other, Space::Output, name);
    });
  }

  // Functions before this one may have a tensor of that name.
  Result place(memory::SharedLayout& layout, Space space, const std::string& name, const Type& type) {
    for (const Function* entry : entries_) {
      if (entry == &entry_) break;
      const Type* known = find(*entry, space, name);
      if (known && *known != type)
        return model_error("'" + name + "' is " + type.to_string() + " in @" + entry_.name() + " and " +
                           known->to_string() + " in @" + entry->name());
    }
    layout.alignment = c_.target.buffer_alignment;
    layout.add(space, name, static_cast<int64_t>(type.at_bound().physical_byte_size()));
    return {};
  }

  // The type of a tensor of an entry function that is placed by its name; null: it has none.
  const Type* find(const Function& entry, Space space, const std::string& name) const {
    if (!is_state(space) && !is_in_trainer(entry)) return nullptr;
    const Region& body = entry.body();
    if (space == Space::Output) {
      for (size_t i = 0; i < body.results().size(); ++i)
        if (!entry.updates_state(i) && name_at(entry.result_names, i, "output") == name)
          return &body.results()[i].type();
      return nullptr;
    }
    for (size_t i = 0; i < body.parameters().size(); ++i)
      if (entry.is_state(i) == is_state(space) && name_at(entry.parameter_names, i, "input") == name)
        return &body.parameters()[i]->type();
    return nullptr;
  }

  const CompileOptions& options_;
  Compilation& c_;
  const Function& entry_;
  std::vector<Function*> entries_;
  const bool in_trainer_; // shares the arena of the functions beside @main
};

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

Result place_shared(const CompileOptions& options, Compilation& c) {
  for (const Function* entry : c.module->entries())
    if (Result placed = SharedPlaces(options, c, *entry).add(); !placed) return placed;
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
