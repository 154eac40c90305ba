// The common part of the two transforms of a Winograd kernel: places of tiles, their elements that are
// inside, and the memory between the transforms and the products.
#pragma once

#include "compiler/lower/convolution/winograd.h"

#include <functional>
#include <vector>

namespace firn::lower {

// A run [first, last] of tile positions along one dim with the same elements inside.
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
  // `inputs`, `products`: the kernel's buffers of V and of the products of all points.
  WinogradTiles(kernel::Builder& builder, const plan::WinogradGeometry& plan,
                const ContractionBinding& binding, int inputs, int products);

  struct Position {
    IntExpr feature_map, row, column; // position of a tile among tiles, or of an element
  };
  Position position(const IntExpr& tile) const;

protected:
  // Runs `body` with the class of the tile at `at`, one copy per class.
  void by_class(const std::vector<TileClass>& classes, const IntExpr& at,
                const std::function<void(const TileClass&)>& body, size_t number = 0);
  // Runs `body` for a tile if only a run knows which tiles, [first, end), lie inside as a whole.
  void by_edge(const IntExpr& first, const IntExpr& end, const IntExpr& at, int size,
               const std::function<void(const TileClass&)>& body);
  // An unsigned comparison tests both ends: places before the first are large numbers.
  kernel::Register is_below(const IntExpr& at, const IntExpr& extent, kernel::OpKind compare);
  // Vector `number` of a buffer.
  kernel::Register load(kernel::MachineType type, int buffer, const IntExpr& vector);
  void store(kernel::Register value, int buffer, const IntExpr& vector) const;
  // Offset in V of the current batch, in vectors.
  IntExpr input_vector(const IntExpr& point, const IntExpr& block, const IntExpr& tile) const;

  kernel::Builder& b_;
  const plan::WinogradGeometry& plan_;
  const ContractionBinding& binding_;
  int inputs_, products_;
  kernel::MachineType factor_, sum_;   // vectors of V, and of products
  int factor_tile_, accumulator_tile_; // scratch for the points of one tile
  IntExpr batch_vectors_ = 0;          // vectors of V before the current batch
  IntExpr block_vectors_;              // vectors of V from one block of channels to the next
};

// The transform of inputs: from the image into V.
class WinogradInputs : public WinogradTiles {
public:
  explicit WinogradInputs(const WinogradTiles& tiles) : WinogradTiles(tiles) {}
  // Transforms one tile of one block of channels.
  void transform(const Position& at, const IntExpr& block, const IntExpr& tile);

private:
  // Transforms the columns [first, first + count) of a tile's points. Rows outside the input are masked away.
  void transform_columns(int first, int count, const TileClass& inside, const Position& corner,
                         const IntExpr& block, const IntExpr& tile);
  // Transforms rows first, by way of `tile_`, then columns into V.
  void transform_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                           const Position& corner, const IntExpr& block, const IntExpr& tile);
  kernel::Register load_input(const IntExpr& feature_map, const IntExpr& block, const IntExpr& row,
                              const IntExpr& column, kernel::Register mask);
};

// The transform of outputs: from products into the epilogue.
class WinogradOutputs : public WinogradTiles {
public:
  explicit WinogradOutputs(const WinogradTiles& tiles) : WinogradTiles(tiles) {}
  // Transforms one tile of one vector of filters.
  void transform(const Position& at, const TilePosition& group, const IntExpr& vector, int valid,
                 const IntExpr& tile);

private:
  std::vector<kernel::Register> transformed_column(const TilePosition& group, const IntExpr& vector,
                                                   const IntExpr& tile, const IntExpr& column);
  // Computes the outputs of a tile. Columns of points that reach only one output of a row come last, when the
  // other columns are outputs already: that takes fewer registers than all columns at a time.
  std::vector<std::vector<kernel::Register>> transformed_rows(const TilePosition& group,
                                                              const IntExpr& vector, const IntExpr& tile);
  // Adds a column of points to the output that it reaches.
  void add_column(std::vector<std::vector<kernel::Register>>& rows, int column,
                  const std::vector<kernel::Register>& values);
  void finish_row(const TileClass& inside, const Position& corner, const IntExpr& row,
                  const IntExpr& filter_vector, int valid, const std::vector<kernel::Register>& values);
  void transform_in_registers(const TileClass& inside, const Position& corner, const TilePosition& group,
                              const IntExpr& vector, int valid, const IntExpr& tile);
  // Transforms columns first, by way of `tile_`, then rows into the epilogue.
  void transform_in_memory(const std::vector<TileClass>& classes, const IntExpr& tile_column,
                           const Position& corner, const TilePosition& group, const IntExpr& vector,
                           int valid, const IntExpr& tile);
  // Finishes a row whose values lie from vector `first` of `tile_` on.
  void finish_stored_row(const TileClass& inside, const Position& corner, const IntExpr& row,
                         const IntExpr& filter_vector, int valid, const IntExpr& first);
  // The end of the tile's columns that are inside.
  IntExpr columns_end(const TileClass& inside, const Position& corner) const;
  // Transforms a tile if extents vary.
  void transform_varying(const Position& at, const Position& corner, const TilePosition& group,
                         const IntExpr& vector, int valid, const IntExpr& tile);
  // A loop that finishes parts of a tile and carries their total if it is wanted.
  void finish_in_loop(const IntExpr& begin, const IntExpr& end,
                      const std::function<void(const IntExpr& at)>& body);
  bool is_summed() const;
  // Stores the total of the values finished since the last call.
  void store_total(const Position& corner, const IntExpr& filter_vector);
  void finish(const Position& at, const IntExpr& filter_vector, int valid, kernel::Register accumulators);

  kernel::Register total_; // total of the current tile's finished values
};

} // namespace firn::lower
