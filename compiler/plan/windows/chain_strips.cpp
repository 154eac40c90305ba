// The cost of strips, and their gain: maps that do not leave the second cache level.
#include "compiler/plan/windows/chain_strips.h"

#include "compiler/plan/cost_model.h"

#include <algorithm>
#include <vector>

namespace firn::plan {
namespace {

constexpr int64_t kMinLine = 6;      // pixels; shorter lines do not fill register tiles
constexpr double kLostAlone = 0.1;   // share of a chain's cycles that one thread may lose to let several gain
constexpr int64_t kGroupVectors = 3; // vectors of channels that are expanded at a time, about

class StripCosts {
public:
  StripCosts(const Machine& target, int threads) : target_(target), threads_(threads) {}

  ChainStrips choose(const ChainMembers& chain) const {
    ChainStrips best;
    const Type &in = chain.depthwise.convolution->operand(0).type(), &out = *chain.depthwise.result;
    const WindowDim& window = chain.depthwise.convolution->attributes().window().dims[0];
    double maps = bytes(in) + bytes(out);
    if (maps <= cache_share::kWorkingSet * static_cast<double>(target_.cpu.l2_bytes)) return best;
    double saved = (chain.expand.convolution ? saved_traffic(in) : 0) +
                   (chain.project.convolution ? saved_traffic(out) : 0);
    double work = chain.expand.convolution ? cycles(chain.expand) : 0, ragged = work * waste(in.dim(3));
    if (chain.project.convolution) ragged += cycles(chain.project) * waste(out.dim(3));
    double total = cycles_of(chain), best_alone = 0;
    struct Found {
      ChainStrips strips;
      double alone; // gain on one thread
    };
    std::vector<Found> found;
    for (int64_t strips = chain.project.convolution ? 2 : 1; strips <= out.dim(2); ++strips) {
      int64_t rows = (out.dim(2) + strips - 1) / strips;
      if ((out.dim(2) + rows - 1) / rows != strips) continue;
      int64_t covered = std::min((rows - 1) * window.stride + window.dilated_size(), in.dim(2));
      double scratch = (chain.expand.convolution ? group_bytes(in, covered) : 0) +
                       (chain.project.convolution
                            ? bytes(out) * static_cast<double>(rows) / static_cast<double>(out.dim(2))
                            : 0);
      if (scratch > cache_share::kScratch * static_cast<double>(target_.cpu.l2_bytes)) continue;
      double again = std::max<double>(0, static_cast<double>(covered * strips - in.dim(2)) /
                                             static_cast<double>(in.dim(2)));
      double gain = saved - ragged - work * again -
                    static_cast<double>(strips - 1) * weight_bytes(chain) / target_.cpu.l2_bytes_per_cycle;
      best_alone = std::max(best_alone, gain);
      found.push_back({{rows, gain - waiting(chain, total - gain, strips)}, gain});
    }
    // A choice for several threads must lose little on one thread alone.
    for (const auto& [strips, alone] : found)
      if (strips.gain > best.gain && best_alone - alone <= kLostAlone * total) best = strips;
    return best;
  }

private:
  double cycles_of(const ChainMembers& chain) const {
    double sum = 0;
    for (const ChainMember& member : {chain.expand, chain.depthwise, chain.project})
      if (member.convolution) sum += cycles(member);
    return sum;
  }

  // Cycles that threads wait for the one with most strips. Without a projection, groups of channels are items
  // too.
  double waiting(const ChainMembers& chain, double cycles, int64_t strips) const {
    const Type& map = *chain.depthwise.result;
    int64_t channels = kGroupVectors * map.layout.blocks[0].size;
    int64_t groups = chain.project.convolution ? 1 : (map.dim(1) + channels - 1) / channels;
    return cycles * (imbalance(map.dim(0) * strips * groups, threads_) - 1);
  }

  static double bytes(const Type& type) { return static_cast<double>(type.physical_byte_size()); }

  // A map is written and read: beyond the second level if it takes much of that level.
  double saved_traffic(const Type& map) const {
    if (bytes(map) <= cache_share::kHandedOn * static_cast<double>(target_.cpu.l2_bytes)) return 0;
    return 2 * bytes(map) * (1 / target_.cpu.l3_bytes_per_cycle - 1 / target_.cpu.l2_bytes_per_cycle);
  }

  // Bytes of a group of the map's channels, `rows` lines high.
  static double group_bytes(const Type& map, int64_t rows) {
    int64_t block = map.layout.blocks[0].size, channels = std::min(map.dim(1), kGroupVectors * block);
    return static_cast<double>(channels * rows * map.dim(3)) * bit_width(map.dtype) / 8;
  }

  double cycles(const ChainMember& member) const {
    const Type& filter = member.convolution->operand(1).type();
    const Type& out = *member.result;
    double fmas = static_cast<double>(filter.num_elements()) *
                  static_cast<double>(out.dim(0) * out.dim(2) * out.dim(3));
    return fmas / (target_.cpu.register_lanes(32) * target_.cpu.fma_pipes);
  }

  static double weight_bytes(const ChainMembers& chain) {
    double sum = 0;
    for (const ChainMember& member : {chain.expand, chain.depthwise, chain.project})
      if (member.convolution) sum += bytes(member.convolution->operand(1).type());
    return sum;
  }

  // The share of a register tile's work that is lost if each line is tiled for itself.
  static double waste(int64_t pixels) {
    double min = 1;
    for (int64_t tile = 6; tile <= 14; ++tile) {
      int64_t tiles = (pixels + tile - 1) / tile;
      min = std::min(min, static_cast<double>(tiles * tile) / static_cast<double>(pixels) - 1);
    }
    return min;
  }

  const Machine& target_;
  int threads_;
};

} // namespace

ChainRole chain_role(const Instruction& convolution) {
  const Type &input = convolution.operand(0).type(), &filter = convolution.operand(1).type();
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  if (input.rank() != 4 || input.num_elements() == 0) return ChainRole::None;
  bool dilated =
      std::any_of(window.begin(), window.end(), [](const WindowDim& dim) { return dim.input_dilation != 1; });
  if (dilated || convolution.type().dim(3) < kMinLine) return ChainRole::None;
  int64_t groups = convolution.attributes().integer("groups", 1);
  if (groups > 1)
    return groups == filter.dim(0) && filter.dim(1) == 1 ? ChainRole::Depthwise : ChainRole::None;
  if (std::all_of(window.begin(), window.end(), [](const WindowDim& dim) { return dim.is_pointwise(); }))
    return ChainRole::Pointwise;
  return window[0].stride > 1 ? ChainRole::Strided : ChainRole::None; // others may be Winograd's
}

ChainStrips choose_strips(const ChainMembers& chain, const Machine& target, int threads) {
  return StripCosts(target, threads).choose(chain);
}

} // namespace firn::plan
