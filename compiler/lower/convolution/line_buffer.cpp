// Convolutions over buffered lines: the map that a convolution reads is made a few lines at a time.
//
//   for every strip of output lines, and for every block of channels of a depthwise convolution
//     make the lines of the map that the strip's windows cover
//     convolution: buffered lines -> lines of the strip
//
// If another convolution makes the lines, a strip has them of all channels at once, and numbers around them:
//
//   for every strip of output lines
//     first convolution: input -> the lines of the map that the strip's windows cover
//     for every block of channels
//       depthwise convolution: buffered lines -> lines of the strip
//
// Lines that two strips cover are made twice. Where padding begins and ends the loop over lines is cut, so
// that elements of a line need no conditions but those of its ends, where loops are cut as well.
#include "compiler/plan/windows/line_buffer.h"
#include "compiler/graph/fusion.h"
#include "compiler/lower/convolution/row_convolution.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"

#include <algorithm>
#include <set>

namespace firn::lower {
namespace {

using kernel::Builder;

// Lines of a map that code per element makes, in the fusion around it.
class MapLines {
public:
  // `part`: the lines that lie in scratch together.
  MapLines(KernelMaker& maker, const Instruction& fusion, Value map, Type part, const plan::ElementCode& code)
      : maker_(maker), map_(map), part_(std::move(part)), code_(code),
        leaves_(maker, fusion, [](const Instruction& member) { return convolution_of(member) != nullptr; }) {}

  // Adds the scratch, when all parameters are bound. Returns its number.
  int add_buffer() {
    kernel::Scalar element = memory_scalar(part_.dtype);
    int64_t bytes = static_cast<int64_t>(part_.physical_byte_size());
    return buffer_ = maker_.scratch(element, bytes / kernel::scalar_bytes(element), "lines");
  }

  // Emits the lines [from, to) of the map, whose element `first` is the first one of the buffer.
  void emit(const Index& first, const IntExpr& from, const IntExpr& to) const {
    std::vector<int64_t> cuts = line_cuts(first);
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      maker_.builder().loop(max(from, cuts[i]), min(to, cuts[i + 1]), 1,
                            [&](const IntExpr& line) { emit_line(first, line); });
  }

private:
  // The index in the map of an element of a line.
  static Index at(const Index& first, const IntExpr& line, const Index& within) {
    return {first[0], first[1] + within[1], line, within[3]};
  }

  // Between two neighbours, the code of all lines is the same.
  std::vector<int64_t> line_cuts(const Index& first) const {
    std::set<int64_t> cuts = {0, map_.type().dim(2)};
    // Code that a condition leaves out may have cuts of its own.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto start = cuts.begin(); std::next(start) != cuts.end() && !changed; ++start)
        for (int64_t cut : cuts_between(first, *start, *std::next(start))) changed |= cuts.insert(cut).second;
    }
    return {cuts.begin(), cuts.end()};
  }

  std::vector<int64_t> cuts_between(const Index& first, int64_t start, int64_t end) const {
    auto symbol = std::make_shared<const Symbol>(Symbol{"line", start, end - 1});
    IntExpr line = IntExpr::symbol(symbol);
    std::vector<int64_t> cuts;
    for (const ElementUses::SplitPoint& point : analyse(first, line, middle_of_line()).split_points) {
      std::optional<int64_t> step = point.expression.linear_coefficient(*symbol);
      if (point.expression.symbols().size() != 1 || step != 1) continue;
      int64_t cut = point.threshold - point.expression.constant_part();
      if (cut > start && cut < end) cuts.push_back(cut);
    }
    return cuts;
  }

  Index middle_of_line() const {
    auto column = std::make_shared<const Symbol>(Symbol{"column", 0, map_.type().dim(3) - 1});
    return {0, 0, 0, IntExpr::symbol(column)};
  }

  // Emits an element into a kernel that is thrown away.
  ElementUses analyse(const Index& first, const IntExpr& line, const Index& within) const {
    kernel::Kernel trial;
    Builder builder(trial);
    ElementUses uses;
    ElementEmitter emitter(builder);
    emitter.record_uses(&uses);
    emitter.set_code(code_);
    leaves_.bind_recording(builder, emitter, &uses.offsets);
    emitter.emit(map_, at(first, line, within));
    uses.operations += static_cast<int64_t>(trial.register_types.size());
    return uses;
  }

  void emit_line(const Index& first, const IntExpr& line) const {
    ElementLoops loops;
    loops.type = part_;
    loops.type.dims[2] = Dim(1);
    loops.code = code_;
    loops.parallel = false;
    auto place = [&](const Index& within) { return Index{0, within[1], line - first[2], within[3]}; };
    loops.uses = [&](const Index& within) {
      ElementUses uses = analyse(first, line, within);
      uses.offsets.push_back(part_.offset_of(place(within)));
      return uses;
    };
    loops.body = [&](const Index& within, const Lanes& lanes) {
      ElementEmitter emitter(maker_.builder(), lanes);
      emitter.set_code(code_);
      leaves_.bind_to(emitter);
      kernel::Register element = emitter.emit(map_, at(first, line, within));
      store_element(maker_.builder(), buffer_, part_, place(within), lanes, element);
    };
    emit_element_loops(maker_, loops);
  }

  KernelMaker& maker_;
  Value map_;
  Type part_;
  const plan::ElementCode& code_;
  RegionLeaves leaves_;
  int buffer_ = -1;
};

class LineBufferEmitter {
public:
  LineBufferEmitter(LoweringContext& context, const Instruction& fusion, const plan::LineBuffer& buffer,
                    const plan::LineBufferPlan& plan)
      : context_(context), fusion_(fusion), buffer_(buffer), plan_(plan) {
    if (buffer.block > 0)
      depthwise_.emplace(make_row_depthwise(context, *buffer.convolution));
    else
      convolution_.emplace(make_row_convolution(context, *buffer.convolution));
    if (buffer.producer) producer_.emplace(make_row_convolution(context, *buffer.producer));
  }

  void emit() {
    if (producer_) return emit_produced();
    depthwise_ ? pack_filters(context_, *depthwise_) : pack_filters(context_, *convolution_);
    KernelMaker maker(context_, fusion_, depthwise_ ? "depthwise" : "convolution");
    MapLines map_rows(maker, fusion_, buffer_.map, buffer_.part(plan_.rows), plan_.code);
    depthwise_ ? bind(maker, *depthwise_) : bind(maker, *convolution_);
    binding().scalar = map_rows.add_buffer();
    describe(maker.kernel(), maker);
    if (depthwise_)
      depthwise_->code.add_spill_buffer(maker.builder(), depthwise_->binding);
    else
      add_spill_buffer(maker.builder(), convolution_->binding, convolution_->geometry, convolution_->plan);
    emit_loops(maker.builder(), map_rows);
    maker.finish();
  }

private:
  void emit_produced() {
    pack_filters(context_, *producer_);
    pack_filters(context_, *depthwise_);
    KernelMaker maker(context_, fusion_, "convolution");
    producer_->binding.scalar = maker.read(producer_->root.operands[0]);
    bind_filters(maker, *producer_);
    bind_epilogue(maker, producer_->instruction, producer_->root, producer_->binding,
                  bias_of(producer_->plan));
    bind(maker, *depthwise_);
    const Type part = buffer_.part(plan_.rows);
    const kernel::Scalar element = memory_scalar(part.dtype);
    const int64_t bytes = static_cast<int64_t>(part.physical_byte_size());
    producer_->binding.result = depthwise_->binding.scalar =
        maker.scratch(element, bytes / kernel::scalar_bytes(element), "lines");
    maker.kernel().algorithm = direct_name(producer_->geometry, producer_->plan) + ", " +
                               depthwise_->code.algorithm() + " buffered rows " + std::to_string(plan_.rows);
    maker.set_flops(producer_->geometry.flops + depthwise_->code.flops());
    add_spill_buffer(maker.builder(), producer_->binding, producer_->geometry, producer_->plan);
    depthwise_->code.add_spill_buffer(maker.builder(), depthwise_->binding);
    Builder& b = maker.builder();
    IntExpr p = b.set_parallel(buffer_.convolution->type().dim(0) * strips());
    emit_produced_strip(b, part, floor_div(p, strips()), floor_mod(p, strips()));
    maker.finish();
  }

  void emit_produced_strip(Builder& b, const Type& part, const IntExpr& feature_map, const IntExpr& number) {
    const Instruction& pad = *buffer_.map.def;
    const std::vector<int64_t> low = pad.attributes().ints("low");
    const int64_t height = producer_->instruction.type().dim(2);
    const IntExpr first = number * plan_.rows, count = min(plan_.rows, IntExpr(result_lines()) - first),
                  covered = first * buffer_.across.stride,
                  end = (count - 1) * buffer_.across.stride + buffer_.across.dilated_size(),
                  from = max(IntExpr(low[2]) - covered, 0), to = min(end, IntExpr(low[2] + height) - covered);
    pad_lines(b, part, from, max(to, from), end);
    ContractionBinding made = producer_->binding;
    made.result_part = TensorPart{part, {feature_map, 0, covered - low[2], -low[3]}};
    emit_groups(b, *producer_, made, feature_map, {covered - low[2], from, to});
    ContractionBinding bound = depthwise_->binding;
    bound.scalar_part = TensorPart{part, {feature_map, 0, covered, 0}};
    const int64_t blocks = part.dim(1) / depthwise_->code.tiles().lanes();
    b.loop(0, blocks, 1, [&](const IntExpr& block) {
      depthwise_->code.emit_block(b, bound, feature_map, block, first, count);
    });
  }

  // Stores what surrounds the lines [from, to) of a strip of `end` lines.
  void pad_lines(Builder& b, const Type& part, const IntExpr& from, const IntExpr& to, const IntExpr& end) {
    const Instruction& pad = *buffer_.map.def;
    const int64_t left = pad.attributes().ints("low")[3], right = left + producer_->instruction.type().dim(3);
    kernel::Register value =
        b.constant_int({memory_scalar(part.dtype), 1}, pad.operand(1).def->literal()->get_int(0));
    auto store = [&](const IntExpr& line, int64_t begin, int64_t limit) {
      b.loop(0, part.dim(1), 1, [&](const IntExpr& channel) {
        b.loop(begin, limit, 1, [&](const IntExpr& column) {
          store_element(b, depthwise_->binding.scalar, part, {0, channel, line, column}, Lanes{}, value);
        });
      });
    };
    auto store_whole = [&](const IntExpr& line) { store(line, 0, part.dim(3)); };
    b.loop(0, min(from, end), 1, store_whole);
    b.loop(to, end, 1, store_whole);
    b.loop(from, to, 1, [&](const IntExpr& line) {
      store(line, 0, left);
      store(line, right, part.dim(3));
    });
  }

  template <class Member> void bind(KernelMaker& maker, Member& member) {
    bind_filters(maker, member);
    bind_result(maker, member.instruction, member.root, member.binding, bias_of(member.plan));
  }

  ContractionBinding& binding() { return depthwise_ ? depthwise_->binding : convolution_->binding; }

  void describe(kernel::Kernel& kernel, KernelMaker& maker) const {
    kernel.algorithm = (depthwise_ ? depthwise_->code.algorithm()
                                   : direct_name(convolution_->geometry, convolution_->plan)) +
                       " buffered rows " + std::to_string(plan_.rows);
    maker.set_flops(depthwise_ ? depthwise_->code.flops() : convolution_->geometry.flops);
  }

  int64_t result_lines() const { return buffer_.convolution->type().dim(2); }
  int64_t strips() const { return (result_lines() + plan_.rows - 1) / plan_.rows; }

  void emit_loops(Builder& b, const MapLines& map_rows) {
    int64_t batch = buffer_.convolution->type().dim(0);
    if (!depthwise_) {
      IntExpr p = b.set_parallel(batch * strips());
      return emit_strip(b, map_rows, floor_div(p, strips()), 0, floor_mod(p, strips()));
    }
    int64_t blocks = buffer_.convolution->type().dim(1) / buffer_.block;
    IntExpr p = b.set_parallel(batch * blocks);
    b.loop(0, strips(), 1, [&](const IntExpr& strip) {
      emit_strip(b, map_rows, floor_div(p, blocks), floor_mod(p, blocks), strip);
    });
  }

  // One strip of a feature map, or of a block of its channels.
  void emit_strip(Builder& b, const MapLines& map_rows, const IntExpr& feature_map, const IntExpr& block,
                  const IntExpr& number) {
    const WindowDim& window = buffer_.across;
    IntExpr first = number * plan_.rows, count = min(plan_.rows, IntExpr(result_lines()) - first);
    IntExpr covered = first * window.stride - window.pad_low,
            end = (first + count - 1) * window.stride - window.pad_low + window.dilated_size();
    ContractionBinding bound = binding();
    bound.scalar_part =
        TensorPart{buffer_.part(plan_.rows), {feature_map, block * buffer_.block, covered, 0}};
    map_rows.emit(bound.scalar_part->first, max(covered, 0), min(end, buffer_.map.type().dim(2)));
    if (depthwise_)
      depthwise_->code.emit_block(b, bound, feature_map, block, first, count);
    else
      emit_groups(b, *convolution_, bound, feature_map, {first, 0, count});
  }

  static void emit_groups(Builder& b, const RowConvolution& convolution, const ContractionBinding& bound,
                          const IntExpr& feature_map, const ResultLines& map_rows) {
    const plan::ColumnGroups groups = convolution.groups();
    b.loop(0, groups.count(), 1, [&](const IntExpr& group) {
      emit_column_group(b, groups, group, [&](const IntExpr& vector, int vectors) {
        emit_lines(b, convolution, bound, feature_map, vector, vectors, map_rows);
      });
    });
  }

  LoweringContext& context_;
  const Instruction& fusion_;
  const plan::LineBuffer& buffer_;
  const plan::LineBufferPlan& plan_;
  std::optional<RowConvolution> convolution_;
  std::optional<RowDepthwise> depthwise_;
  std::optional<RowConvolution> producer_;
};

} // namespace

void emit_line_buffer(LoweringContext& context, const Instruction& fusion, const plan::LineBufferPlan& plan) {
  auto buffer = plan::find_line_buffer(fusion, context.plan_options());
  LineBufferEmitter(context, fusion, *buffer, plan).emit();
}

} // namespace firn::lower
