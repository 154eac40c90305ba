// Plans of whole functions: every instruction first, then what instructions decide together.
#include "compiler/plan/plan_function.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/choose_plan.h"
#include "compiler/plan/cold_kernels.h"
#include "compiler/plan/composites.h"
#include "compiler/plan/contraction/contraction_plan.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/fixed/plan.h"
#include "compiler/plan/fused_spatial_sum/fused_spatial_sum.h"
#include "compiler/plan/fused_spatial_sum/plan.h"
#include "compiler/plan/rows/plan.h"
#include "compiler/plan/views.h"
#include "compiler/plan/windows/depthwise_chain.h"
#include "compiler/plan/winograd/choose_winograd.h"
#include "compiler/plan/winograd/plan.h"
#include "compiler/plan/written_plan.h"

#include <cmath>
#include <memory>
#include <set>

namespace firn::plan {
namespace {

template <class Plan>
Diagnostic refused(const Instruction& instruction, const Plan& plan, const std::string& why,
                   const std::string& cpu = "") {
  return model_error(place_of(instruction) + (cpu.empty() ? "" : " for " + cpu) + ", '" + to_string(plan) +
                     "', cannot be followed: " + why);
}

// The part of a convolution's taps that reaches its image anywhere: a small one lies beside the outer taps.
double part_of_taps(const ComputedConvolution& computed, Size size) {
  const std::vector<WindowDim>& window = computed.convolution->attributes().window().dims;
  double part = 1;
  for (size_t i = 0; i < window.size(); ++i) {
    double taps = static_cast<double>(window[i].size), pad = static_cast<double>(window[i].pad_low),
           in = extent_at(computed.convolution->operand(0).type().dims[i + 2], size),
           out = extent_at(computed.result.dims[i + 2], size);
    double first = std::max(0.0, std::ceil(pad - (out - 1))), end = std::min(taps, std::floor(in + pad));
    part *= std::max(1.0, end - first) / taps;
  }
  return part;
}

class FunctionPlanning {
public:
  FunctionPlanning(const Region& body, const PlanOptions& options) : options_(options), body_(body) {
    plans_.model_weight_bytes = constant_bytes(body);
  }

  Expected<KernelPlans> run() {
    if (Result visited = visit(body_, nullptr); !visited) return visited.error();
    choose_winograd_sizes();
    if (Result joined = join(body_); !joined) return joined.error();
    shorten_cold_loops(body_, options_.target, plans_,
                       [&](const Instruction& instruction) { return is_fixed(instruction); });
    explain();
    return std::move(plans_);
  }

private:
  // `chain`: the fusion around the region, if that is one kernel.
  Result visit(const Region& region, const Instruction* chain) {
    for (const auto& instruction : region.instructions()) {
      if (instruction->is(Opcode::Constant) || instruction->is(Opcode::Parameter)) continue;
      // Elements of a map that passes through a buffer of lines are code of the whole kernel.
      if (chain && !convolution_of(*instruction)) continue;
      if (Result planned = plan(*instruction, chain); !planned) return planned;
      if (!has_members(*instruction)) continue;
      const Instruction* kernel = is_kernel_of_lines(*instruction, plans_) ? instruction.get() : nullptr;
      for (int i = 0; i < instruction->num_regions(); ++i)
        if (Result within = visit(instruction->region(i), kernel); !within) return within;
    }
    return {};
  }

  // Whether instructions within have plans of their own.
  bool has_members(const Instruction& instruction) const {
    const KernelPlan* own = plans_.find(instruction);
    return holds_kernels(instruction) && (!own || is_kernel_of_lines(instruction, plans_) ||
                                          plans_.has(instruction, Algorithm::FusedSpatialSum) ||
                                          plans_.has(instruction, Algorithm::Inline));
  }

  Result plan(const Instruction& instruction, const Instruction* chain) {
    PlanningContext context{options_, plans_.model_weight_bytes, chain != nullptr};
    ChainMatrices matrices;
    if (chain) matrices = choose_chain_matrices(*chain, options_);
    if (matrices.take(instruction)) context.chain_tile = &matrices.tile;
    if (options_.packed_as) context.packed_as = options_.packed_as->find(instruction);
    auto written = follow_text(instruction, context);
    if (!written) return written.error();
    if (*written) return {};
    if (options_.packed_as) return plan_packed(instruction, chain, context);
    Explanation explanation;
    std::optional<KernelPlan> given = find_in_database(instruction, context, explanation);
    // The guard on rounding errors has the last word on Winograd's algorithm: direct tiles stand by.
    const auto* winograd = given ? given->get_if<WinogradPlan>() : nullptr;
    std::optional<KernelPlan> plan = given;
    if (!given || winograd) plan = choose_plan(instruction, context);
    if (plan) {
      plans_.set(instruction, *plan);
      begin_explanation(instruction, chain, std::move(explanation));
    }
    const auto* direct = plans_.find<ContractionPlan>(instruction);
    bool may_change = direct && !chain && (!given || winograd);
    bool is_candidate = may_change && add_candidate(instruction, *direct, winograd);
    if (!is_candidate) add_cycles(instruction);
    return {};
  }

  // Sets the plan of the instruction's text; false: the text has none for this CPU.
  Expected<bool> follow_text(const Instruction& instruction, const PlanningContext& context) {
    if (options_.ignores_written || !instruction.attributes().has("plan")) return false;
    auto all = read_written_plans(instruction, place_of(instruction));
    if (!all) return all.error();
    const WrittenPlan* own = find_written_plan(*all, options_.cpu, !options_.packed_as);
    if (!own) return false;
    bool is_followed_already = own->is_for_all() && options_.packed_as;
    if (is_followed_already) {
      plans_.set_for_baseline(instruction, *context.packed_as);
    } else if (Result followed = follow(*own, instruction, context); !followed) {
      return followed.error();
    }
    written_.insert(&instruction);
    plans_.mark_as_written(instruction);
    add_cycles(instruction);
    return true;
  }

  Result follow(const WrittenPlan& written, const Instruction& instruction, const PlanningContext& context) {
    auto request = parse_plan_request(place_of(instruction), written.text);
    if (!request) return model_error(request.error().message);
    const bool is_for_baseline = written.is_for_all() && options_.baseline;
    const PlanOptions for_baseline{is_for_baseline ? *options_.baseline : options_.target, options_.goals};
    PlanningContext own{is_for_baseline ? for_baseline : options_, context.model_weight_bytes,
                        context.by_rows, context.packed_as, context.chain_tile};
    auto plan = complete(*request, instruction, own);
    if (!plan) return refused(instruction, *request, plan.error().message, written.cpu);
    if (is_for_baseline)
      plans_.set_for_baseline(instruction, std::move(*plan));
    else
      plans_.set(instruction, std::move(*plan));
    return {};
  }

  // Plans an instruction whose constants are packed for another CPU, by the same algorithm.
  Result plan_packed(const Instruction& instruction, const Instruction* chain,
                     const PlanningContext& context) {
    Explanation explanation;
    std::optional<KernelPlan> plan = find_in_database(instruction, context, explanation);
    if (!plan) plan = choose_plan(instruction, context);
    if (plan) {
      plans_.set(instruction, std::move(*plan));
      begin_explanation(instruction, chain, std::move(explanation));
    }
    return {};
  }

  // The plan of the schedule database, if it has one that can be followed.
  std::optional<KernelPlan> find_in_database(const Instruction& instruction, const PlanningContext& context,
                                             Explanation& explanation) {
    if (!options_.schedules) return std::nullopt;
    const PlanRequest* found = options_.schedules->find(kernel_signature(instruction, options_.target));
    if (!found) return std::nullopt;
    auto plan = complete(*found, instruction, context);
    if (!plan) {
      explanation.refused = plan.error().message;
      return std::nullopt;
    }
    explanation.overruled = true;
    from_database_.insert(&instruction);
    plans_.mark_as_written(instruction);
    return *plan;
  }

  // A convolution that Winograd's algorithm may compute; false if it does not apply.
  bool add_candidate(const Instruction& instruction, const ContractionPlan& direct,
                     const WinogradPlan* given) {
    if (!instruction.has_uses()) return false;
    if (!given && (options_.goals.optimize_size() || options_.goals.winograd == Winograd::Off)) return false;
    std::optional<KernelRoot> root = find_contraction(instruction);
    if (!root->op->is(Opcode::Convolution)) return false;
    if (options_.goals.strict_math() && accumulates_in_f32(root->op->type().dtype)) return false;
    const Machine& target = options_.target;
    auto shared = std::make_shared<ComputedConvolution>(
        ComputedConvolution::of(*root, instruction.type(), target.cpu.lanes(32)));
    const ComputedConvolution& computed = *shared;
    if (!is_packable_constant(computed.filter)) return false;
    WinogradCandidate candidate;
    candidate.plans = plan_winograd({*computed.convolution, computed.result, target,
                                     plans_.model_weight_bytes, given, options_.goals.threads});
    if (candidate.plans.empty()) return false;
    candidate.filter = computed.filter.def->literal();
    candidate.direct_cycles = over_sizes([&](Size size) {
      double bytes = static_cast<double>(computed.filter.type().byte_size()) * part_of_taps(computed, size);
      return overlapped(direct.tiling.cycles * part_at(instruction.type(), size),
                        stream_cycles(bytes, 1, target, plans_.model_weight_bytes));
    });
    network_cycles_ += candidate.direct_cycles;
    candidate.is_asked = given || options_.goals.winograd == Winograd::All;
    if (given) candidate.direct_cycles = INFINITY;
    candidates_.push_back(std::move(candidate));
    candidate_instructions_.push_back(&instruction);
    candidate_convolutions_.push_back(std::move(shared));
    return true;
  }

  // Instructions with members are left out because their members are counted. If types vary, contractions
  // alone have an estimate (add_candidate).
  void add_cycles(const Instruction& instruction) {
    if (!has_static_types(instruction)) return;
    bool is_view = instruction.num_results() == 1 && instruction.num_operands() > 0 &&
                   view_offset(instruction).has_value();
    if (instruction.has_uses() && !is_view && !has_members(instruction))
      network_cycles_ += predicted_cycles(instruction, options_.target, plans_.model_weight_bytes);
  }

  void choose_winograd_sizes() {
    auto choices = choose_winograd(std::move(candidates_), network_cycles_, plans_.model_weight_bytes);
    for (size_t i = 0; i < choices.size(); ++i) {
      const Instruction& instruction = *candidate_instructions_[i];
      if (choices[i].plan) {
        WinogradPlan plan = choices[i].plan->plan();
        plan.rolled_epilogue = has_long_epilogue(instruction);
        plan.computed = candidate_convolutions_[i];
        // The guard on accuracy has looked at these filters alone.
        if (!choices[i].plan->is_integer()) choices[i].filter->fix_values();
        plans_.set(instruction, plan);
      }
      auto explained = explanations_.find(&instruction);
      if (explained == explanations_.end()) continue;
      Explanation& explanation = explained->second;
      explanation.added_bytes = choices[i].added_bytes;
      explanation.left_out = choices[i].left_out;
      explanation.overruled &= choices[i].plan.has_value();
      explanation.candidates.insert(explanation.candidates.end(), choices[i].considered.begin(),
                                    choices[i].considered.end());
    }
  }

  // Plans that depend on those of other instructions.
  Result join(const Region& region) {
    for (const auto& instruction : region.instructions()) {
      if (Result joined = join_rows(*instruction); !joined) return joined;
      if (Result joined = join_sum(*instruction); !joined) return joined;
      for (int i = 0; has_members(*instruction) && i < instruction->num_regions(); ++i)
        if (Result joined = join(instruction->region(i)); !joined) return joined;
    }
    return {};
  }

  // Whether blocks of whole rows leave the kernel of the dot one after the other, and the composite needs
  // nothing else that is computed. Where all rows are one block, its own kernel finds them as near.
  bool can_take_rows(const Instruction& composite) const {
    const std::string& name = composite.attributes().word("name");
    bool is_norm = name == "layer_norm" || name == "rms_norm";
    if (!is_norm || !has_static_types(composite) || !find_rows(composite)->is_last_dim) return false;
    const Instruction& producer = *composite.operand(0).def;
    const auto* plan = plans_.find<ContractionPlan>(producer);
    if (!plan || plan->tiling.row_block == 0 || plan->swap_operands ||
        producer.parent() != composite.parent() || composite.type() != producer.type())
      return false;
    bool fits = producer.type().dims.back() == Dim(plan->dot->shape.n);
    for (int i = 1; i < composite.num_operands(); ++i)
      fits = fits && composite.operand(i).def->is(Opcode::Constant);
    return fits;
  }

  Result join_rows(const Instruction& composite) {
    const auto* rows = plans_.find<RowsPlan>(composite);
    if (!rows || (is_fixed(composite) && !rows->in_producer)) return {};
    bool can_join = can_take_rows(composite) && !taken_.count(composite.operand(0).def);
    if (rows->in_producer && !can_join) {
      const char* why = "no dot makes blocks of its rows for it alone";
      if (written_.count(&composite)) return refused(composite, KernelPlan(*rows), why);
      set_in_producer(composite, *rows, false);
      leave_aside(composite, why);
    }
    if (!can_join) return {};
    taken_.insert(composite.operand(0).def);
    set_in_producer(composite, *rows, true);
    return {};
  }

  void set_in_producer(const Instruction& composite, RowsPlan plan, bool in_producer) {
    plan.in_producer = in_producer;
    plans_.set(composite, plan);
  }

  Result join_sum(const Instruction& fusion) {
    std::optional<FusedSum> sum;
    if (has_static_types(fusion)) sum = find_fused_sum(fusion);
    if (!sum) return {};
    int64_t tiles = summed_tiles(*sum->producer, plans_);
    if (plans_.has(fusion, Algorithm::FusedSpatialSum) && tiles == 0) {
      const char* why = "the producer's kernel leaves no sums";
      if (written_.count(&fusion)) return refused(fusion, *plans_.find(fusion), why);
      plans_.set(fusion, FixedPlan{Algorithm::Inline});
      leave_aside(fusion, why);
    } else if (!is_fixed(fusion) && is_fused_sum_profitable(sum->producer->type(), tiles)) {
      plans_.set(fusion, FusedSpatialSumPlan{});
    }
    if (!plans_.has(fusion, Algorithm::FusedSpatialSum)) return {};
    return leave_totals(summed_member(*sum->producer, plans_));
  }

  // A total is that of all rows of a tile, of which an interleaved epilogue takes some at a time.
  Result leave_totals(const Instruction& convolution) {
    const auto* plan = plans_.find<ContractionPlan>(convolution);
    if (!plan || !plan->tiling.interleaves_epilogue) return {};
    const char* why = "the totals of a tile are those of all its rows: its epilogue is not interleaved";
    if (written_.count(&convolution)) return refused(convolution, KernelPlan(*plan), why);
    if (from_database_.count(&convolution)) leave_aside(convolution, why);
    ContractionPlan whole = *plan;
    whole.tiling.interleaves_epilogue = false;
    plans_.set(convolution, whole);
    return {};
  }

  bool is_fixed(const Instruction& instruction) const { return plans_.is_written(instruction); }

  // The database's plan of an instruction that shows to be impossible beside those of others.
  void leave_aside(const Instruction& instruction, const char* why) {
    auto explained = explanations_.find(&instruction);
    if (explained == explanations_.end()) return;
    explained->second.overruled = false;
    explained->second.refused = why;
  }

  void begin_explanation(const Instruction& instruction, const Instruction* chain, Explanation explanation) {
    if (!options_.explanations) return;
    explanation.instruction = &instruction;
    explanation.location = instruction.location();
    explanation.signature = kernel_signature(instruction, options_.target);
    if (const auto* plan = plans_.find<ContractionPlan>(instruction)) {
      explanation.candidates.push_back({*plan, plan->tiling.cycles, ""});
      if (chain) explanation.candidates[0].note = "in " + to_string(*plans_.find(*chain));
    }
    explanations_[&instruction] = std::move(explanation);
    explained_.push_back(&instruction);
  }

  void explain() {
    for (const Instruction* instruction : explained_) {
      Explanation& explanation = explanations_[instruction];
      explanation.chosen = *plans_.find(*instruction);
      options_.explanations->push_back(std::move(explanation));
    }
  }

  const PlanOptions& options_;
  const Region& body_;
  KernelPlans plans_;
  std::set<const Instruction*> written_, from_database_; // whose plans stand there
  std::set<const Instruction*> taken_;                   // dots whose rows a norm takes
  std::vector<WinogradCandidate> candidates_;            // in the order of the program
  std::vector<const Instruction*> candidate_instructions_;
  std::vector<std::shared_ptr<const ComputedConvolution>> candidate_convolutions_;
  double network_cycles_ = 0; // cycles of one run if all convolutions are direct
  std::map<const Instruction*, Explanation> explanations_;
  std::vector<const Instruction*> explained_; // in the order of the program
};

} // namespace

std::string place_of(const Instruction& instruction) {
  return "the plan of " +
         (instruction.location().empty() ? "%" + instruction.name() : instruction.location());
}

Expected<KernelPlans> plan_function(const Function& function, const PlanOptions& options) {
  return FunctionPlanning(function.body(), options).run();
}

} // namespace firn::plan
