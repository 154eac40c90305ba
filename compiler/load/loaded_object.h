// Loads a relocatable ELF object into this process, without a linker and without files.
#pragma once

#include "compiler/load/visibility.h"
#include "compiler/support/diagnostic.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace firn::load {

// Addresses by the name of the symbol.
using SymbolTable = std::map<std::string, void*, std::less<>>;

struct LoadOptions {
  std::string name = "object"; // names the object in messages and in debuggers
  SymbolTable symbols;         // the only symbols that the object may use beside its own
  Visibility visibility;
};

// An object in memory, whose code can be called until the destructor unmaps it. Its pages are never writable
// and executable at once.
class LoadedObject {
public:
  // Fails with a usage error on what is no relocatable ELF object for this machine, on an object that is cut
  // off or has constructors, and on a symbol that neither the object nor `options` defines. The bytes of the
  // object may go afterwards.
  static Expected<LoadedObject> load(std::span<const std::byte> object, const LoadOptions& options);
  LoadedObject(LoadedObject&& other) noexcept;
  LoadedObject& operator=(LoadedObject&& other) noexcept;
  ~LoadedObject();

  // The address of a function or variable that the object defines and does not keep to its own file; null if
  // there is none.
  void* symbol(std::string_view name) const;

private:
  struct Image;
  explicit LoadedObject(std::unique_ptr<Image> image);
  std::unique_ptr<Image> image_;
};

} // namespace firn::load
