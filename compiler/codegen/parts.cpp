// See parts.h.
#include "compiler/codegen/parts.h"

#include "compiler/codegen/build_id.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/kernel/kir_text.h"
#include "compiler/support/sha256.h"

#include <unordered_map>

namespace firn::codegen {

using namespace kernel;

namespace {

int64_t count_ops(const Block& block) {
  int64_t count = 0;
  for (const auto& op : block.ops) {
    ++count;
    for (const Block& inner : op->blocks) count += count_ops(inner);
  }
  return count;
}

void add_symbols(const Block& block, std::string& text) {
  for (const auto& op : block.ops) {
    if (op->symbol) text += op->symbol->name + "\n";
    for (const Block& inner : op->blocks) add_symbols(inner, text);
  }
}

// Facts that the text without names leaves out, and that code depends on: promises about memory, and the
// names of symbols, which decide the order in which sums are computed.
std::string unnamed_facts(const Kernel& kernel) {
  std::string text;
  for (const InPlace& pair : kernel.in_place)
    text += "in_place " + std::to_string(pair.written) + " " + std::to_string(pair.read) + " " +
            std::string(overwriting_name(pair.pattern)) + " " + std::to_string(pair.distance) + "\n";
  for (const SymbolRef& extent : kernel.extents) text += extent->name + "\n";
  for (const SymbolRef& symbol : {kernel.parallel, kernel.phase})
    if (symbol) text += symbol->name + "\n";
  add_symbols(kernel.body, text);
  return text;
}

// All facts of a target that code generation reads: options change more of them than LLVM's features.
std::string target_text(const Machine& target) {
  std::string text = target.triple + "\n" + target.processor + "\n" + target.features + "\n";
  for (int64_t number : {static_cast<int64_t>(target.arch),
                         int64_t{target.pointer_bits},
                         int64_t{target.cpu.vector_bits},
                         int64_t{target.cpu.vector_parts},
                         int64_t{target.cpu.vector_element_bits},
                         int64_t{target.cpu.narrowed_together},
                         int64_t{target.cpu.has_fma},
                         int64_t{target.cpu.has_f16_arithmetic},
                         int64_t{target.cpu.has_f16_conversion},
                         int64_t{target.cpu.has_float},
                         int64_t{target.cpu.has_double},
                         int64_t{target.cpu.has_masked_memory},
                         int64_t{target.cpu.has_embedded_broadcast},
                         int64_t{target.cpu.unlike_dot4_bits},
                         int64_t{target.cpu.like_dot4_bits},
                         int64_t{target.cpu.reducing_dot_bits},
                         int64_t{target.cpu.dot2_bits},
                         int64_t{target.cpu.byte_pair_bits},
                         int64_t{target.cpu.bf16_dot2_bits},
                         int64_t{target.cpu.bf16_rounding_bits},
                         int64_t{target.cpu.has_tile_matrices},
                         int64_t{target.cpu.has_word_tables},
                         int64_t{target.cpu.has_byte_tables},
                         int64_t{target.cpu.has_rounding},
                         int64_t{target.cpu.has_round_even},
                         int64_t{target.cpu.has_ieee_minimum},
                         int64_t{target.cpu.has_reciprocal_estimate},
                         int64_t{target.cpu.has_integer_division},
                         int64_t{target.cpu.has_long_shifts},
                         int64_t{target.cpu.has_leading_zeros}})
    text += std::to_string(number) + " ";
  return text + "\n";
}

class PartLister {
public:
  explicit PartLister(const CodegenOptions& options) : options_(options) {
    common_ = build_id() + "\nlevel " + std::to_string(static_cast<int>(options.opt_level)) + " flushes " +
              std::to_string(options.flushes_bf16) + "\n" + target_text(options.baseline_target()) +
              target_text(options.target);
  }

  void add(const Program& program, size_t variant) {
    std::vector<CallFacts> facts = call_facts(program);
    for (size_t i = 0; i < program.kernels.size(); ++i)
      if (facts[i].is_called) add(*program.kernels[i], std::move(facts[i]), variant);
  }

  PartList take() { return std::move(list_); }

private:
  void add(const Kernel& kernel, CallFacts facts, size_t variant) {
    if (kernel.is_for_baseline) variant = options_.variants.size();
    std::string text = kernel_text(kernel, /*anonymous=*/true);
    const std::string all =
        common_ + target_text(options_.target_of(variant)) + facts.text() + unnamed_facts(kernel) + text;
    std::string key = sha256_hex(std::as_bytes(std::span(all)));
    auto [found, is_new] = by_key_.try_emplace(key, list_.kernels.size());
    list_.numbers[&kernel] = found->second;
    if (!is_new) return;
    std::string symbol = "firn.k." + key.substr(0, 32);
    list_.kernels.push_back({&kernel, std::move(facts), variant, std::move(text), std::move(key),
                             std::move(symbol), count_ops(kernel.body)});
  }

  const CodegenOptions& options_;
  std::string common_;
  PartList list_;
  std::unordered_map<std::string, size_t> by_key_;
};

} // namespace

void for_each_program(const Program& program, const CodegenOptions& options,
                      const std::function<void(const Program&, size_t)>& visit) {
  visit(program, 0);
  for (size_t i = 0; i < options.variants.size(); ++i) visit(*options.variants[i].program, i + 1);
  for (const SpecializedCode& code : options.specializations) visit(*code.program, code.variant);
  for (const EntryCode& entry : options.entries) {
    visit(*entry.program, 0);
    for (size_t i = 0; i < entry.variants.size(); ++i) visit(*entry.variants[i].program, i + 1);
  }
  if (options.prepare) visit(*options.prepare, options.variants.size());
}

PartList list_parts(const Program& program, const CodegenOptions& options) {
  PartLister lister(options);
  for_each_program(program, options, [&](const Program& each, size_t variant) { lister.add(each, variant); });
  return lister.take();
}

std::vector<std::vector<size_t>> parts_of_equal_text(const PartList& parts, const CodegenOptions& options) {
  std::map<std::string, std::vector<size_t>> by_text;
  for (size_t variant = options.variants.size() + 1; variant-- > 0;)
    for (size_t i = 0; i < parts.kernels.size(); ++i)
      if (parts.kernels[i].variant == variant) by_text[parts.kernels[i].text].push_back(i);
  std::vector<std::vector<size_t>> groups;
  for (auto& [text, numbers] : by_text)
    if (numbers.size() > 1) groups.push_back(std::move(numbers));
  return groups;
}

} // namespace firn::codegen
