// See image_memory.h.
#include "compiler/load/image_memory.h"

#include "compiler/load/graph_checks.h"

#include <llvm/Support/Memory.h>
#include <llvm/Support/Process.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace firn::load {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::MemProt;

// Parts of the memory with one protection each, in the order of their addresses.
enum Region { kCode, kConstants, kVariables, kLargeConstants, kRegionCount };

constexpr int kProtection[kRegionCount] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE,
                                           PROT_READ};
constexpr uint64_t kMaxBytes = uint64_t{1} << 46; // sums of sizes below it do not overflow

Region region_of(const jitlink::Section& section) {
  if (has_protection(section, MemProt::Exec)) return kCode;
  if (has_protection(section, MemProt::Write)) return kVariables;
  return section.getName().starts_with(".lrodata") ? kLargeConstants : kConstants;
}

struct BlockOffset {
  jitlink::Block* block;
  uint64_t offset;
};

// Bytes [begin, end) of the memory.
struct Range {
  uint64_t begin = 0, end = 0;
};

struct Layout {
  std::vector<BlockOffset> blocks;
  std::array<Range, kRegionCount> regions; // begin at pages
  uint64_t bytes = 0;
};

llvm::Error failure(const std::string& text) {
  return llvm::make_error<llvm::StringError>(text, llvm::inconvertibleErrorCode());
}

std::vector<jitlink::Block*> blocks_of(jitlink::LinkGraph& graph, Region region) {
  std::vector<jitlink::Block*> blocks;
  for (jitlink::Section& section : graph.sections())
    if (section.getMemLifetime() != llvm::orc::MemLifetime::NoAlloc && region_of(section) == region)
      blocks.insert(blocks.end(), section.blocks().begin(), section.blocks().end());
  // Records of unwinding information keep their order, the end mark last.
  std::sort(blocks.begin(), blocks.end(), [](const jitlink::Block* a, const jitlink::Block* b) {
    const unsigned section_a = a->getSection().getOrdinal(), section_b = b->getSection().getOrdinal();
    return std::pair(section_a, a->getAddress()) < std::pair(section_b, b->getAddress());
  });
  return blocks;
}

llvm::Expected<Layout> lay_out(jitlink::LinkGraph& graph) {
  const uint64_t page = llvm::sys::Process::getPageSizeEstimate();
  Layout layout;
  uint64_t end = 0;
  for (int region = 0; region < kRegionCount; ++region) {
    end = llvm::alignTo(end, page);
    layout.regions[static_cast<size_t>(region)].begin = end;
    for (jitlink::Block* block : blocks_of(graph, static_cast<Region>(region))) {
      if (block->getAlignment() > page)
        return failure("its section " + block->getSection().getName().str() + " wants an alignment of " +
                       std::to_string(block->getAlignment()) + " bytes, more than a page");
      const uint64_t offset = jitlink::alignToBlock(end, *block);
      if (offset > kMaxBytes || block->getSize() > kMaxBytes - offset)
        return failure("its section " + block->getSection().getName().str() + " is too large for any memory");
      layout.blocks.push_back({block, offset});
      end = offset + block->getSize();
    }
    layout.regions[static_cast<size_t>(region)].end = end;
  }
  layout.bytes = std::max(llvm::alignTo(end, page), page);
  return layout;
}

// Gives blocks their addresses and, except for zeros, their content in the memory, which relocations change.
void copy_blocks(const Layout& layout, char* memory) {
  for (const auto& [block, offset] : layout.blocks) {
    char* to = memory + offset;
    block->setAddress(llvm::orc::ExecutorAddr::fromPtr(to));
    if (block->isZeroFill()) continue;
    const llvm::ArrayRef<char> content = block->getContent();
    std::copy(content.begin(), content.end(), to);
    block->setMutableContent({to, content.size()});
  }
}

// The memory between its allocation and its last protection. `pages` belongs to the ImageMemory, which
// outlives it.
class Allocation final : public jitlink::JITLinkMemoryManager::InFlightAlloc {
public:
  Allocation(Pages& pages, const Layout& layout) : pages_(pages), regions_(layout.regions) {}

  void abandon(OnAbandonedFunction done) override {
    pages_ = {};
    done(llvm::Error::success());
  }

  // Relocations are applied: code becomes executable, and nothing but variables stays writable.
  void finalize(OnFinalizedFunction done) override {
    for (size_t region = 0; region < kRegionCount; ++region) {
      const auto [begin, end] = regions_[region];
      if (begin == end) continue;
      char* address = pages_.address() + begin;
      if (::mprotect(address, end - begin, kProtection[region]) != 0) {
        std::string reason = std::strerror(errno);
        pages_ = {};
        return done(failure("the system does not let its pages be protected: " + reason));
      }
      if (region == kCode) llvm::sys::Memory::InvalidateInstructionCache(address, end - begin);
    }
    done(jitlink::JITLinkMemoryManager::FinalizedAlloc(llvm::orc::ExecutorAddr::fromPtr(pages_.address())));
  }

private:
  Pages& pages_;
  std::array<Range, kRegionCount> regions_;
};

} // namespace

Pages::Pages(Pages&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  Pages old(std::move(*this));
  address_ = std::exchange(other.address_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

Pages::~Pages() {
  if (address_) ::munmap(address_, bytes_);
}

Pages Pages::map(size_t bytes) {
  Pages pages;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return pages;
  pages.address_ = static_cast<char*>(address);
  pages.bytes_ = bytes;
  return pages;
}

void ImageMemory::allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph,
                           OnAllocatedFunction done) {
  llvm::Expected<Layout> layout = lay_out(graph);
  if (!layout) return done(layout.takeError());
  pages_ = Pages::map(layout->bytes);
  if (!pages_.address())
    return done(
        failure("the system does not give the " + std::to_string(layout->bytes) + " bytes that it needs"));
  copy_blocks(*layout, pages_.address());
  done(std::make_unique<Allocation>(pages_, *layout));
}

void ImageMemory::deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction done) {
  for (FinalizedAlloc& each : allocations) each.release();
  done(llvm::Error::success());
}

} // namespace firn::load
