// See loaded_object.h.
#include "compiler/load/loaded_object.h"

#include "compiler/load/debuggers.h"
#include "compiler/load/elf_checks.h"
#include "compiler/load/graph_checks.h"
#include "compiler/load/link_context.h"

#include <llvm/ExecutionEngine/JITLink/EHFrameSupport.h>

#include <optional>

namespace firn::load {

namespace jitlink = llvm::jitlink;

// The object in memory, and who has been told about it: these forget it before it goes.
struct LoadedObject::Image {
  Linked linked;
  std::optional<DebuggerEntry> debugger;
  bool has_registered_frames = false;

  ~Image() {
    if (has_registered_frames)
      llvm::consumeError(jitlink::InProcessEHFrameRegistrar().deregisterEHFrames(linked.unwind_table));
  }
};

namespace {

Diagnostic refusal(const LoadOptions& options, const std::string& reason) {
  return usage_error("cannot load " + options.name + ": " + reason);
}

} // namespace

LoadedObject::LoadedObject(std::unique_ptr<Image> image) : image_(std::move(image)) {}
LoadedObject::LoadedObject(LoadedObject&& other) noexcept = default;
LoadedObject& LoadedObject::operator=(LoadedObject&& other) noexcept = default;
LoadedObject::~LoadedObject() = default;

Expected<LoadedObject> LoadedObject::load(std::span<const std::byte> object, const LoadOptions& options) {
  if (Result header = check_elf(object); !header) return refusal(options, header.error().message);
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  auto graph = jitlink::createLinkGraphFromObject(llvm::MemoryBufferRef(bytes, options.name));
  if (!graph) return refusal(options, llvm::toString(graph.takeError()));
  if (Result sound = check_graph(**graph); !sound) return refusal(options, sound.error().message);

  auto image = std::make_unique<Image>();
  Linked& linked = image->linked;
  jitlink::link(std::move(*graph), std::make_unique<LinkContext>(options.symbols, linked));
  if (!linked.failure.empty()) return refusal(options, linked.failure);
  if (!linked.unwind_table.empty()) {
    if (auto failed = jitlink::InProcessEHFrameRegistrar().registerEHFrames(linked.unwind_table))
      return refusal(options, llvm::toString(std::move(failed)));
    image->has_registered_frames = true;
  }
  if (options.visibility.debugger) image->debugger.emplace(object, linked.sections);
  if (options.visibility.perf) list_for_perf(linked.functions);
  return LoadedObject(std::move(image));
}

void* LoadedObject::symbol(std::string_view name) const {
  auto found = image_->linked.symbols.find(name);
  return found == image_->linked.symbols.end() ? nullptr : found->second;
}

} // namespace firn::load
