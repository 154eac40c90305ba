// Makes one relocatable object of several that refer to each other.
#pragma once

#include "compiler/codegen/relocatable_object.h"

#include <map>
#include <string>
#include <vector>

namespace firn::codegen {

struct MergeOptions {
  // Sections that get another name, by their own.
  std::map<std::string, std::string> sections;
  // Functions that only the objects themselves call, by name, with the name that each gets as a local symbol.
  std::map<std::string, std::string> local_names;
};

// Sections of one name and kind follow each other in the order of the objects. Read-only constants that no
// relocation changes are stored once if their bytes are equal: by entry in sections that linkers merge, whole
// in others. Of sections that are not loaded, the first of a name is kept.
RelocatableObject merge_objects(const std::vector<const RelocatableObject*>& objects,
                                const MergeOptions& options);

// Whether two objects are equal but for the name of one function of each, with which other names may begin.
bool are_equal_but_for_names(RelocatableObject a, const std::string& function_a, RelocatableObject b,
                             const std::string& function_b);

} // namespace firn::codegen
