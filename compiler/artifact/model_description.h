// The plain facts that the artifact writers know about a compiled model. The driver gathers them from the
// importer, the memory plan and code generation. Nothing here refers to an IR, so that headers and manifests
// can be tested without one.
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/support/int_expr.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace firn::artifact {

// A dimension of an output whose size depends on data: `dims` holds its bound, run() stores the actual size
// as an int64 at `arena_offset` (8-byte aligned, never shared with another buffer).
struct CountedDim {
  size_t axis = 0;
  int64_t arena_offset = 0;
};

// A dim that varies, which a program sets. Tensors' dims are expressions over the symbols, whose bounds are
// those of the values that may be set.
struct DimDescription {
  SymbolRef symbol;
  std::string name;             // the model's own name, any bytes
  std::string identifier;       // set by assign_identifiers()
  int64_t multiple = 1;         // every value is a multiple of it; run() is given the value over it
  std::vector<int64_t> allowed; // ascending; empty: every multiple within the bounds
  bool allows(int64_t value) const;
};

struct TensorDescription {
  std::string name;       // the model's own name, any bytes
  std::string identifier; // set by assign_identifiers()
  DType dtype = DType::F32;
  std::vector<IntExpr> dims;
  std::vector<CountedDim> counted_dims; // outputs only, by ascending axis
  std::optional<int64_t> arena_offset;  // nothing: external, the caller binds it
  bool is_parameter = false;            // states only: it lies in the block of parameters, at `arena_offset`
  std::optional<int64_t>
      initial_weights; // states only: offset of the initial value in the packed weights; else zero
  std::vector<int64_t> dims_at_bound() const;
  int64_t byte_size() const; // at the bound
  bool is_counted(size_t axis) const;
  // Whether only a run, or what was set for it, tells the extent.
  bool varies(size_t axis) const { return !dims[axis].is_constant() || is_counted(axis); }
};

struct KernelDescription {
  std::string name;
  int64_t calls = 0; // per run
  int64_t flops = 0; // operations of all calls
  int64_t bytes = 0; // read and written by all calls
  int64_t code_bytes = 0;
};

// A named share of a memory budget: a weight, or a buffer that is live when the arena is fullest.
struct Contributor {
  std::string name;
  int64_t bytes = 0;
};

// The step of a run during which most bytes of the arena are alive, which decides its size.
struct PeakDescription {
  struct Alive {
    Contributor what;
    std::string until; // its last step, by what that computes; empty: it lives to the end of the run
  };
  int64_t bytes = 0;
  int step = 0, steps = 0; // counted from 0
  std::string computes;    // ONNX nodes, or a kernel
  std::vector<Alive> alive;
};

// One of several CPUs that an object has code for.
struct CpuDescription {
  std::string name;               // the name that it was asked for by
  uint64_t required_features = 0; // numbered as ModelDescription::required_features
  int64_t own_weight_bytes = 0;   // bytes of weights in a form that only this CPU reads
};

// Values of dims that vary for which an object has code of its own.
struct SpecializationDescription {
  std::string name;             // "batch=1,seq=128", of several CPUs with the one that it is for
  int64_t code_bytes = 0;       // bytes of kernels that other values do not have
  int64_t own_weight_bytes = 0; // bytes of weights in a form that only these values read
};

// Indices that are known only at run time: those out of range are clamped, or end the run with a status.
enum class Indices : uint8_t { None, Clamped, Checked };

// A tensor of the weights that a program prepares.
struct RawWeights {
  std::string name; // name of the model's tensor
  std::string type; // "f32[64,3,7,7]", signs of integers aside
  int64_t offset = 0, bytes = 0;
  bool may_change = false; // prepare() takes other values; if not, the code depends on these
};

// A function of a training step, over the tensors and dims of a description that several functions share.
struct TrainingFunction {
  std::string name;                          // in the module and in the class: "step"
  std::string run_symbol;                    // its function in the object
  std::vector<size_t> inputs, outputs, dims; // numbers of its own, in the order in which a run takes them
  int64_t flops = 0;
  std::optional<size_t> loss; // number of the output that is no finite number if a run changed no state
};

struct ModelDescription {
  std::string model_name;  // the graph's name, or the file's stem
  std::string source_file; // the path as it was given; only its last component is printed
  std::string source_sha256;
  std::string content_hash; // hash of what the object is made from: model, external data, flags, program
  std::string class_name;   // "vision::Digits"
  // Further entry functions of the object, each with a class of its own over the same weights and arena.
  std::vector<ModelDescription> entries;
  // The description of such a function: its name in the module, and the class and the symbol that own the
  // weights. All are empty in the description of a whole model.
  std::string entry, owner_class, owner_weights;
  bool updates_parameters = false; // a run of such a function changes parameters
  // The functions that the class of a training step has in the place of run() (training_step.h).
  std::vector<TrainingFunction> functions;
  std::vector<TensorDescription> inputs, outputs, states;
  std::vector<DimDescription> dims; // that vary, in the order of firn_rt2_call::extents

  Indices indices = Indices::None;
  int64_t arena_bytes = 0, arena_alignment = 64, arena_lower_bound = 0;
  int64_t parameter_bytes = 0; // bytes of the block of parameters, which is aligned as the arena is
  // Bytes that a gradient's forward computation keeps for the backward one; nothing: the model has none.
  std::optional<int64_t> tape_bytes;
  int64_t weight_bytes = 0; // packed, as run() reads them
  // Bytes of the raw weights that the object embeds; nothing: it embeds the packed weights themselves.
  std::optional<int64_t> raw_weight_bytes;
  bool raw_in_place = false; // the raw weights are what run() reads: there is nothing to prepare
  int64_t embedded_weight_bytes() const { return raw_weight_bytes.value_or(weight_bytes); }
  // Bytes of the memory that weights are prepared in.
  int64_t prepared_weight_bytes() const {
    return raw_weight_bytes && !raw_in_place ? std::max(prepared_bytes, weight_bytes) : 0;
  }
  int64_t prepared_bytes = 0;          // packed weights, and what is computed on the way to them
  std::vector<RawWeights> raw_weights; // tensors that the object embeds in their place, by offset
  std::optional<uint64_t>
      weights_hash;       // hash of the embedded weights; nothing: the object is not written yet
  int64_t code_bytes = 0; // machine code and its own constants
  int64_t object_bytes = 0;
  int64_t stack_bytes = 0;
  int64_t parameters = 0;
  int64_t flops = 0;
  int64_t node_count = 0; // nodes of the source model

  int threads = 1; // the most threads of an executor that run() uses
  std::string firn_version;
  std::string triple, cpu;
  int32_t architecture = 0;       // FIRN_ARCH_ of include/firn/abi.h
  uint64_t required_features = 0; // bits numbered as in include/firn/cpu_features.h; of the least able CPU
  std::vector<CpuDescription>
      cpus;                   // the most able first, as firn_rt2_call::variant numbers them; empty: one CPU
  int64_t shared_kernels = 0; // that all of these run in the code for the last, since they take little time
  std::vector<SpecializationDescription> specializations;
  std::vector<std::string> flags; // flags that shape the code, in a fixed order

  std::vector<KernelDescription> kernels;
  std::vector<Contributor> weights; // embedded; for budgets and the report; may be empty
  PeakDescription peak;             // for these too
};

inline bool DimDescription::allows(int64_t value) const {
  if (value < symbol->lower || value > symbol->upper || value % multiple != 0) return false;
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

inline std::vector<int64_t> TensorDescription::dims_at_bound() const {
  std::vector<int64_t> bounds;
  for (const IntExpr& dim : dims) bounds.push_back(dim.upper_bound());
  return bounds;
}

inline int64_t TensorDescription::byte_size() const {
  size_t count = 1;
  for (int64_t dim : dims_at_bound()) count *= static_cast<size_t>(dim);
  return static_cast<int64_t>(firn::byte_size(dtype, count));
}

inline bool TensorDescription::is_counted(size_t axis) const {
  for (const CountedDim& counted : counted_dims)
    if (counted.axis == axis) return true;
  return false;
}

} // namespace firn::artifact
