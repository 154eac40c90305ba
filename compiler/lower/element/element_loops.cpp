// Collapses, vectorises and partitions element loops.
#include "compiler/lower/element/element_loops.h"

#include "compiler/lower/item_loops.h"
#include "compiler/lower/kernel_maker.h"

#include <algorithm>
#include <bit>

namespace firn::lower {
namespace {

using kernel::Builder;

// Physical dims that one loop walks.
struct Group {
  std::vector<size_t> dims; // outermost first
  IntExpr extent = 1;
};

SymbolRef make_symbol(std::string name, const IntExpr& extent) {
  return std::make_shared<const Symbol>(
      Symbol{std::move(name), 0, std::max<int64_t>(0, extent.upper_bound() - 1)});
}

// Emits the rest of a varying extent behind vectors of `lanes` lanes: vectors of half as many, and so on.
void emit_ladder(Builder& builder, const IntExpr& extent, int lanes, const SymbolRef& symbol,
                 const std::function<void(const Lanes&)>& body) {
  for (int width = lanes / 2; width >= 1; width /= 2)
    builder.loop(floor_div(extent, 2 * width) * (2 * width), floor_div(extent, width) * width, width,
                 [&](const IntExpr& at) {
                   body({width > 1 ? symbol : nullptr, at, width});
                 });
}

// One box of elements: the whole tensor, or its whole blocks, or the rest of the last block.
struct LoopPartition {
  std::vector<int64_t> start;  // per physical dim
  std::vector<IntExpr> extent; // per physical dim
  // An upper bound.
  int64_t elements() const {
    int64_t product = 1;
    for (const IntExpr& e : extent) product *= e.upper_bound();
    return product;
  }
};

class LoopsEmitter {
public:
  LoopsEmitter(KernelMaker& maker, const ElementLoops& loops)
      : maker_(maker), b_(maker.builder()), loops_(loops),
        items_(
            plan::element_items(maker.context().options().goals.threads, std::max<int64_t>(1, loops.body_k))),
        dims_(physical_dims_of(loops.type.at_bound())) {}

  void emit() {
    if (loops_.parallel && maker_.context().target().gpu) return emit_each();
    std::vector<LoopPartition> partitions = split_blocks();
    split_loops(partitions);
    for (const LoopPartition& partition : partitions)
      emit_partition(partition, loops_.parallel && partitions.size() == 1);
  }

private:
  // Every element is an item, so that neighbouring threads touch neighbouring elements.
  void emit_each() {
    LoopPartition whole{std::vector<int64_t>(dims_.size(), 0), loops_.type.physical_extents()};
    IntExpr count = 1;
    for (const IntExpr& extent : whole.extent) count = count * extent;
    loops_.body(index_at(whole, unflatten(b_.set_parallel(count), whole.extent)), {});
  }

  // Blocked dims end in a partly used block if the block does not divide their extent.
  std::vector<LoopPartition> split_blocks() const {
    LoopPartition whole;
    whole.start.assign(dims_.size(), 0);
    whole.extent = loops_.type.physical_extents();
    std::vector<LoopPartition> partitions = {whole};
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (dims_[i].unit == 1 || loops_.type.dim(dims_[i].logical) % dims_[i].unit == 0) continue;
      int64_t used = loops_.type.dim(dims_[i].logical);
      size_t inner = i + 1;
      while (dims_[inner].logical != dims_[i].logical) ++inner;
      std::vector<LoopPartition> next;
      for (LoopPartition partition : partitions) {
        LoopPartition rest = partition;
        partition.extent[i] = used / dims_[i].unit;
        if (used >= dims_[i].unit) next.push_back(partition);
        rest.start[i] = used / dims_[i].unit;
        rest.extent[i] = 1;
        rest.extent[inner] = used % dims_[i].unit;
        next.push_back(rest);
      }
      partitions = std::move(next);
    }
    return partitions;
  }

  void split_loops(std::vector<LoopPartition>& partitions) const {
    if (partitions.size() != 1) return;
    std::vector<SymbolRef> symbols = make_symbols(partitions[0]);
    ElementUses uses = loops_.uses(index_at(partitions[0], as_positions(symbols)));
    size_t innermost = dims_.size();
    while (innermost > 0 && partitions[0].extent[innermost - 1] == IntExpr(1)) --innermost;
    for (const ElementUses::SplitPoint& split_point : uses.split_points)
      for (size_t i = 0; i < dims_.size(); ++i)
        if (!split_point.only_innermost || i + 1 == innermost)
          split_at(partitions, i, split_point, *symbols[i]);
  }

  // Splits boxes at the place where the cut's expression, if it depends on dim i alone, crosses the
  // threshold.
  void split_at(std::vector<LoopPartition>& partitions, size_t i, const ElementUses::SplitPoint& split_point,
                const Symbol& symbol) const {
    std::vector<SymbolRef> mentioned = split_point.expression.symbols();
    if (mentioned.size() != 1 || mentioned[0].get() != &symbol) return;
    std::optional<int64_t> step = split_point.expression.linear_coefficient(symbol);
    if (!step || *step == 0) return;
    // The first position on the other side.
    int64_t room = split_point.threshold - split_point.expression.constant_part();
    IntExpr position = *step > 0 ? ceil_div(IntExpr(room), *step) : floor_div(IntExpr(-room), -*step) + 1;
    std::vector<LoopPartition> result;
    for (LoopPartition& partition : partitions) {
      int64_t at = position.value() - partition.start[i];
      if (!partition.extent[i].is_constant() || at <= 0 || at >= partition.extent[i].value() ||
          static_cast<int64_t>(partitions.size()) >= loops_.code.partitions) {
        result.push_back(partition);
        continue;
      }
      LoopPartition low = partition, high = partition;
      low.extent[i] = at;
      high.start[i] += at;
      high.extent[i] = partition.extent[i] - at;
      result.push_back(low);
      result.push_back(high);
    }
    partitions = std::move(result);
  }

  std::vector<SymbolRef> make_symbols(const LoopPartition& partition) const {
    std::vector<SymbolRef> symbols;
    for (size_t i = 0; i < dims_.size(); ++i)
      symbols.push_back(make_symbol("d" + std::to_string(i), partition.extent[i]));
    return symbols;
  }
  static std::vector<IntExpr> as_positions(const std::vector<SymbolRef>& symbols) {
    std::vector<IntExpr> positions;
    for (const SymbolRef& symbol : symbols) positions.push_back(IntExpr::symbol(symbol));
    return positions;
  }

  // The logical index at positions within the box.
  Index index_at(const LoopPartition& partition, const std::vector<IntExpr>& at) const {
    Index index(loops_.type.dims.size(), IntExpr(0));
    for (size_t i = 0; i < dims_.size(); ++i) {
      IntExpr& part = index[static_cast<size_t>(dims_[i].logical)];
      part = part + (at[i] + partition.start[i]) * dims_[i].unit;
    }
    return index;
  }

  // Groups dims that every access walks through with one stride.
  std::vector<Group> collapse(const LoopPartition& partition, const ElementUses& uses,
                              const std::vector<SymbolRef>& symbols) const {
    std::vector<Group> groups;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (partition.extent[i] == IntExpr(1)) continue;
      if (!groups.empty()) {
        size_t outer = groups.back().dims.back();
        auto joined = [&](const IntExpr& expression) {
          auto a = expression.coefficient(*symbols[outer]), c = expression.coefficient(*symbols[i]);
          return a && c && *a == *c * at_least_one(partition.extent[i]);
        };
        if (std::all_of(uses.offsets.begin(), uses.offsets.end(), joined) &&
            std::all_of(uses.decisions.begin(), uses.decisions.end(), joined)) {
          groups.back().dims.push_back(i);
          groups.back().extent = groups.back().extent * partition.extent[i];
          continue;
        }
      }
      groups.push_back({{i}, partition.extent[i]});
    }
    return groups;
  }

  // Whether joined loops leave more conditions in the code than separate ones: a quotient by an extent that
  // varies does not show that it ends with the box.
  bool decides_more(const LoopPartition& partition, const std::vector<Group>& groups,
                    const ElementUses& uses) const {
    std::vector<IntExpr> positions(dims_.size(), IntExpr(0));
    bool joined = false;
    for (const Group& group : groups) {
      joined |= group.dims.size() > 1 && !group.extent.is_constant();
      spread(group, partition, IntExpr::symbol(make_symbol("group", group.extent)), positions);
    }
    return joined && loops_.uses(index_at(partition, positions)).decisions.size() > uses.decisions.size();
  }

  static std::vector<Group> separate(const LoopPartition& partition) {
    std::vector<Group> groups;
    for (size_t i = 0; i < partition.extent.size(); ++i)
      if (!(partition.extent[i] == IntExpr(1))) groups.push_back({{i}, partition.extent[i]});
    return groups;
  }

  bool can_vectorise(const Group& group, const ElementUses& uses,
                     const std::vector<SymbolRef>& symbols) const {
    // Strides of the outer dims follow from the innermost one's, by extents that may vary.
    for (const IntExpr& expression : uses.offsets)
      if (!expression.linear_coefficient(*symbols[group.dims.back()])) return false;
    for (size_t dim : group.dims)
      for (const IntExpr& expression : uses.decisions)
        if (expression.mentions(*symbols[dim])) return false;
    if (!uses.reduces || loops_.code.strided) return true;
    // A reduction with strided loads is better computed in vectors along its reduced dim.
    return std::all_of(uses.offsets.begin(), uses.offsets.end(), [&](const IntExpr& expression) {
      return std::abs(*expression.linear_coefficient(*symbols[group.dims.back()])) <= 1;
    });
  }

  // Positions of the group's dims at position `at` of its loop.
  static void spread(const Group& group, const LoopPartition& partition, IntExpr at,
                     std::vector<IntExpr>& positions) {
    for (size_t i = group.dims.size(); i-- > 0;) {
      size_t dim = group.dims[i];
      positions[dim] = i == 0 ? at : floor_mod(at, at_least_one(partition.extent[dim]));
      at = floor_div(at, at_least_one(partition.extent[dim]));
    }
  }

  void emit_partition(const LoopPartition& partition, bool parallel) {
    std::vector<SymbolRef> symbols = make_symbols(partition);
    std::vector<IntExpr> positions = as_positions(symbols);
    ElementUses uses = loops_.uses(index_at(partition, positions));
    std::vector<Group> groups = collapse(partition, uses, symbols);
    if (decides_more(partition, groups, uses)) groups = separate(partition);
    if (groups.empty()) {
      loops_.body(index_at(partition, std::vector<IntExpr>(dims_.size(), IntExpr(0))), {});
      return;
    }
    bool vectors = can_vectorise(groups.back(), uses, symbols);
    lanes_ = vectors ? lanes_along(groups.back().extent, loops_.code.lanes) : 1;
    unroll_ = plan::unroll_of(loops_.code, uses.operations);
    positions.assign(dims_.size(), IntExpr(0));
    parallel = parallel && partition.elements() >= items_.min_elements;
    if (parallel && groups.size() == 1) return emit_chunks(partition, groups[0], positions);
    if (parallel) return emit_grouped_items(partition, groups, positions);
    emit_groups(partition, groups, 0, positions);
  }

  // All groups but the innermost may be cut.
  void emit_grouped_items(const LoopPartition& partition, const std::vector<Group>& groups,
                          std::vector<IntExpr> positions) {
    LoopNest nest{{}, groups.size() - 1, [&](size_t loop) {
                    int64_t elements = 1;
                    for (size_t i = loop + 1; i < groups.size(); ++i)
                      elements *= groups[i].extent.upper_bound();
                    return elements;
                  }};
    for (const Group& group : groups) nest.extents.push_back(group.extent);
    auto enter = [&](size_t i, const IntExpr& at) { spread(groups[i], partition, at, positions); };
    emit_items(b_, items_, nest, enter, [&](size_t i, const IntExpr& at) {
      enter(i, at);
      emit_groups(partition, groups, i + 1, positions);
    });
  }

  void emit_groups(const LoopPartition& partition, const std::vector<Group>& groups, size_t at,
                   std::vector<IntExpr> positions) {
    const Group& group = groups[at];
    if (at + 1 == groups.size()) return emit_innermost(partition, group, positions);
    b_.loop(0, group.extent, 1, [&](const IntExpr& iv) {
      spread(group, partition, iv, positions);
      emit_groups(partition, groups, at + 1, positions);
    });
  }

  // Calls the body for one vector; `lanes.symbol` runs along the group.
  void emit_vector(const LoopPartition& partition, const Group& group, std::vector<IntExpr> positions,
                   const Lanes& lanes) {
    spread(group, partition, lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first, positions);
    loops_.body(index_at(partition, positions), lanes);
  }

  void emit_innermost(const LoopPartition& partition, const Group& group,
                      const std::vector<IntExpr>& positions) {
    emit_vector_loop(b_, group.extent, lanes_, unroll_,
                     [&](const Lanes& lanes) { emit_vector(partition, group, positions, lanes); });
  }

  // One long loop, cut into pieces for threads.
  void emit_chunks(const LoopPartition& partition, const Group& group,
                   const std::vector<IntExpr>& positions) {
    int64_t chunk = plan::vectors_of_item(items_, group.extent.upper_bound() / lanes_, lanes_, unroll_);
    bool varies = !group.extent.is_constant();
    IntExpr vectors = floor_div(group.extent, lanes_);
    int rest = varies ? 0 : static_cast<int>(group.extent.value() % lanes_);
    IntExpr count = varies ? ceil_div(group.extent, chunk * lanes_) : ceil_div(vectors, chunk);
    IntExpr p = b_.set_parallel(count);
    SymbolRef symbol = lanes_ > 1 ? make_symbol("lane", group.extent) : nullptr;
    auto body = [&](const IntExpr& v, int64_t lanes) {
      emit_vector(partition, group, positions, {lanes > 1 ? symbol : nullptr, v, static_cast<int>(lanes)});
    };
    b_.loop(
        p * chunk, min(p * chunk + chunk, vectors), 1, [&](const IntExpr& v) { body(v * lanes_, lanes_); },
        unroll_);
    if (rest == 0 && (!varies || lanes_ == 1)) return;
    kernel::Register last =
        b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Eq, b_.index(p), b_.index(count - 1));
    b_.if_then_else(
        last,
        [&] {
          if (varies)
            emit_ladder(b_, group.extent, lanes_, symbol,
                        [&](const Lanes& lanes) { emit_vector(partition, group, positions, lanes); });
          else
            body(vectors * lanes_, rest);
          return std::vector<kernel::Register>{};
        },
        [] { return std::vector<kernel::Register>{}; });
  }

  KernelMaker& maker_;
  Builder& b_;
  const ElementLoops& loops_;
  plan::ElementItems items_;
  std::vector<PhysicalDim> dims_;
  int lanes_ = 1;
  int64_t unroll_ = 1;
};

} // namespace

void emit_element_loops(KernelMaker& maker, const ElementLoops& loops) {
  LoopsEmitter(maker, loops).emit();
}

void emit_vector_loop(Builder& builder, const IntExpr& extent, int lanes, int64_t unroll,
                      const std::function<void(const Lanes&)>& body) {
  if (lanes == 1) {
    builder.loop(
        0, extent, 1,
        [&](const IntExpr& iv) {
          body({nullptr, iv, 1});
        },
        unroll);
    return;
  }
  SymbolRef symbol = make_symbol("lane", extent);
  IntExpr vectors = floor_div(extent, lanes);
  builder.loop(
      0, vectors, 1,
      [&](const IntExpr& v) {
        body({symbol, v * lanes, lanes});
      },
      plan::unroll_along(vectors.upper_bound(), unroll));
  if (!extent.is_constant()) return emit_ladder(builder, extent, lanes, symbol, body);
  auto rest = static_cast<int>(extent.value() % lanes);
  if (rest > 0) body({rest > 1 ? symbol : nullptr, vectors * lanes, rest});
}

std::vector<IntExpr> unflatten(IntExpr flat, const std::vector<IntExpr>& extents) {
  std::vector<IntExpr> index(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    IntExpr extent = at_least_one(extents[i]);
    index[i] = i == 0 ? flat : floor_mod(flat, extent);
    flat = floor_div(flat, extent);
  }
  return index;
}

int lanes_along(const IntExpr& extent, int64_t max) {
  int64_t lanes = std::clamp<int64_t>(extent.upper_bound(), 1, max);
  return static_cast<int>(extent.is_constant() ? lanes : std::bit_floor(static_cast<uint64_t>(lanes)));
}

} // namespace firn::lower
