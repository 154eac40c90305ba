// One list of fields for writing and reading. Counts come before what they count, and are held against the
// bytes that are left. Symbols are written where they come up first, and are numbers after that.
#include "compiler/artifact/description_archive.h"

#include <cstring>
#include <map>
#include <type_traits>

namespace firn::artifact {
namespace {

constexpr int kMaxDepth = 64; // expressions within expressions

class Writer {
public:
  static constexpr bool is_reader = false;

  template <class Number>
  std::enable_if_t<std::is_arithmetic_v<Number> || std::is_enum_v<Number>> value(const Number& number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void value(const std::string& text) {
    value(text.size());
    bytes_ += text;
  }
  void value(const SymbolRef& symbol) {
    auto [found, is_new] = symbols_.try_emplace(symbol.get(), symbols_.size());
    value(found->second);
    if (!is_new) return;
    value(symbol->name);
    value(symbol->lower);
    value(symbol->upper);
  }
  void value(const IntExpr& expression) {
    value(expression.constant_part());
    value(expression.terms().size());
    for (const IntExpr::Term& term : expression.terms()) {
      value(term.coefficient);
      value(term.atoms.size());
      for (const AtomRef& atom : term.atoms) {
        value(atom->kind);
        if (atom->kind == IntAtom::Kind::Symbol) {
          value(atom->symbol);
        } else {
          value(*atom->lhs);
          value(*atom->rhs);
        }
      }
    }
  }
  size_t count(size_t size) {
    value(size);
    return size;
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
  std::map<const Symbol*, size_t> symbols_;
};

class Reader {
public:
  static constexpr bool is_reader = true;
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  std::enable_if_t<std::is_arithmetic_v<Number> || std::is_enum_v<Number>> value(Number& number) {
    if (!has(sizeof number)) return;
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_.remove_prefix(sizeof number);
  }
  void value(std::string& text) {
    size_t size = count(0);
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  void value(SymbolRef& symbol) {
    size_t number = 0;
    value(number);
    if (number == symbols_.size() && is_whole_) {
      Symbol found;
      value(found.name);
      value(found.lower);
      value(found.upper);
      symbols_.push_back(std::make_shared<const Symbol>(std::move(found)));
    }
    if (number < symbols_.size())
      symbol = symbols_[number];
    else
      fail();
  }
  void value(IntExpr& expression) {
    if (++depth_ > kMaxDepth) fail();
    int64_t constant = 0;
    value(constant);
    std::vector<IntExpr::Term> terms(count(0));
    for (IntExpr::Term& term : terms) {
      value(term.coefficient);
      term.atoms.resize(count(0));
      for (AtomRef& atom : term.atoms) atom = read_atom();
    }
    if (is_whole_) expression = IntExpr::from_terms(constant, std::move(terms));
    --depth_;
  }
  // How many elements follow, each of a byte at least.
  size_t count(size_t /*size*/) {
    size_t size = 0;
    value(size);
    return has(size) ? size : 0;
  }
  bool is_whole() const { return is_whole_ && bytes_.empty(); }

private:
  bool has(size_t size) {
    if (size > bytes_.size()) fail();
    return is_whole_;
  }
  void fail() {
    is_whole_ = false;
    bytes_ = {};
  }
  AtomRef read_atom() {
    IntAtom atom{};
    value(atom.kind);
    if (atom.kind == IntAtom::Kind::Symbol) {
      value(atom.symbol);
    } else if (atom.kind > IntAtom::Kind::Max) {
      fail();
    } else {
      IntExpr lhs, rhs;
      value(lhs);
      value(rhs);
      atom.lhs = std::make_shared<const IntExpr>(std::move(lhs));
      atom.rhs = std::make_shared<const IntExpr>(std::move(rhs));
    }
    return std::make_shared<const IntAtom>(std::move(atom));
  }

  std::string_view bytes_;
  std::vector<SymbolRef> symbols_;
  int depth_ = 0;
  bool is_whole_ = true;
};

template <class Archive, class Value> void field(Archive& archive, Value& value) {
  archive.value(value);
}
template <class Archive, class Value> void field(Archive& archive, std::optional<Value>& value);
template <class Archive, class Value> void field(Archive& archive, std::vector<Value>& values);
template <class Archive, class... Values> void all(Archive& archive, Values&... values) {
  (field(archive, values), ...);
}
template <class Archive> void field(Archive& archive, CountedDim& dim) {
  all(archive, dim.axis, dim.arena_offset);
}
template <class Archive> void field(Archive& archive, DimDescription& dim) {
  all(archive, dim.symbol, dim.name, dim.identifier, dim.multiple, dim.allowed);
}
template <class Archive> void field(Archive& archive, TensorDescription& tensor) {
  all(archive, tensor.name, tensor.identifier, tensor.dtype, tensor.dims, tensor.counted_dims,
      tensor.arena_offset, tensor.is_parameter, tensor.initial_weights);
}
template <class Archive> void field(Archive& archive, CpuDescription& cpu) {
  all(archive, cpu.name, cpu.required_features, cpu.own_weight_bytes);
}
template <class Archive> void field(Archive& archive, RawWeights& tensor) {
  all(archive, tensor.name, tensor.type, tensor.offset, tensor.bytes, tensor.may_change);
}
template <class Archive, class Value> void field(Archive& archive, std::optional<Value>& value) {
  bool is_there = value.has_value();
  field(archive, is_there);
  if (!is_there) return;
  if (!value) value.emplace();
  field(archive, *value);
}
template <class Archive, class Value> void field(Archive& archive, std::vector<Value>& values) {
  values.resize(archive.count(values.size()));
  for (Value& value : values) field(archive, value);
}
template <class Archive> void field(Archive& archive, ModelDescription& d) {
  all(archive, d.model_name, d.class_name, d.content_hash, d.inputs, d.outputs, d.states, d.dims, d.indices,
      d.arena_bytes, d.arena_alignment, d.arena_lower_bound, d.parameter_bytes, d.tape_bytes, d.weight_bytes,
      d.raw_weight_bytes, d.raw_in_place, d.prepared_bytes, d.raw_weights, d.weights_hash, d.code_bytes,
      d.object_bytes, d.stack_bytes, d.parameters, d.flops, d.node_count, d.threads, d.firn_version, d.triple,
      d.cpu, d.architecture, d.required_features, d.cpus, d.flags);
}

} // namespace

std::string write_description(const ModelDescription& description) {
  Writer writer;
  ModelDescription copy = description; // the list of fields reads and writes
  field(writer, copy);
  return writer.take();
}

Expected<ModelDescription> read_description(std::string_view bytes) {
  Reader reader(bytes);
  ModelDescription description;
  field(reader, description);
  if (!reader.is_whole()) return usage_error("the description of the model is not whole");
  return description;
}

} // namespace firn::artifact
