// Which algorithm computes a dot or convolution, and with which tiles and loops.
#include "compiler/plan/contraction_plan.h"

#include "compiler/plan/choose_matrices.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/tile_matrices.h"
#include "compiler/plan/views.h"

namespace firn::plan {
namespace {

using Algorithm = ContractionPlan::Algorithm;

// Vector operations that an epilogue runs while it stores one vector.
constexpr int kFreeOperations = 2;

// Sums that start from a bias rather than zeros take registers before their first step, and in a short
// epilogue the addition costs nothing, as the stores set its pace.
bool starts_from_bias(const Instruction& instruction) {
  if (!instruction.is(Opcode::Fusion)) return false;
  int operations = 0;
  for (const auto& inner : instruction.region().instructions()) {
    bool computes = !inner->is(Opcode::Parameter) && !inner->is(Opcode::Constant) &&
                    !inner->is(Opcode::BroadcastInDim) && !inner->is(Opcode::Convolution);
    operations += computes + inner->is(Opcode::Clamp); // two instructions
  }
  return operations > kFreeOperations;
}

// A completed plan's tiling: what the plan says, and what follows from it.
void set_tiling(ContractionPlan& plan, const ContractionShape& shape, const TargetInfo& target,
                bool chooses) {
  if (chooses) {
    plan.tiling = choose_tiling(shape, target);
    return;
  }
  ContractionShape given = shape;
  given.compact = plan.tiling.compact;
  Tiling tiling = choose_tiling(given, target, &plan.tiling.tile);
  tiling.columns_outermost = plan.tiling.columns_outermost;
  tiling.parts = plan.tiling.parts;
  tiling.row_block = plan.tiling.row_block;
  tiling.shares = plan.tiling.shares;
  plan.tiling = tiling;
}

// How many operands in lanes there are: of batches, or groups.
int64_t vector_outer(const ContractionShape& shape) {
  int64_t count = 1;
  for (int i = 0; i < shape.vector_outer_dims; ++i) count *= shape.outer[static_cast<size_t>(i)];
  return count;
}

// What the busiest of `threads` does where items are each group's walk in `shares` parts: they come in order,
// and every thread takes as many as any other. In steps of one vector.
int64_t busiest(int64_t outer, const ColumnGroups& groups, int64_t steps, int64_t shares, int threads) {
  int64_t size = (steps + shares - 1) / shares, items = outer * groups.count() * shares, most = 0;
  for (int64_t thread = 0, item = 0; thread < threads; ++thread) {
    int64_t end = item + items / threads + (thread < items % threads ? 1 : 0), work = 0;
    for (; item < end; ++item) {
      int64_t group = item / shares % groups.count(), share = item % shares;
      int64_t vectors = group < groups.full_groups ? groups.vectors : groups.rest_vectors;
      work += vectors * std::min(size, steps - share * size);
    }
    most = std::max(most, work);
  }
  return most;
}

// How much longer than needed threads may be busy, if each walk stays whole for that.
constexpr double kUneven = 1.04;
constexpr int64_t kMaxSharedItems = 4096;

// A group of columns at a time is too few items for many threads: each group's walk over the rest is cut, as
// few times as leave threads busy for as long.
void choose_shares(Tiling& tiling, const ContractionShape& shape, int threads, bool may_cut_rows) {
  if (threads <= 1 || !tiling.columns_outermost || tiling.row_block > 0) return;
  ColumnWalk walk = column_walk(shape, tiling.tile);
  if (walk.dim < 0 && !may_cut_rows) return;
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  int64_t outer = vector_outer(shape), least = INT64_MAX;
  std::vector<std::pair<int64_t, int64_t>> found; // shares, steps of the busiest
  for (int64_t wanted = 1; wanted <= walk.steps; ++wanted) {
    int64_t size = (walk.steps + wanted - 1) / wanted, shares = (walk.steps + size - 1) / size;
    if (!found.empty() && found.back().first == shares) continue;
    if (shares > 1 && shares * outer * groups.count() > kMaxSharedItems) break;
    found.push_back({shares, busiest(outer, groups, walk.steps, shares, threads)});
    least = std::min(least, found.back().second);
  }
  for (const auto& [shares, steps] : found) {
    tiling.shares = shares;
    if (static_cast<double>(steps) <= kUneven * static_cast<double>(least)) return;
  }
}

// Tiles of rows that leave threads waiting for each other make room for groups of columns, where rows stay
// near for the next group.
void choose_order(Tiling& tiling, const ContractionShape& shape, const TargetInfo& target, int threads,
                  bool may_cut_rows) {
  constexpr double kGain = 1.08;
  if (threads <= 1 || tiling.columns_outermost || tiling.row_block > 0) return;
  if (shape.scalar_bytes > share_of(target.l2_bytes, cache_share::kWorkingSet)) return;
  int64_t outer = 1;
  for (int64_t extent : shape.outer) outer *= extent;
  int64_t items = outer > 1 ? outer : (shape.m + tiling.tile.rows - 1) / tiling.tile.rows;
  double by_rows = imbalance(items, threads);
  Tiling other = tiling;
  other.columns_outermost = true;
  choose_shares(other, shape, threads, may_cut_rows);
  ColumnWalk walk = column_walk(shape, tiling.tile);
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  int64_t most = busiest(vector_outer(shape), groups, walk.steps, other.shares, threads),
          all = vector_outer(shape) * groups.total_vectors * walk.steps;
  double by_columns = static_cast<double>(most * threads) / static_cast<double>(all);
  if (by_columns * kGain < by_rows) tiling = other;
}

std::string check_shares(const Tiling& tiling, const ContractionShape& shape, bool may_cut_rows) {
  if (tiling.shares == 1) return "";
  ColumnWalk walk = column_walk(shape, tiling.tile);
  if (!tiling.columns_outermost || tiling.row_block > 0 || (walk.dim < 0 && !may_cut_rows))
    return "shares want columns outermost, no blocks of rows, and lines that a tile does not leave";
  int64_t shares = std::min(tiling.shares, walk.steps), size = (walk.steps + shares - 1) / shares;
  if (shares < tiling.shares || (shares - 1) * size >= walk.steps)
    return "a group of columns walks " + std::to_string(walk.steps) + " steps: shares would be left without";
  return "";
}

std::string check_tiling(const Tiling& tiling, const ContractionShape& shape) {
  if (tiling.tile.k_interleave > 1 && shape.max_k_interleave % tiling.tile.k_interleave != 0)
    return "steps can be interleaved by " + std::to_string(shape.max_k_interleave) + " at most here";
  if (tiling.tile.panel > 0 && tiling.tile.panel % tiling.tile.vectors != 0)
    return "a tile takes an even part of its panel";
  if (!tiling.columns_outermost && shape.vector_outer_dims > 0)
    return "columns are outermost where batches or groups have their own";
  return "";
}

// Weights pass from memory once if all rows are done with a column group while it is near. Of a long
// reduction that takes parts, so that one part of both operands stays in the second cache level; of many
// rows, blocks of rows.
bool allows_blocks(const DotGeometry& g, const TileShape& tile) {
  return g.contract.size() == 1 && g.shape.outer.empty() && g.shape.m > tile.rows;
}

// Tiles that leave little of so many rows, so that each thread's blocks have as many as any other's; if they
// are about as good.
void fit_tiles_to_blocks(Tiling& tiling, const ContractionShape& shape, const TargetInfo& target,
                         int64_t rows) {
  constexpr double kAsGood = 1.03;
  ContractionShape block = shape;
  block.m = rows;
  TileShape tile = choose_tiling(block, target).tile;
  Tiling fitting = choose_tiling(shape, target, &tile);
  if (fitting.cycles > kAsGood * tiling.cycles) return;
  fitting.columns_outermost = tiling.columns_outermost;
  fitting.parts = tiling.parts;
  tiling = fitting;
}

// `form`: the plan whose parts the columns lie in; null: they are chosen.
void choose_blocks(Tiling& tiling, const DotGeometry& g, const TargetInfo& target, int threads,
                   const ContractionPlan* form) {
  const TileShape& tile = tiling.tile;
  int64_t rows = g.shape.m, steps = g.contract[0].extent;
  if (form) tiling.parts = form->tiling.parts;
  if (tiling.parts > 1) tiling.columns_outermost = true;
  if (!allows_blocks(g, tile) || target.l2_bytes == 0) return;
  tiling.columns_outermost = true;
  // Beside a block of rows the cache holds two groups of columns, the one at hand and the one on its way,
  // and the results of the block.
  int64_t column_bytes = bit_width(g.columns.type.dtype) / 8, bytes = bit_width(g.rows.type.dtype) / 8;
  int64_t group_bytes = steps * tile.vectors * tile.lanes * column_bytes,
          most = share_of(target.l2_bytes, cache_share::kColumnGroup);
  if (!form && group_bytes > most && rows * steps * bytes > share_of(target.l2_bytes, cache_share::kHandedOn))
    tiling.parts = static_cast<int>((group_bytes + most - 1) / most);
  int64_t row_bytes = std::max<int64_t>(1, steps / tiling.parts * bytes);
  int64_t room = share_of(target.l2_bytes, cache_share::kRowBlock);
  int64_t block = std::max<int64_t>(1, room / row_bytes / tile.rows) * tile.rows;
  if (rows <= block) return;
  int64_t blocks = (rows + block - 1) / block; // evenly
  if (threads > 1) {
    blocks = std::min((rows + tile.rows - 1) / tile.rows, (blocks + threads - 1) / threads * threads);
    fit_tiles_to_blocks(tiling, g.shape, target, (rows + blocks - 1) / blocks);
  }
  int64_t tiles = (rows + tile.rows - 1) / tile.rows;
  tiling.row_block = (tiles + blocks - 1) / blocks * tile.rows;
}

std::string check_blocks(const Tiling& tiling, const DotGeometry& g) {
  if (tiling.parts == 1 && tiling.row_block == 0) return "";
  if (!allows_blocks(g, tiling.tile) || !tiling.columns_outermost)
    return "parts and blocks of rows want one loop of the reduction, no batches, more rows than a tile has, "
           "and columns outermost";
  if ((tiling.parts - 1) * g.part_steps(tiling.parts) >= g.contract[0].extent)
    return "parts would be left without steps";
  if (tiling.row_block % tiling.tile.rows != 0 || tiling.row_block >= g.shape.m + tiling.tile.rows)
    return "a block of rows is a number of whole tiles of the " + std::to_string(g.shape.m) + " rows";
  return "";
}

class ContractionPlanning {
public:
  ContractionPlanning(const Instruction& instruction, const KernelRoot& root,
                      const ContractionContext& context)
      : instruction_(instruction), root_(root), context_(context), target_(context.options.target) {}

  std::string complete(ContractionPlan& plan) {
    bool chooses = plan.tiling.tile.rows == 0, is_dot = !root_.op->is(Opcode::Convolution);
    if (plan.algorithm != Algorithm::Direct && is_dot) return "this is a dot";
    if (chooses) {
      plan.looped_epilogue = has_long_epilogue(instruction_) && plan.algorithm != Algorithm::Planar;
      plan.bias_first = plan.algorithm == Algorithm::Direct && !is_dot && starts_from_bias(instruction_);
    }
    bool chooses_product = plan.product == Product{};
    if (chooses_product) {
      auto product = choose_product(*root_.op, target_, context_.options.strict_math);
      if (!product) return "register tiles do not sum such products";
      // Steps are packed as the form has them.
      bool is_other = form() && form()->product.k_group() != product->k_group();
      plan.product = is_other ? form()->product : *product;
    }
    may_be_matrices_ = chooses_product && chooses && plan.algorithm == Algorithm::Direct;
    if (std::string wrong = check_product(plan.product, *root_.op); !wrong.empty()) return wrong;
    if (plan.algorithm == Algorithm::Planar) return complete_planar(plan, chooses);
    std::string wrong = is_dot ? complete_dot(plan, chooses) : complete_convolution(plan, chooses);
    return wrong.empty() ? complete_sums(plan) : wrong;
  }

private:
  // The plan whose packed operand this one reads; null: it makes its own.
  const ContractionPlan* form() const {
    return context_.packed_as ? std::get_if<ContractionPlan>(context_.packed_as) : nullptr;
  }

  // Tile matrices keep their sums, which reach the epilogue by way of memory.
  static std::string complete_sums(ContractionPlan& plan) {
    bool is_matrix = plan.product.kind == ProductKind::TileMatrix;
    if (is_matrix) plan.looped_epilogue = true, plan.bias_first = false;
    SumsIn place = is_matrix ? SumsIn::TileRegisters : SumsIn::Registers;
    if (plan.sums != SumsIn::Registers && plan.sums != place)
      return "no kernel keeps its sums elsewhere than in registers of its products";
    plan.sums = place;
    return "";
  }

  // The product in tile matrices, if it is the cost model's to choose.
  std::optional<Product> possible_matrices(const ContractionPlan& plan) const {
    if (!may_be_matrices_ || plan.unpacked) return std::nullopt;
    return in_tile_matrices(plan.product, target_, context_.options.strict_math);
  }

  // Tile matrices in place of vectors where they take less time.
  void prefer_matrices(ContractionPlan& plan, DotGeometry& g) const {
    auto product = possible_matrices(plan);
    if (!product) return;
    Product of_rows = plan.lhs_columns ? product->swapped() : *product;
    if (matrix_cycles(g, of_rows, target_) >= choose_tiling(g.shape, target_).cycles) return;
    plan.product = *product;
    g.shape.product = of_rows;
  }
  void prefer_matrices(ContractionPlan& plan, ConvolutionGeometry& g) const {
    auto product = possible_matrices(plan);
    if (!product || context_.by_lines) return;
    MatrixChoice choice = choose_matrices(g, *product, target_);
    if (choice.cycles >= choose_tiling(g.shape, target_).cycles) return;
    plan.product = g.shape.product = *product;
    plan.packs_rows = choice.packs_rows;
  }

  // Why a plan's product cannot be had here.
  std::string check_matrices(const ContractionPlan& plan, const ContractionShape& shape,
                             const std::string& lacks) const {
    if (plan.product.kind != ProductKind::TileMatrix) return "";
    if (!in_tile_matrices(plan.product, target_, context_.options.strict_math))
      return "the CPU has no tile matrices for it, or strict numerics forbid them";
    return lacks.empty() ? check_tile_block(shape, plan.tiling.tile) : lacks;
  }

  void take_form(ContractionShape& shape) const {
    if (!form()) return;
    shape.panel = form()->tiling.tile.panel_vectors();
    shape.panel_k_interleave = form()->tiling.tile.k_interleave;
  }

  std::string complete_dot(ContractionPlan& plan, bool chooses) const {
    bool lhs_constant = is_packable_constant(root_.operands[0]),
         rhs_constant = is_packable_constant(root_.operands[1]);
    bool in_blocks = root_.op->is(Opcode::Composite);
    if (in_blocks && plan.lhs_columns) return "the integers in blocks are the columns";
    if (chooses) plan.lhs_columns = !in_blocks && wants_lhs_columns(lhs_constant, rhs_constant);
    auto g = DotGeometry::of(*root_.op, instruction_.type(), plan.lhs_columns, plan.product);
    if (!g) return "register tiles do not cover it";
    bool vector_constant = plan.lhs_columns ? lhs_constant : rhs_constant;
    if (g->word_steps > 1 && !vector_constant) return "words of integers are constants";
    DType columns = g->columns.type.dtype;
    bool is_word = columns == DType::F32 || columns == DType::I32 || columns == DType::U32;
    bool can_stay = g->column.stride == IntExpr(1) && is_word;
    if (chooses) plan.unpacked = !vector_constant && can_stay;
    if (plan.unpacked && !can_stay) return "columns do not lie together as words: they are packed";
    if (!plan.unpacked && !g->has_static_columns()) return "what varies is not packed";
    g->shape.compact = context_.options.optimize_size;
    if (vector_constant) g->shape.weight_bytes = context_.model_weight_bytes;
    if (chooses && vector_constant) take_form(g->shape);
    prefer_matrices(plan, *g);
    set_tiling(plan, g->shape, target_, chooses);
    if (std::string wrong = check_matrices(plan, g->shape, lacks_for_matrices(*g)); !wrong.empty())
      return wrong;
    if (plan.packs_rows) return "a dot's rows are read where they lie";
    if (chooses && vector_constant) choose_blocks(plan.tiling, *g, target_, context_.options.threads, form());
    if (chooses) share_out(plan.tiling, g->shape, /*may_cut_rows=*/true);
    std::string wrong = check_tiling(plan.tiling, g->shape);
    if (wrong.empty()) wrong = check_shares(plan.tiling, g->shape, /*may_cut_rows=*/true);
    if (!wrong.empty()) return wrong;
    set_streams(plan.tiling, *g, vector_constant && !plan.unpacked);
    return check_blocks(plan.tiling, *g);
  }

  void share_out(Tiling& tiling, const ContractionShape& shape, bool may_cut_rows) const {
    int threads = context_.options.threads;
    choose_order(tiling, shape, target_, threads, may_cut_rows);
    choose_shares(tiling, shape, threads, may_cut_rows);
  }

  // The wider side goes into lanes; a constant side is packed for nothing at run time.
  bool wants_lhs_columns(bool lhs_constant, bool rhs_constant) const {
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
    // Columns do not vary.
    bool lhs_varies = !root_.op->operand(0).type().is_static(),
         rhs_varies = !root_.op->operand(1).type().is_static();
    if (lhs_varies != rhs_varies) return rhs_varies;
    return rhs_free < target_.lanes(32) && lhs_free > rhs_free && (lhs_constant || !rhs_constant);
  }

  // A single pass over weights that stay in a cache between runs: the hardware fetches ahead better than code
  // can.
  void set_streams(Tiling& tiling, const DotGeometry& g, bool packed_weights) const {
    bool passes_once = g.shape.m <= tiling.tile.rows;
    bool left_to_hardware =
        passes_once && context_.model_weight_bytes <= share_of(target_.l3_bytes, cache_share::kScratch);
    tiling.streams_vectors = packed_weights && !left_to_hardware && g.shape.vector_bytes > target_.l1_bytes;
  }

  std::string complete_convolution(ContractionPlan& plan, bool chooses) const {
    bool polyphase = plan.algorithm == Algorithm::Polyphase;
    if (polyphase && context_.by_lines) return "a chain has no polyphase members";
    ComputedConvolution computed = ComputedConvolution::of(root_, instruction_.type(), target_.lanes(32));
    if (polyphase != (computed.polyphase != nullptr))
      return polyphase ? "it is no transposed convolution whose phases fill vectors" : "it has phases";
    auto g = computed.geometry(plan.product, context_.by_lines);
    if (!g) return "register tiles do not cover it";
    g->shape.compact = context_.options.optimize_size;
    if (!context_.by_lines && is_packable_constant(computed.filter))
      g->shape.weight_bytes = context_.model_weight_bytes;
    if (!target_.has_embedded_broadcast && !form()) g->shape.max_k_interleave = 1;
    if (chooses && is_packable_constant(computed.filter)) take_form(g->shape);
    prefer_matrices(plan, *g);
    bool is_matrix = plan.product.kind == ProductKind::TileMatrix;
    if (is_matrix && polyphase) return "phases are no rows of tile matrices";
    if (plan.packs_rows && !is_matrix) return "tile matrices alone read a copy of the image";
    // Left to us, a copy is for images that have no rows.
    if (is_matrix && chooses && !lacks_for_matrices(*g).empty()) plan.packs_rows = true;
    std::string lacks = context_.by_lines ? "a chain has no tile matrices"
                        : plan.packs_rows ? lacks_for_packed_rows(*g)
                                          : lacks_for_matrices(*g);
    if (is_matrix && !lacks.empty()) return lacks;
    if (plan.packs_rows) *g = g->over_packed_rows();
    set_tiling(plan, g->shape, target_, chooses);
    if (std::string wrong = check_matrices(plan, g->shape, ""); !wrong.empty()) return wrong;
    // Filters pass once per run: those after the group at hand come from far unless they are asked for early.
    plan.tiling.streams_vectors =
        g->shape.vector_bytes > share_of(target_.l2_bytes, cache_share::kHandedOn) && !context_.by_lines;
    plan.tiling.streams_scalars =
        g->in_block > 0 && g->shape.scalar_bytes > share_of(target_.l1_bytes, cache_share::kScratch);
    if (plan.tiling.parts > 1 || plan.tiling.row_block > 0)
      return "only dots have parts of the reduction and blocks of rows";
    if (plan.lhs_columns || plan.unpacked) return "a convolution's filters are packed columns";
    if (chooses && !context_.by_lines) share_out(plan.tiling, g->shape, !g->splits_rows());
    if (plan.tiling.shares > 1 && context_.by_lines) return "members of a chain are cut with it";
    std::string wrong = check_tiling(plan.tiling, g->shape);
    return wrong.empty() ? check_shares(plan.tiling, g->shape, !g->splits_rows()) : wrong;
  }

  std::string complete_planar(ContractionPlan& plan, bool chooses) const {
    auto g = PlanarGeometry::of(*root_.op, instruction_.type(), target_);
    if (!g || context_.by_lines)
      return "planes want a convolution of f32 over plain lines without stride, groups and dilated inputs";
    set_tiling(plan, g->shape, target_, chooses);
    if (plan.tiling.parts > 1 || plan.tiling.row_block > 0 || plan.tiling.shares > 1 ||
        plan.tiling.tile.panel > 0 || plan.lhs_columns || plan.unpacked || plan.looped_epilogue ||
        plan.bias_first)
      return "planes have no parts, no blocks of rows, and neither bias nor epilogue of another kind";
    return check_tiling(plan.tiling, g->shape);
  }

  const Instruction& instruction_;
  const KernelRoot& root_;
  const ContractionContext& context_;
  const TargetInfo& target_;
  bool may_be_matrices_ = false; // the product is the cost model's to choose
};

} // namespace

ComputedConvolution ComputedConvolution::of(const KernelRoot& root, const Type& result, int lanes) {
  ComputedConvolution computed{nullptr, root.op, root.operands[1], result};
  if (!has_static_types(*root.op)) return computed;
  computed.polyphase = PolyphaseConvolution::create(*root.op, root.operands[1], lanes);
  if (computed.polyphase) {
    computed.convolution = &computed.polyphase->convolution();
    computed.filter = computed.polyphase->filter();
    computed.result.dims = computed.convolution->type().dims;
  }
  return computed;
}

std::optional<ConvolutionGeometry> ComputedConvolution::geometry(const Product& product,
                                                                 bool by_lines) const {
  // Phases are stored row by row.
  return ConvolutionGeometry::of(*convolution, result, product, by_lines, polyphase != nullptr);
}

std::string complete(ContractionPlan& plan, const Instruction& instruction,
                     const ContractionContext& context) {
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root) return "it is no dot and no convolution with code per element behind it";
  return ContractionPlanning(instruction, *root, context).complete(plan);
}

std::optional<ContractionPlan> plan_contraction(const Instruction& instruction,
                                                const ContractionContext& context) {
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root) return std::nullopt;
  ContractionPlan plan;
  plan.tiling.tile.rows = 0;
  if (root->op->is(Opcode::Convolution) && !context.by_lines) {
    const TargetInfo& target = context.options.target;
    auto planes = PlanarGeometry::of(*root->op, instruction.type(), target);
    if (planes && planes->pays() && !context.options.optimize_size)
      plan.algorithm = Algorithm::Planar;
    else if (PolyphaseConvolution::applies(*root->op, root->operands[1], target.lanes(32)))
      plan.algorithm = Algorithm::Polyphase;
  }
  if (!complete(plan, instruction, context).empty()) return std::nullopt;
  return plan;
}

} // namespace firn::plan
