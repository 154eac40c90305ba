// form-strips: joins a depthwise convolution with the convolution before it and the 1x1 convolution behind it
// into one kernel that computes strips of output lines, where the maps between them would leave the second
// cache level.
//
//   %e = fusion %x, ... {kind = contraction}              %p = fusion %x, ... {kind = strips, rows = 14}
//   %d = fusion %e, ... {kind = contraction}        ->      region(...) { %e, %d, %p as before, each with
//   %p = fusion %d, %x, ... {kind = contraction}            its epilogue; return %p }
//
// Of the members either neighbour may be missing: where others read the map too (squeeze-and-excite), or
// where joining costs more than it saves. Saved is the traffic of the maps between members; paid are the
// lines that two strips both compute, and weights that pass once per strip.
//
// - Requires: fusions are formed.
// - Breaks: other passes do not look inside.
#include "compiler/passes/fusion_builder.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>
#include <unordered_set>

namespace firn {
namespace {

constexpr int64_t kMinimumLine = 6;  // pixels; shorter lines do not fill register tiles
constexpr int64_t kGroupVectors = 3; // of channels that are expanded at a time, about

// The convolution of a bare one or of a contraction fusion; null if there is none.
const Instruction* convolution_of(const Instruction& instruction) {
  if (instruction.is(Opcode::Convolution)) return &instruction;
  if (!instruction.is(Opcode::Fusion) || instruction.attributes().word("kind", "") != "contraction")
    return nullptr;
  for (const auto& inner : instruction.region().instructions())
    if (inner->is(Opcode::Convolution)) return inner.get();
  return nullptr;
}

// What operand `number` of the member's convolution is outside; nothing if anything else of the member uses
// it.
Value sole_operand(const Instruction& member, int number) {
  const Instruction* convolution = convolution_of(member);
  Value operand = convolution->operand(number);
  if (convolution != &member) {
    if (operand.def->users().size() != 1) return {};
    const std::vector<Instruction*>& parameters = member.region().parameters();
    auto found = std::find(parameters.begin(), parameters.end(), operand.def);
    if (found == parameters.end()) return {};
    operand = member.operand(static_cast<int>(found - parameters.begin()));
  }
  return std::count(member.operands().begin(), member.operands().end(), operand) == 1 ? operand : Value{};
}

bool is_blocked_image(const Type& type) {
  bool is_float = type.dtype == DType::F32 || type.dtype == DType::F16 || type.dtype == DType::BF16;
  return is_float && type.is_static() && type.rank() == 4 && type.layout.strides.empty() &&
         type.layout.blocks.size() == 1 && type.layout.blocks[0].dim == 1;
}

// Members by what they may be.
enum class Kind { None, Depthwise, Pointwise, Strided };
Kind kind_of(const Instruction& instruction) {
  const Instruction* convolution = convolution_of(instruction);
  if (!convolution || convolution->type().dims != instruction.type().dims) return Kind::None;
  const Type &input = convolution->operand(0).type(), &filter = convolution->operand(1).type();
  const std::vector<WindowDim>& window = convolution->attributes().window().dims;
  if (!sole_operand(instruction, 0) || !sole_operand(instruction, 1)) return Kind::None;
  if (!input.is_static() || !filter.is_static() || !instruction.type().is_static()) return Kind::None;
  if (input.rank() != 4 || input.num_elements() == 0) return Kind::None;
  bool dilated =
      std::any_of(window.begin(), window.end(), [](const WindowDim& dim) { return dim.input_dilation != 1; });
  if (dilated || instruction.type().dim(3) < kMinimumLine) return Kind::None;
  int64_t groups = convolution->attributes().integer("groups", 1);
  if (groups > 1) return groups == filter.dim(0) && filter.dim(1) == 1 ? Kind::Depthwise : Kind::None;
  if (std::all_of(window.begin(), window.end(), [](const WindowDim& dim) { return dim.is_pointwise(); }))
    return Kind::Pointwise;
  return window[0].stride > 1 ? Kind::Strided : Kind::None; // others may be Winograd's
}

struct Chain {
  Instruction *expand = nullptr, *depthwise = nullptr, *project = nullptr;
  int64_t rows = 0; // of the depthwise result per strip
  double gain = 0;  // cycles
};

class CostModel {
public:
  explicit CostModel(const TargetMachine& target) : target_(target) {}

  // Sets rows and gain; no gain if strips are no good.
  void plan(Chain& chain) const {
    const Type &in = convolution_of(*chain.depthwise)->operand(0).type(), &out = chain.depthwise->type();
    const WindowDim& window = convolution_of(*chain.depthwise)->attributes().window().dims[0];
    double maps = bytes(in) + bytes(out);
    if (maps <= 0.75 * static_cast<double>(target_.l2_bytes)) return;
    double saved = (chain.expand ? saved_traffic(in) : 0) + (chain.project ? saved_traffic(out) : 0);
    double work = chain.expand ? cycles(*chain.expand) : 0, ragged = work * waste(in.dim(3));
    if (chain.project) ragged += cycles(*chain.project) * waste(out.dim(3));
    for (int64_t strips = chain.project ? 2 : 1; strips <= out.dim(2); ++strips) {
      int64_t rows = (out.dim(2) + strips - 1) / strips;
      if ((out.dim(2) + rows - 1) / rows != strips) continue;
      int64_t covered = std::min((rows - 1) * window.stride + window.dilated_size(), in.dim(2));
      double scratch =
          (chain.expand ? group_bytes(in, covered) : 0) +
          (chain.project ? bytes(out) * static_cast<double>(rows) / static_cast<double>(out.dim(2)) : 0);
      if (scratch > static_cast<double>(target_.l2_bytes) / 2) continue;
      double again = std::max<double>(0, static_cast<double>(covered * strips - in.dim(2)) /
                                             static_cast<double>(in.dim(2)));
      double gain = saved - ragged - work * again -
                    static_cast<double>(strips - 1) * weight_bytes(chain) / target_.l2_bytes_per_cycle;
      if (gain <= chain.gain) continue;
      chain.gain = gain;
      chain.rows = rows;
    }
  }

private:
  static double bytes(const Type& type) { return static_cast<double>(type.physical_byte_size()); }

  // A map is written and read: from beyond the second level if it takes much of that.
  double saved_traffic(const Type& map) const {
    if (bytes(map) <= static_cast<double>(target_.l2_bytes) / 4) return 0;
    return 2 * bytes(map) * (1 / target_.l3_bytes_per_cycle - 1 / target_.l2_bytes_per_cycle);
  }

  // Of a group of the map's channels, `lines` high.
  static double group_bytes(const Type& map, int64_t lines) {
    int64_t block = map.layout.blocks[0].size, channels = std::min(map.dim(1), kGroupVectors * block);
    return static_cast<double>(channels * lines * map.dim(3)) * bit_width(map.dtype) / 8;
  }

  double cycles(const Instruction& member) const {
    const Type& filter = convolution_of(member)->operand(1).type();
    const Type& out = member.type();
    double fmas = static_cast<double>(filter.num_elements()) *
                  static_cast<double>(out.dim(0) * out.dim(2) * out.dim(3));
    return fmas / (target_.lanes(32) * target_.fma_pipes);
  }

  static double weight_bytes(const Chain& chain) {
    double sum = 0;
    for (const Instruction* member : {chain.expand, chain.depthwise, chain.project})
      if (member) sum += bytes(convolution_of(*member)->operand(1).type());
    return sum;
  }

  // The share of a register tile's work that is lost where each line is tiled for itself.
  static double waste(int64_t pixels) {
    double least = 1;
    for (int64_t tile = 6; tile <= 14; ++tile) {
      int64_t tiles = (pixels + tile - 1) / tile;
      least = std::min(least, static_cast<double>(tiles * tile) / static_cast<double>(pixels) - 1);
    }
    return least;
  }

  const TargetMachine& target_;
};

class StripFormer {
public:
  StripFormer(Region& region, const PassOptions& options)
      : region_(region), options_(options), model_(*options.target) {}

  bool run() {
    bool changed = false;
    for (Chain best = best_chain(); best.gain > 0 && options_.take_rewrite(); best = best_chain()) {
      form(best);
      changed = true;
    }
    return changed;
  }

private:
  Chain best_chain() const {
    Chain best;
    for (const auto& instruction : region_.instructions()) {
      if (kind_of(*instruction) != Kind::Depthwise) continue;
      Chain chain = chain_around(*instruction);
      if (chain.gain > best.gain) best = chain;
    }
    return best;
  }

  Chain chain_around(Instruction& depthwise) const {
    Chain best;
    if (!is_blocked_image(depthwise.type()) ||
        !is_blocked_image(convolution_of(depthwise)->operand(0).type()))
      return best;
    Instruction *expand = producer_of(depthwise), *project = consumer_of(depthwise);
    for (auto [before, behind] : {std::pair{expand, project}, {expand, nullptr}, {nullptr, project}}) {
      Chain chain{before, &depthwise, behind};
      if (before || behind) model_.plan(chain);
      if (chain.gain > best.gain) best = chain;
    }
    return best;
  }

  // Whether `user` is the only one that reads the value, as its convolution's input and nothing else.
  static bool feeds_only(Instruction& producer, const Instruction& user) {
    return producer.users().size() == 1 && producer.num_uses(0) == 1 &&
           sole_operand(user, 0) == producer.result();
  }

  Instruction* producer_of(const Instruction& depthwise) const {
    Instruction* producer = sole_operand(depthwise, 0).def;
    if (producer->parent() != &region_) return nullptr;
    Kind kind = kind_of(*producer);
    bool fits = (kind == Kind::Pointwise || kind == Kind::Strided) && feeds_only(*producer, depthwise);
    return fits ? producer : nullptr;
  }

  Instruction* consumer_of(Instruction& depthwise) const {
    if (depthwise.users().size() != 1) return nullptr;
    Instruction* user = depthwise.users()[0];
    if (user->parent() != &region_ || kind_of(*user) != Kind::Pointwise || !is_blocked_image(user->type()))
      return nullptr;
    return feeds_only(depthwise, *user) ? user : nullptr;
  }

  void form(const Chain& chain) {
    std::vector<Instruction*> members;
    for (Instruction* member : {chain.expand, chain.depthwise, chain.project})
      if (member) members.push_back(member);
    Instruction* fusion = make_fusion(members, "strips");
    fusion->attributes().set("rows", chain.rows);
    for (size_t i = members.size(); i-- > 0;) region_.erase(members[i]);
  }

  Region& region_;
  const PassOptions& options_;
  CostModel model_;
};

} // namespace

bool form_strips(Module& module, const PassOptions& options) {
  bool changed = false;
  if (options.target && options.target->vector_bits > 0)
    for_each_region(module, [&](Region& region) { changed |= StripFormer(region, options).run(); });
  return changed;
}

} // namespace firn
