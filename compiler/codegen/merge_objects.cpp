// See merge_objects.h.
#include "compiler/codegen/merge_objects.h"

#include "compiler/support/diagnostic.h"

#include <elf.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace firn::codegen {
namespace {

constexpr uint8_t kTypeMask = 0xf;

bool is_of_type(const ObjectSymbol& symbol, uint8_t type) {
  return (symbol.info & kTypeMask) == type;
}

bool is_loaded(const ObjectSection& section) {
  return (section.flags & SHF_ALLOC) != 0;
}

// Linkers merge equal entries of such a section.
bool has_entries(const ObjectSection& section) {
  return (section.flags & SHF_MERGE) != 0 && (section.flags & SHF_STRINGS) == 0 && section.entry_bytes > 0 &&
         section.relocations.empty();
}

bool is_constant(const ObjectSection& section) {
  return is_loaded(section) && (section.flags & (SHF_WRITE | SHF_EXECINSTR)) == 0 &&
         section.relocations.empty();
}

// The place of an object's section in the merged one.
struct Place {
  size_t section = 0;
  uint64_t base = 0;
  std::vector<uint64_t> entries; // places of its entries, if these are merged
  uint64_t entry_bytes = 0;

  uint64_t of(uint64_t offset) const {
    if (entries.empty()) return base + offset;
    return entries.at(offset / entry_bytes) + offset % entry_bytes;
  }
};

class Merger {
public:
  explicit Merger(const MergeOptions& options) : options_(options) { merged_.symbols.emplace_back(); }

  RelocatableObject merge(const std::vector<const RelocatableObject*>& objects) {
    merged_.is_wide = objects[0]->is_wide;
    merged_.abi = objects[0]->abi;
    merged_.machine = objects[0]->machine;
    merged_.flags = objects[0]->flags;
    merged_.has_addends =
        std::all_of(objects.begin(), objects.end(), [](const auto* object) { return object->has_addends; });
    std::vector<std::vector<Place>> places;
    std::vector<std::vector<size_t>> symbols;
    for (const RelocatableObject* object : objects) {
      places.push_back(place_sections(*object));
      symbols.push_back(add_symbols(*object, places.back()));
    }
    for (size_t i = 0; i < objects.size(); ++i) add_relocations(*objects[i], places[i], symbols[i]);
    sort_symbols();
    return std::move(merged_);
  }

private:
  std::vector<Place> place_sections(const RelocatableObject& object) {
    std::vector<Place> places;
    for (const ObjectSection& section : object.sections) {
      auto [number, is_new] = find_section(section);
      if (!is_loaded(section))
        places.push_back(is_new ? append(number, section) : Place{number, 0, {}, 0});
      else if (has_entries(section) && merged_.has_addends)
        places.push_back(merge_entries(number, section));
      else
        places.push_back(is_constant(section) ? append_once(number, section) : append(number, section));
    }
    return places;
  }

  std::pair<size_t, bool> find_section(const ObjectSection& section) {
    auto renamed = options_.sections.find(section.name);
    const std::string& name = renamed == options_.sections.end() ? section.name : renamed->second;
    // Entries that relocations with addends in the section address by offset cannot move.
    const uint64_t flags = merged_.has_addends ? section.flags : section.flags & ~uint64_t{SHF_MERGE};
    auto [found, is_new] =
        numbers_.try_emplace({name, section.type, flags, section.entry_bytes}, merged_.sections.size());
    if (is_new) merged_.sections.push_back({name, section.type, flags, 1, section.entry_bytes, {}, {}});
    ObjectSection& merged = merged_.sections[found->second];
    merged.alignment = std::max(merged.alignment, section.alignment);
    return {found->second, is_new};
  }

  Place append(size_t number, const ObjectSection& section) {
    std::string& bytes = merged_.sections[number].bytes;
    if (!section.bytes.empty())
      while (bytes.size() % section.alignment) bytes.push_back('\0');
    Place place{number, bytes.size(), {}, 0};
    bytes += section.bytes;
    return place;
  }

  Place append_once(size_t number, const ObjectSection& section) {
    auto [found, is_new] = constants_.try_emplace({number, section.alignment, section.bytes});
    if (is_new) found->second = append(number, section);
    return found->second;
  }

  Place merge_entries(size_t number, const ObjectSection& section) {
    Place place{number, 0, {}, section.entry_bytes};
    std::string& bytes = merged_.sections[number].bytes;
    for (uint64_t at = 0; at < section.bytes.size(); at += section.entry_bytes) {
      std::string entry = section.bytes.substr(at, section.entry_bytes);
      auto [found, is_new] = entries_.try_emplace({number, std::move(entry)}, bytes.size());
      if (is_new) bytes += found->first.second;
      place.entries.push_back(found->second);
    }
    return place;
  }

  // Numbers of the object's symbols in the merged one.
  std::vector<size_t> add_symbols(const RelocatableObject& object, const std::vector<Place>& places) {
    std::vector<size_t> numbers = {0};
    for (size_t i = 1; i < object.symbols.size(); ++i)
      numbers.push_back(add_symbol(object.symbols[i], places));
    return numbers;
  }

  size_t add_symbol(ObjectSymbol symbol, const std::vector<Place>& places) {
    const Place* place = symbol.section < places.size() ? &places[symbol.section] : nullptr;
    if (is_of_type(symbol, STT_FILE)) return once(files_, symbol.name, symbol);
    if (place) {
      symbol.value = place->entries.empty() ? place->base + symbol.value : place->of(symbol.value);
      symbol.section = place->section;
      if (!place->entries.empty() && symbol.is_local() && !is_of_type(symbol, STT_SECTION)) {
        if (symbol.name.starts_with("$")) return 0; // says that data follows, for disassemblers of code
        return constant_symbol(std::move(symbol));
      }
    }
    if (is_of_type(symbol, STT_SECTION)) {
      if (merged_.has_addends) symbol.value = 0; // addends say where
      return once(section_symbols_, std::pair(symbol.section, symbol.value), symbol);
    }
    if (!symbol.is_local()) return global_symbol(std::move(symbol));
    if (auto renamed = options_.local_names.find(symbol.name); renamed != options_.local_names.end())
      symbol.name = renamed->second;
    return add(std::move(symbol));
  }

  size_t add(ObjectSymbol symbol) {
    merged_.symbols.push_back(std::move(symbol));
    return merged_.symbols.size() - 1;
  }

  template <class Map, class Key> size_t once(Map& map, const Key& key, const ObjectSymbol& symbol) {
    auto [found, is_new] = map.try_emplace(key, merged_.symbols.size());
    if (is_new) add(symbol);
    return found->second;
  }

  // Linkers move an entry together with its symbol.
  size_t constant_symbol(ObjectSymbol symbol) {
    symbol.name = ".LCPI" + std::to_string(constant_symbols_.size());
    return once(constant_symbols_, std::pair(symbol.section, symbol.value), symbol);
  }

  size_t global_symbol(ObjectSymbol symbol) {
    const std::string name = symbol.name;
    if (auto renamed = options_.local_names.find(name); renamed != options_.local_names.end()) {
      symbol.name = renamed->second;
      symbol.info = static_cast<uint8_t>(STB_LOCAL << 4 | (symbol.info & kTypeMask));
      symbol.other &= static_cast<uint8_t>(~0x3); // visibility
    }
    auto [found, is_new] = globals_.try_emplace(name, merged_.symbols.size());
    if (is_new) return add(std::move(symbol));
    if (symbol.section != kUndefined) {
      FIRN_CHECK(merged_.symbols[found->second].section == kUndefined, "two parts define '" + name + "'");
      merged_.symbols[found->second] = std::move(symbol);
    }
    return found->second;
  }

  void add_relocations(const RelocatableObject& object, const std::vector<Place>& places,
                       const std::vector<size_t>& symbols) {
    for (size_t i = 0; i < object.sections.size(); ++i)
      for (Relocation relocation : object.sections[i].relocations) {
        const ObjectSymbol& symbol = object.symbols.at(relocation.symbol);
        if (is_of_type(symbol, STT_SECTION) && merged_.has_addends) {
          const Place& target = places.at(symbol.section);
          relocation.addend = target.entries.empty()
                                  ? static_cast<int64_t>(target.base) + relocation.addend
                                  : static_cast<int64_t>(target.of(static_cast<uint64_t>(relocation.addend)));
        }
        relocation.offset = places[i].of(relocation.offset);
        relocation.symbol = symbols[relocation.symbol];
        merged_.sections[places[i].section].relocations.push_back(relocation);
      }
  }

  // Local symbols come first in a table.
  void sort_symbols() {
    std::vector<size_t> order(merged_.symbols.size()), numbers(merged_.symbols.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_partition(order.begin(), order.end(),
                          [&](size_t i) { return merged_.symbols[i].is_local(); });
    std::vector<ObjectSymbol> sorted;
    for (size_t i = 0; i < order.size(); ++i) {
      numbers[order[i]] = i;
      sorted.push_back(std::move(merged_.symbols[order[i]]));
    }
    merged_.symbols = std::move(sorted);
    for (ObjectSection& section : merged_.sections)
      for (Relocation& relocation : section.relocations) relocation.symbol = numbers[relocation.symbol];
  }

  const MergeOptions& options_;
  RelocatableObject merged_;
  std::map<std::tuple<std::string, uint32_t, uint64_t, uint64_t>, size_t> numbers_; // section numbers
  std::map<std::pair<size_t, std::string>, uint64_t> entries_;
  std::map<std::tuple<size_t, uint64_t, std::string>, Place> constants_;
  std::map<std::string, size_t> files_, globals_;
  std::map<std::pair<size_t, uint64_t>, size_t> section_symbols_, constant_symbols_;
};

RelocatableObject without_name(RelocatableObject object, const std::string& function) {
  for (ObjectSymbol& symbol : object.symbols)
    if (symbol.name.starts_with(function)) symbol.name.erase(0, function.size());
  return object;
}

} // namespace

RelocatableObject merge_objects(const std::vector<const RelocatableObject*>& objects,
                                const MergeOptions& options) {
  return Merger(options).merge(objects);
}

bool are_equal_but_for_names(RelocatableObject a, const std::string& function_a, RelocatableObject b,
                             const std::string& function_b) {
  return without_name(std::move(a), function_a) == without_name(std::move(b), function_b);
}

} // namespace firn::codegen
