// Chooses the algorithm of a dot or convolution, its tiles and its loops.
#include "compiler/plan/contraction/contraction_plan.h"

#include "compiler/plan/byte_values.h"
#include "compiler/plan/contraction/choose_matrices.h"
#include "compiler/plan/contraction/ranked_tiles.h"
#include "compiler/plan/contraction/tile_loops.h"
#include "compiler/plan/contraction/tile_matrices.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/views.h"

namespace firn::plan {
namespace {

// Vector operations that an epilogue runs while it stores one vector.
constexpr int kFreeOperations = 2;

// Sums that start from a bias rather than zeros take registers before their first step. In a short epilogue
// the addition costs nothing, as the stores set its pace.
bool starts_from_bias(const Instruction& instruction) {
  if (!instruction.is(Opcode::Fusion)) return false;
  int operations = 0;
  for (const auto& inner : instruction.region().instructions()) {
    bool computes = !inner->is(Opcode::Parameter) && !inner->is(Opcode::Constant) &&
                    !inner->is(Opcode::BroadcastInDim) && !inner->is(Opcode::Convolution);
    // A clamp takes two instructions, and a narrow four.
    operations += computes + inner->is(Opcode::Clamp) + 3 * inner->is(Opcode::Narrow);
  }
  return operations > kFreeOperations;
}

// Whether all bytes of a constant, which are signed, fit four bits.
bool fit_four_bits(Value constant) {
  return is_packable_constant(constant) && constant.dtype() == DType::I8 && lies_within(constant, {-8, 7});
}

// Whether the scalar of a row, a few steps of a long line further on, is that of the row before it. In
// straight code of several steps the compiler would keep it in a register for that, and spill sums.
bool shares_scalars(const ConvolutionGeometry& g) {
  constexpr int64_t kFewSteps = 4;
  const PaddedRow* line = g.padded_row ? &*g.padded_row : nullptr;
  const WindowDim& w = line ? line->window : g.window[g.tiled];
  bool is_innermost = line ? g.groups == 1 && w.dilation == 1 : g.channel_level < g.window_level[g.tiled];
  int64_t k_extent = w.stride * (line ? g.input.dim(1) : 1);
  return is_innermost && w.size > kMaxUnrolledWindow && k_extent % w.dilation == 0 &&
         k_extent / w.dilation < kFewSteps;
}

// The tiling of a completed plan: the plan's own numbers, and those that follow from them, unless the plan
// says these too.
void set_tiling(ContractionPlan& plan, const ContractionShape& shape, const PlanningContext& context,
                bool chooses) {
  const Machine& target = context.options.target;
  if (chooses) {
    plan.tiling = choose_tiling(shape, target);
    return;
  }
  ContractionShape given = shape;
  given.optimize_size = plan.tiling.optimize_size;
  Tiling derived = choose_tiling(given, target, &plan.tiling.tile);
  Tiling& tiling = plan.tiling;
  tiling.tile = derived.tile;
  tiling.cycles = derived.cycles;
  if (!context.decides("unroll")) tiling.unroll = derived.unroll;
  if (!context.decides("rolled_runs")) tiling.rolls_runs = derived.rolls_runs;
  if (!context.decides("rolled_long_runs")) tiling.rolls_long_runs = derived.rolls_long_runs;
  if (!context.decides("rolled_k")) tiling.rolls_k = derived.rolls_k;
  if (!context.decides("rest_splits")) tiling.rest_splits = derived.rest_splits;
  if (!context.decides("rest_rows")) tiling.rest_rows = derived.rest_rows;
}

class ContractionPlanning {
public:
  ContractionPlanning(const Instruction& instruction, const KernelRoot& root, const PlanningContext& context)
      : instruction_(instruction), root_(root), context_(context), target_(context.options.target) {}

  std::string complete(ContractionPlan& plan) {
    bool chooses = plan.tiling.tile.rows == 0, is_dot = !root_.op->is(Opcode::Convolution);
    if (plan.algorithm != Algorithm::Direct && is_dot) return "this is a dot";
    if (chooses) {
      plan.rolled_epilogue = has_long_epilogue(instruction_) && plan.algorithm != Algorithm::Planar;
      plan.bias_in_accumulators =
          plan.algorithm == Algorithm::Direct && !is_dot && starts_from_bias(instruction_);
    }
    bool chooses_mac = plan.mac == MacInstruction{} && !context_.is_given("mac");
    if (chooses_mac) {
      auto mac = choose_mac(*root_.op, target_, context_.options.goals.strict_math());
      if (!mac) return "register tiles do not sum such products";
      // The k group has to be that of the packed form.
      bool is_other = form() && form()->mac.k_group() != mac->k_group();
      plan.mac = is_other ? form()->mac : *mac;
    }
    may_be_matrices_ = chooses_mac && chooses && plan.algorithm == Algorithm::Direct;
    if (std::string wrong = check_mac(plan.mac, *root_.op); !wrong.empty()) return wrong;
    if (plan.algorithm == Algorithm::Planar) return complete_planar(plan, chooses);
    std::string wrong = is_dot ? complete_dot(plan, chooses) : complete_convolution(plan, chooses);
    return wrong.empty() ? complete_accumulators(plan) : wrong;
  }

  const ContractionShape& shape() const { return shape_; }

private:
  // The plan whose packed operand this one reads; null: it makes its own.
  const ContractionPlan* form() const {
    return context_.packed_as ? context_.packed_as->get_if<ContractionPlan>() : nullptr;
  }

  // Tile matrices keep their sums in tile registers, which reach the epilogue by way of memory.
  static std::string complete_accumulators(ContractionPlan& plan) {
    bool is_matrix = plan.mac.kind == MacKind::TileMatrix;
    if (is_matrix) plan.rolled_epilogue = true, plan.bias_in_accumulators = false;
    AccumulatorSpace place = is_matrix ? AccumulatorSpace::TileRegisters : AccumulatorSpace::Registers;
    if (plan.accumulators != AccumulatorSpace::Registers && plan.accumulators != place)
      return "no kernel keeps its accumulators elsewhere than in registers of its products";
    plan.accumulators = place;
    return "";
  }

  // The product in tile matrices, if the cost model may choose it.
  std::optional<MacInstruction> possible_matrices(const ContractionPlan& plan) const {
    if (!may_be_matrices_ || plan.unpacked) return std::nullopt;
    return in_tile_matrices(plan.mac, target_, context_.options.goals.strict_math());
  }

  // Takes tile matrices in place of vectors if they take less time.
  void prefer_matrices(ContractionPlan& plan, DotGeometry& g) const {
    auto mac = possible_matrices(plan);
    if (!mac) return;
    MacInstruction of_rows = plan.swap_operands ? mac->swapped() : *mac;
    if (matrix_cycles(g, of_rows, target_) >= choose_tiling(g.shape, target_).cycles) return;
    plan.mac = *mac;
    g.shape.multiply_in(of_rows);
  }
  void prefer_matrices(ContractionPlan& plan, ConvolutionGeometry& g) const {
    auto mac = possible_matrices(plan);
    if (!mac) return;
    MatrixChoice choice = choose_matrices(g, *mac, target_);
    if (choice.cycles >= choose_tiling(g.shape, target_).cycles) return;
    plan.mac = *mac;
    g.shape.multiply_in(*mac);
    plan.feature_map_copy = choice.copy;
  }

  // Takes the tile that all members of a chain share, as it was decided for the chain.
  void take_chain_tile(ContractionPlan& plan, ConvolutionGeometry& g) const {
    std::optional<MacInstruction> mac = possible_matrices(plan);
    if (plan.mac.kind == MacKind::TileMatrix) mac = plan.mac;
    if (!mac || !context_.chain_tile) return;
    plan.mac = *mac;
    g.shape.multiply_in(*mac);
    if (plan.tiling.tile.rows == 0) plan.tiling.tile = *context_.chain_tile;
  }
  bool is_chain_tile(const TileShape& tile) const {
    return context_.chain_tile && tile.rows == context_.chain_tile->rows &&
           tile.vectors == context_.chain_tile->vectors;
  }

  // Why a plan's tile matrices cannot be used here; empty: they can.
  std::string check_matrices(const ContractionPlan& plan, const ContractionShape& shape,
                             const std::string& lacks) const {
    if (plan.mac.kind != MacKind::TileMatrix) return "";
    if (!in_tile_matrices(plan.mac, target_, context_.options.goals.strict_math()))
      return "the CPU has no tile matrices for it, or strict numerics forbid them";
    return lacks.empty() ? check_tile_block(shape, plan.tiling.tile) : lacks;
  }

  void choose_accumulators(ContractionPlan& plan, const ContractionShape& shape) const {
    if (plan.mac.kind != MacKind::TileMatrix) return;
    choose_accumulator_tiles(plan.tiling, shape, target_);
    choose_epilogue(plan.tiling, shape);
  }

  void set_epilogue_unroll(Tiling& tiling) const {
    if (context_.decides("epilogue_unroll")) return;
    const Type& result = instruction_.type();
    bool are_bytes = result.is_tensor() && bit_width(result.dtype) == 8;
    tiling.epilogue_unroll = are_bytes && !tiling.optimize_size ? target_.cpu.narrowed_together : 1;
  }

  void take_form(ContractionShape& shape) const {
    if (!form()) return;
    shape.panel = form()->tiling.tile.panel_vectors();
    shape.panel_k_interleave = form()->tiling.tile.k_interleave;
    shape.whole_panels = form()->tiling.tile.whole_panels;
  }

  // Columns that lie in panels already fix the panel of the shape.
  void take_panels(DotGeometry& g) const {
    if (g.panel_columns == 0) return;
    g.shape.panel = static_cast<int>(g.panel_columns / target_.cpu.lanes(g.shape.element_bits));
    g.shape.panel_k_interleave = 1;
    g.shape.whole_panels = true;
  }
  // Why a tile does not read the columns as they lie; empty: it does.
  std::string check_panels(const ContractionPlan& plan, const DotGeometry& g, bool vector_constant) const {
    const TileShape& tile = plan.tiling.tile;
    bool is_matrix = plan.mac.kind == MacKind::TileMatrix;
    if (tile.whole_panels && (plan.unpacked || tile.k_interleave > 1 || is_matrix))
      return "whole panels are of columns packed for vectors, one step in each";
    if (g.panel_columns == 0) return "";
    if (!vector_constant || plan.mac.kind != MacKind::Fma || plan.mac.k_group() > 1)
      return "what lies in panels is constant and multiplied step by step";
    if (!tile.whole_panels || tile.panel_vectors() * tile.lanes != g.panel_columns)
      return "the columns lie in whole panels of " + std::to_string(g.panel_columns);
    return "";
  }

  std::string complete_dot(ContractionPlan& plan, bool chooses) {
    std::optional<DotGeometry> g;
    if (std::string wrong = choose_columns(plan, chooses, g); !wrong.empty()) return wrong;
    const MacInstruction first_mac = plan.mac;
    auto geometry = std::make_shared<DotGeometry>(*g);
    bool in_blocks = root_.op->is(Opcode::Composite),
         vector_constant = is_packable_constant(root_.operands[plan.swap_operands ? 0 : 1]);
    g->shape.optimize_size = context_.options.goals.optimize_size();
    bool looks_up = g->shape.looks_up_words = looks_up_words(*g);
    if (std::string wrong = choose_bits(plan, chooses, *g); !wrong.empty()) return wrong;
    // Lanes that are stored one by one, for all vectors of a tile, would be most of a kernel's code.
    if (chooses && instruction_.is(Opcode::Dot) && g->lanes_lie_apart()) plan.rolled_epilogue = true;
    if (vector_constant && !plan.widened) g->shape.weight_bytes = context_.model_weight_bytes;
    if (chooses && vector_constant) take_form(g->shape);
    if (chooses) take_panels(*g);
    prefer_matrices(plan, *g);
    if (plan.mac != first_mac) *geometry = *dot_geometry(plan);
    plan.dot = std::move(geometry);
    shape_ = g->shape;
    set_tiling(plan, shape_, context_, chooses);
    if (std::string wrong = check_matrices(plan, g->shape, lacks_for_matrices(*g)); !wrong.empty())
      return wrong;
    if (std::string wrong = check_panels(plan, *g, vector_constant); !wrong.empty()) return wrong;
    if (std::string wrong = finish_bits(plan, chooses); !wrong.empty()) return wrong;
    if (std::string wrong = choose_pairs(plan, chooses, g->shape); !wrong.empty()) return wrong;
    if (plan.tiling.tile.column_streams > 1 &&
        (plan.unpacked || plan.widened || !g->column.extent.is_constant()))
      return "streams of columns are of packed ones";
    if (plan.feature_map_copy != FeatureMapCopy::None) return "a dot's rows are read where they lie";
    if (chooses && vector_constant)
      choose_blocks(plan.tiling, *g, target_, context_.options.goals.threads, form());
    if (in_blocks && chooses && !form()) take_whole_blocks(plan.tiling);
    if (in_blocks && blocks() % plan.tiling.split_k != 0) return "a split of k takes whole blocks";
    if (chooses)
      share_out(plan.tiling, g->shape, target_, context_.options.goals.threads, /*may_cut_rows=*/true);
    if (chooses) choose_accumulators(plan, g->shape);
    set_epilogue_unroll(plan.tiling);
    std::string wrong = check_tiling(plan.tiling, g->shape);
    if (wrong.empty()) wrong = check_split_m(plan.tiling, g->shape, /*may_cut_rows=*/true);
    if (!wrong.empty()) return wrong;
    if (!context_.decides("prefetch_vectors"))
      set_streams(plan.tiling, *g, vector_constant && !plan.unpacked);
    if (plan.tiling.streams_vectors && plan.unpacked)
      return "only packed columns are asked for ahead of time";
    if (!context_.decides("lookup_words")) plan.tiling.looks_up_words = looks_up;
    if (plan.tiling.looks_up_words && !looks_up) return "there are no words of integers that a table has";
    if (plan.tiling.streams_scalars) return "a dot's rows are not asked for ahead of time";
    if (chooses) plan.bias_in_accumulators = lacks_for_start(plan).empty();
    if (std::string lacks = lacks_for_start(plan); plan.bias_in_accumulators && !lacks.empty()) return lacks;
    return check_blocks(plan.tiling, *g);
  }

  // Why a dot's sums do not start from what is added to them; empty: they do, which saves two instructions
  // for each. With lanes the addition is free, as the stores set an epilogue's pace.
  std::string lacks_for_start(const ContractionPlan& plan) const {
    const bool has_integers = root_.op->is(Opcode::Dot) && root_.op->type().dtype == DType::I32;
    return has_integers && instruction_.is(Opcode::Fusion) && plan.tiling.tile.lanes == 1 &&
                   plan.tiling.split_k == 1
               ? ""
               : "sums of a dot start from a bias if they are i32 of one lane, in a fusion, without split_k";
  }

  std::optional<DotGeometry> dot_geometry(const ContractionPlan& plan) const {
    return DotGeometry::of(*root_.op, instruction_.type(), plan.swap_operands, plan.mac);
  }

  // Chooses the operand that has the columns, and whether they are read where they lie.
  std::string choose_columns(ContractionPlan& plan, bool chooses, std::optional<DotGeometry>& g) const {
    bool lhs_constant = is_packable_constant(root_.operands[0]),
         rhs_constant = is_packable_constant(root_.operands[1]);
    bool in_blocks = root_.op->is(Opcode::Composite);
    if (in_blocks && plan.swap_operands) return "the integers in blocks are the columns";
    if (chooses) plan.swap_operands = !in_blocks && prefers_swapped_operands(lhs_constant, rhs_constant);
    g = dot_geometry(plan);
    auto is_reachable = [&] { return g && (can_stay(*g, target_) || g->has_static_columns()); };
    bool columns_vary = g && !g->column.extent.is_constant(); // the other operand's columns may not vary
    if (chooses && !in_blocks && (!is_reachable() || columns_vary)) {
      auto first = g;
      bool was_reachable = is_reachable();
      plan.swap_operands = !plan.swap_operands;
      g = dot_geometry(plan);
      bool is_better = is_reachable() && (!was_reachable || g->column.extent.is_constant());
      if (!is_better) plan.swap_operands = !plan.swap_operands, g = first;
    }
    if (!g) return "register tiles do not cover it";
    bool vector_constant = plan.swap_operands ? lhs_constant : rhs_constant;
    if (g->word_k > 1 && !vector_constant) return "words of integers are constants";
    if (chooses) plan.unpacked = !vector_constant && can_stay(*g, target_);
    if (plan.unpacked && !can_stay(*g, target_))
      return "columns do not lie together as words: they are packed";
    if (!plan.unpacked && !g->has_static_columns()) return "what varies is not packed";
    return "";
  }

  // Chooses how many bits constant columns are packed in, and whether they are widened before the products.
  std::string choose_bits(ContractionPlan& plan, bool chooses, DotGeometry& g) const {
    Value columns = root_.operands[plan.swap_operands ? 0 : 1];
    if (std::string wrong = choose_four_bits(plan, chooses, columns, g.shape); !wrong.empty()) return wrong;
    bool may_widen =
        plan.four_bits || (is_packable_constant(columns) && !plan.swap_operands && becomes_f32(g));
    if (chooses) plan.widened = may_widen && is_profitable_widened(g);
    if (plan.widened && !may_widen) return "constant columns of fewer bits than products take are widened";
    if (plan.widened) g = g.widened();
    return "";
  }

  std::string choose_four_bits(ContractionPlan& plan, bool chooses, Value columns,
                               const ContractionShape& shape) const {
    bool may_be = fit_four_bits(columns) && shape.mac.k_group() > 1 && shape.mac.kind != MacKind::Dot16 &&
                  target_.cpu.lanes(32) > 1;
    if (chooses) plan.four_bits = may_be && (!form() || form()->four_bits);
    if (plan.four_bits && !may_be) return "constant bytes of small numbers lie in four bits";
    return "";
  }

  // Tile matrices read their operands from memory, so they need columns of four bits widened.
  std::string finish_bits(ContractionPlan& plan, bool chooses) const {
    bool is_matrix = plan.mac.kind == MacKind::TileMatrix;
    if (chooses && plan.four_bits && is_matrix) plan.widened = true;
    if (plan.four_bits && is_matrix && !plan.widened) return "tile matrices take no columns of four bits";
    if (chooses && plan.widened) plan.tiling.columns_outermost = true;
    if (plan.widened && !plan.tiling.columns_outermost) return "columns are widened by the group, outermost";
    return "";
  }

  static bool becomes_f32(const DotGeometry& g) {
    const MacInstruction& mac = g.shape.mac;
    return mac.kind == MacKind::Fma && mac.lhs == DType::F32 && mac.rhs != DType::F32 &&
           mac.accumulator == DType::F32;
  }
  int64_t blocks() const { return root_.operands[1].dim(1); } // blocks of a blocked dot
  void take_whole_blocks(Tiling& tiling) const {
    while (blocks() % tiling.split_k != 0) ++tiling.split_k;
  }

  // If there are more rows than a tile has, every tile would widen the columns again. A packed form that is
  // cut into parts is followed as it is.
  // Whether rows of bytes can be widened for all columns: products take pairs of them, and nothing but the
  // place of a tile decides what it reads.
  bool may_widen_rows(const ContractionPlan& plan, const ContractionShape& shape) const {
    if (plan.mac.kind != MacKind::Dot4 || root_.op->is(Opcode::Composite)) return false;
    MacFacts facts = facts_of(plan.mac, target_);
    bool in_pairs = facts.form == MacForm::Pairs && facts.register_bits == 32 && target_.cpu.vector_bits == 0;
    const TileShape& tile = plan.tiling.tile;
    return in_pairs && shape.k_tail == 0 && shape.vector_outer_dims == 0 && !shape.m_varies &&
           !context_.by_rows && !plan.widened && !plan.four_bits && tile.column_streams == 1 &&
           tile.k_interleave == 1 && plan.tiling.row_block == 0 && plan.tiling.split_k == 1 &&
           !plan.tiling.optimize_size &&
           std::all_of(shape.k.begin(), shape.k.end(),
                       [](const ReductionLoop& loop) { return loop.kind == ReductionLoop::Kind::Rolled; });
  }

  // Widening takes a few instructions for a word of a row, and saves two in every group of columns. The
  // memory that the pairs of a tile take is to be small beside what is read and stored.
  bool are_pairs_profitable(const ContractionPlan& plan, const ContractionShape& shape) const {
    constexpr int64_t kMinGroups = 4, kPart = 4;
    int64_t steps = plan.mac.k_group();
    for (const ReductionLoop& loop : shape.k) steps *= loop.extent;
    int64_t bytes = 2 * steps * std::min<int64_t>(plan.tiling.tile.rows, shape.m);
    auto around = static_cast<int64_t>(
        root_.op->operand(plan.swap_operands ? 1 : 0).type().at_bound().physical_byte_size() +
        instruction_.type().at_bound().physical_byte_size());
    return column_groups(shape.n, plan.tiling.tile).count() >= kMinGroups && kPart * bytes <= around;
  }

  std::string choose_pairs(ContractionPlan& plan, bool chooses, const ContractionShape& shape) const {
    bool may_widen = may_widen_rows(plan, shape);
    if (chooses) plan.widens_rows = may_widen && are_pairs_profitable(plan, shape);
    if (!plan.widens_rows) return "";
    if (!may_widen)
      return "rows of bytes are widened where products take pairs of them, whole tiles at a time";
    if (chooses) plan.tiling.columns_outermost = false;
    return plan.tiling.columns_outermost ? "rows are widened by the tile, outermost" : "";
  }

  bool is_profitable_widened(const DotGeometry& g) const {
    if (form() && form()->widened && !form()->four_bits) return true;
    return has_more_rows(g.shape, choose_tiling(g.widened().shape, target_).tile.rows);
  }
  // Whether several tiles of rows pass the same columns.
  static bool has_more_rows(const ContractionShape& shape, int64_t rows) {
    int64_t passes = shape.m;
    for (size_t i = static_cast<size_t>(shape.vector_outer_dims); i < shape.outer.size(); ++i)
      passes *= shape.outer[i];
    return passes > rows;
  }

  // The wider side goes into lanes; packing a constant side costs nothing at run time.
  bool prefers_swapped_operands(bool lhs_constant, bool rhs_constant) const {
    auto free_elements = [&](int operand, const char* batch, const char* contract) {
      Type type = root_.op->operand(operand).type().at_bound();
      int64_t count = type.num_elements();
      for (const char* role : {batch, contract})
        for (int64_t dim : root_.op->attributes().ints(role))
          count /= std::max<int64_t>(1, type.dim(static_cast<int>(dim)));
      return count;
    };
    int64_t lhs_free = free_elements(0, "lhs_batch", "lhs_contract"),
            rhs_free = free_elements(1, "rhs_batch", "rhs_contract");
    // Columns must not vary.
    bool lhs_varies = !root_.op->operand(0).type().is_static(),
         rhs_varies = !root_.op->operand(1).type().is_static();
    if (lhs_varies != rhs_varies) return rhs_varies;
    return rhs_free < target_.cpu.lanes(32) && lhs_free > rhs_free && (lhs_constant || !rhs_constant);
  }

  // In a single pass over weights that stay in a cache between runs, the hardware fetches ahead better than
  // code can.
  void set_streams(Tiling& tiling, const DotGeometry& g, bool packed_weights) const {
    bool passes_once = g.shape.m <= tiling.tile.rows;
    bool left_to_hardware =
        passes_once && context_.model_weight_bytes <= share_of(target_.cpu.l3_bytes, cache_share::kScratch);
    // If one stream alone reaches the memory's bandwidth, requests would take slots that widening needs.
    bool widens = g.shape.mac.kind == MacKind::Fma && g.shape.mac.lhs != g.shape.mac.rhs;
    left_to_hardware |=
        passes_once && (tiling.tile.column_streams > 1 || (widens && target_.cpu.memory_streams == 1));
    tiling.streams_vectors = packed_weights && !left_to_hardware && target_.cpu.has_caches() &&
                             g.shape.vector_bytes > target_.cpu.l1_bytes;
  }

  // Filters pass once per run: those after the group at hand come from far unless they are asked for early.
  std::string set_streams(Tiling& tiling, const ConvolutionGeometry& g) const {
    if (!context_.decides("prefetch_vectors"))
      tiling.streams_vectors = target_.cpu.has_caches() && !context_.by_rows &&
                               g.shape.vector_bytes > share_of(target_.cpu.l2_bytes, cache_share::kHandedOn);
    if (!context_.decides("prefetch_scalars"))
      tiling.streams_scalars = target_.cpu.has_caches() && g.in_block > 0 &&
                               g.shape.scalar_bytes > share_of(target_.cpu.l1_bytes, cache_share::kScratch);
    if (tiling.streams_vectors && context_.by_rows) return "members of a chain ask for no filters";
    if (tiling.streams_scalars && g.in_block == 0) return "channels lie in no blocks that are asked for";
    return tiling.looks_up_words ? "there are no words of integers that a table has" : "";
  }

  // A table of all values that a step of a word may have takes a shift and a look-up for each step, in place
  // of two shifts and a conversion.
  bool looks_up_words(const DotGeometry& g) const {
    return g.word_k == 8 && target_.cpu.has_word_tables && target_.cpu.vector_parts == 1 &&
           g.shape.mac.kind == MacKind::Fma;
  }

  std::string complete_convolution(ContractionPlan& plan, bool chooses) {
    bool polyphase = plan.algorithm == Algorithm::Polyphase;
    if (polyphase && context_.by_rows) return "a chain has no polyphase members";
    ComputedConvolution computed = ComputedConvolution::of(root_, instruction_.type(), target_.cpu.lanes(32));
    if (polyphase != (computed.polyphase != nullptr))
      return polyphase ? "it is no transposed convolution whose phases fill vectors" : "it has phases";
    auto g = computed.geometry(plan.mac, context_.by_rows);
    if (!g) return "register tiles do not cover it";
    const MacInstruction first_mac = plan.mac;
    auto planned = std::make_shared<PlannedConvolution>(PlannedConvolution{computed, *g});
    g->shape.optimize_size = context_.options.goals.optimize_size();
    if (!context_.by_rows && is_packable_constant(computed.filter))
      g->shape.weight_bytes = context_.model_weight_bytes;
    if (!target_.cpu.has_embedded_broadcast && !form()) g->shape.max_k_interleave = 1;
    if (chooses && is_packable_constant(computed.filter)) take_form(g->shape);
    if (std::string wrong = choose_four_bits(plan, chooses, computed.filter, g->shape); !wrong.empty())
      return wrong;
    if (plan.four_bits && (context_.by_rows || polyphase)) {
      if (!chooses) return "members of chains, and phases, have no columns of four bits";
      plan.four_bits = false;
    }
    if (plan.widened && !plan.four_bits) return "a convolution's filters of four bits are widened";
    if (context_.by_rows)
      take_chain_tile(plan, *g);
    else
      prefer_matrices(plan, *g);
    if (plan.mac != first_mac) planned->geometry = *computed.geometry(plan.mac, context_.by_rows);
    plan.convolution = std::move(planned);
    bool is_matrix = plan.mac.kind == MacKind::TileMatrix;
    if (is_matrix && context_.by_rows && !is_chain_tile(plan.tiling.tile))
      return "tile matrices of a chain have one shape, or there are none";
    if (is_matrix && polyphase) return "phases are no rows of tile matrices";
    bool is_long = g->window[g->tiled].size > kMaxUnrolledWindow && !context_.by_rows;
    if (chooses && !is_matrix && is_long && lacks_for_copy(*g, FeatureMapCopy::PaddedRows).empty())
      plan.feature_map_copy = FeatureMapCopy::PaddedRows;
    bool is_copied = plan.feature_map_copy != FeatureMapCopy::None;
    if (is_copied && is_matrix == (plan.feature_map_copy == FeatureMapCopy::PaddedRows))
      return "tile matrices read rows or windows of a copy of the feature map, and registers its padded rows";
    // Unless the plan says so, an image is copied only if it has no rows.
    if (is_matrix && chooses && !is_copied && !lacks_for_matrices(*g).empty()) {
      plan.feature_map_copy = FeatureMapCopy::Rows;
      is_copied = true;
    }
    if (is_copied && context_.by_rows) return "a chain reads no copy of a feature map";
    std::string lacks = is_copied ? lacks_for_copy(*g, plan.feature_map_copy) : lacks_for_matrices(*g);
    if ((is_matrix || is_copied) && !lacks.empty()) return lacks;
    *g = g->over(plan.feature_map_copy);
    shape_ = g->shape;
    set_tiling(plan, shape_, context_, chooses && plan.tiling.tile.rows == 0);
    if (!context_.decides("rolled_k")) plan.tiling.rolls_k |= shares_scalars(*g);
    if (std::string wrong = check_matrices(plan, g->shape, ""); !wrong.empty()) return wrong;
    if (chooses && plan.four_bits) plan.widened = has_more_rows(g->shape, plan.tiling.tile.rows);
    if (std::string wrong = finish_bits(plan, chooses); !wrong.empty()) return wrong;
    if (std::string wrong = choose_pairs(plan, chooses, g->shape); !wrong.empty()) return wrong;
    if (std::string wrong = set_streams(plan.tiling, *g); !wrong.empty()) return wrong;
    if (plan.tiling.split_k > 1 || plan.tiling.row_block > 0)
      return "only dots split k and have blocks of rows";
    if (plan.swap_operands || plan.unpacked || plan.tiling.tile.whole_panels)
      return "a convolution's filters are packed columns, the last panel no wider than these";
    if (chooses && !context_.by_rows)
      share_out(plan.tiling, g->shape, target_, context_.options.goals.threads, !g->splits_rows());
    if (chooses) choose_accumulators(plan, g->shape);
    set_epilogue_unroll(plan.tiling);
    if (plan.tiling.split_m > 1 && context_.by_rows) return "members of a chain are cut with it";
    std::string wrong = check_tiling(plan.tiling, g->shape);
    return wrong.empty() ? check_split_m(plan.tiling, g->shape, !g->splits_rows()) : wrong;
  }

  std::string complete_planar(ContractionPlan& plan, bool chooses) {
    auto g = PlanarGeometry::of(*root_.op, instruction_.type(), target_);
    if (!g || context_.by_rows)
      return "planes want a convolution of f32 over plain rows without stride, groups and dilated inputs";
    shape_ = g->shape;
    plan.planes = std::make_shared<PlanarGeometry>(*g);
    set_tiling(plan, shape_, context_, chooses);
    const Tiling& tiling = plan.tiling;
    if (tiling.streams_vectors || tiling.streams_scalars || tiling.looks_up_words)
      return "planes ask for nothing ahead of time";
    if (plan.tiling.split_k > 1 || plan.tiling.row_block > 0 || plan.tiling.split_m > 1 ||
        plan.tiling.tile.column_streams > 1 || plan.tiling.tile.panel > 0 || plan.tiling.tile.whole_panels ||
        plan.swap_operands || plan.unpacked || plan.four_bits || plan.widened || plan.widens_rows ||
        plan.rolled_epilogue || plan.bias_in_accumulators)
      return "planes have no split_k, no blocks of rows, and neither bias nor epilogue of another kind";
    return check_tiling(plan.tiling, g->shape);
  }

  const Instruction& instruction_;
  const KernelRoot& root_;
  const PlanningContext& context_;
  const Machine& target_;
  bool may_be_matrices_ = false; // the cost model chooses the product
  ContractionShape shape_;       // for which the tiling is chosen
};

} // namespace

std::string complete(ContractionPlan& plan, const Instruction& instruction, const PlanningContext& context) {
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root) return "it is no dot and no convolution with code per element behind it";
  return ContractionPlanning(instruction, *root, context).complete(plan);
}

std::vector<TileShape> ranked_tiles(const ContractionPlan& plan, const Instruction& instruction,
                                    const PlanningContext& context, size_t max) {
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root || plan.mac.kind == MacKind::TileMatrix) return {};
  ContractionPlan own = plan;
  ContractionPlanning planning(instruction, *root, context);
  if (!planning.complete(own).empty()) return {};
  return ranked_tiles(planning.shape(), context.options.target, max);
}

} // namespace firn::plan
