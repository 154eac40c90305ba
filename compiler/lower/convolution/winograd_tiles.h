// What the two transforms of a Winograd kernel share: where tiles lie, which of their elements are inside,
// and the memory between the transforms and the products.
#pragma once

#include "compiler/lower/convolution/winograd.h"

#include <functional>
#include <vector>

namespace firn::lower {

// Positions of tiles along one dim that share which of their elements are inside: a run [first, last].
struct TileClass {
  int64_t first, last;
  int low, high;        // elements [low, high) of the tile are inside
  bool at_edge = false; // how many of those are inside is known only when the code runs
};

// Classes of the tiles of one dim, the largest run first: tile t covers [t*step + offset, + size) of [0,
// extent).
std::vector<TileClass> classify_tiles(int64_t tiles, int step, int64_t offset, int size, int64_t extent);

class WinogradTiles {
public:
  // `inputs` and `products`: buffers of the kernel for V and for the products of all points.
  WinogradTiles(kernel::Builder& builder, const plan::WinogradGeometry& plan,
                const ContractionBinding& binding, int inputs, int products);

  struct Position {
    IntExpr feature_map, row, column; // of the tile among tiles, or of an element
  };
  Position position(const IntExpr& tile) const;

protected:
  // Runs `body` with the class of the tile at `at`, one copy of it per class.
  void by_class(const std::vector<TileClass>& classes, const IntExpr& at,
                const std::function<void(const TileClass&)>& body, size_t number = 0);
  // The same where a run alone knows which tiles, [first, end), lie inside as a whole.
  void by_edge(const IntExpr& first, const IntExpr& end, const IntExpr& at, int size,
               const std::function<void(const TileClass&)>& body);
  // Unsigned comparisons, of places before the first one too, test both ends.
  kernel::Register is_below(const IntExpr& at, const IntExpr& extent, kernel::OpKind compare);
  // The vector of that number in a buffer.
  kernel::Register load(kernel::MachineType type, int buffer, const IntExpr& vector);
  void store(kernel::Register value, int buffer, const IntExpr& vector);
  // Offset in V of the batch at hand, in vectors.
  IntExpr input_vector(const IntExpr& point, const IntExpr& block, const IntExpr& tile) const;

  kernel::Builder& b_;
  const plan::WinogradGeometry& plan_;
  const ContractionBinding& binding_;
  int inputs_, products_;
  kernel::MachineType factor_, sum_;   // vectors of V, and of products
  int factor_tile_, accumulator_tile_; // scratch for the points of one tile
  IntExpr batch_vectors_ = 0;          // vectors of V before the batch at hand
  IntExpr block_vectors_;              // of V from one block of channels to the next
};

// The transform of inputs: from the image into V.
class WinogradInputs : public WinogradTiles {
public:
  explicit WinogradInputs(const WinogradTiles& tiles) : WinogradTiles(tiles) {}
  // One tile of one block of channels.
  void transform(const Position& at, const IntExpr& block, const IntExpr& tile);

private:
  // The columns [first, first + count) of a tile's points. Rows outside the input are masked away.
  void transform_columns(int first, int count, const TileClass& inside, const Position& corner,
                         const IntExpr& block, const IntExpr& tile);
  // Rows first, by way of `tile_`, then columns into V.
  void transform_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                           const Position& corner, const IntExpr& block, const IntExpr& tile);
  kernel::Register load_input(const IntExpr& feature_map, const IntExpr& block, const IntExpr& row,
                              const IntExpr& column, kernel::Register mask);
};

// The transform of outputs: from products into the epilogue.
class WinogradOutputs : public WinogradTiles {
public:
  explicit WinogradOutputs(const WinogradTiles& tiles) : WinogradTiles(tiles) {}
  // One tile of one vector of filters.
  void transform(const Position& at, const TilePosition& group, const IntExpr& vector, int valid,
                 const IntExpr& tile);

private:
  std::vector<kernel::Register> transformed_column(const TilePosition& group, const IntExpr& vector,
                                                   const IntExpr& tile, const IntExpr& column);
  // The outputs of a tile. Columns of points that reach one output of a row alone come last, when the others
  // are outputs already: fewer registers than for all columns at a time.
  std::vector<std::vector<kernel::Register>> transformed_rows(const TilePosition& group,
                                                              const IntExpr& vector, const IntExpr& tile);
  // Adds a column of points to the output that it reaches.
  void add_column(std::vector<std::vector<kernel::Register>>& rows, int column,
                  const std::vector<kernel::Register>& values);
  void finish_row(const TileClass& inside, const Position& corner, const IntExpr& row,
                  const IntExpr& filter_vector, int valid, const std::vector<kernel::Register>& values);
  void transform_in_registers(const TileClass& inside, const Position& corner, const TilePosition& group,
                              const IntExpr& vector, int valid, const IntExpr& tile);
  // Columns first, by way of `tile_`, then rows into the epilogue.
  void transform_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                           const Position& corner, const TilePosition& group, const IntExpr& vector,
                           int valid, const IntExpr& tile);
  // The same of values that lie from vector `first` of `tile_` on.
  void finish_stored_row(const TileClass& inside, const Position& corner, const IntExpr& row,
                         const IntExpr& filter_vector, int valid, const IntExpr& first);
  // Of the tile's columns that are inside.
  IntExpr columns_end(const TileClass& inside, const Position& corner) const;
  // Where extents vary.
  void transform_varying(const Position& at, const Position& corner, const TilePosition& group,
                         const IntExpr& vector, int valid, const IntExpr& tile);
  // A loop that finishes parts of a tile; it carries their total if anybody wants that.
  void finish_in_loop(const IntExpr& begin, const IntExpr& end,
                      const std::function<void(const IntExpr& at)>& body);
  bool is_summed() const;
  // Of what has been finished since the last one.
  void store_total(const Position& corner, const IntExpr& filter_vector);
  void finish(const Position& at, const IntExpr& filter_vector, int valid, kernel::Register accumulators);

  kernel::Register total_; // of the tile at hand, as far as it is finished
};

} // namespace firn::lower
