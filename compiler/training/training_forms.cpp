// See training_forms.h.
#include "compiler/training/training_forms.h"

#include "compiler/graph/composites.h"

namespace firn::training {

Value per_channel(GraphBuilder& builder, Value vector, int rank) {
  std::vector<Dim> dims(static_cast<size_t>(rank), Dim(1));
  dims[1] = vector.type().dims[0];
  return builder.reshape(vector, std::move(dims));
}

// One multiplication and one addition, of which constants make up all but x. Gradients do not reach the
// statistics, which are measured.
Value make_running_norm(GraphBuilder& builder, const std::vector<Value>& operands, double epsilon,
                        double momentum) {
  auto body = [&](GraphBuilder& b, const std::vector<Value>& p) {
    const int rank = p[0].rank();
    Value mean = b.unary(Opcode::StopGradient, per_channel(b, p[kNormMean], rank));
    Value variance = b.unary(Opcode::StopGradient, per_channel(b, p[kNormVariance], rank));
    Value stabilised = b.binary(Opcode::Add, variance, b.scalar(variance.dtype(), epsilon));
    Value factor =
        b.binary(Opcode::Divide, per_channel(b, p[kNormScale], rank), b.unary(Opcode::Sqrt, stabilised));
    Value offset = b.binary(Opcode::Subtract, per_channel(b, p[kNormBias], rank),
                            b.binary(Opcode::Multiply, mean, factor));
    return std::vector<Value>{b.binary(Opcode::Add, b.binary(Opcode::Multiply, p[0], factor), offset)};
  };
  return make_composite(builder, kRunningNorm, operands, {operands[0].type()},
                        {{"epsilon", epsilon}, {"momentum", momentum}}, body)
      ->result();
}

Instruction* make_dropout(GraphBuilder& builder, Value x, double ratio, std::optional<DType> mask) {
  std::vector<Type> types{x.type()};
  if (mask) types.push_back(Type::tensor(*mask, x.type().dims));
  return make_composite(builder, kDropout, {x}, std::move(types), {{"ratio", ratio}},
                        [&](GraphBuilder& b, const std::vector<Value>& p) {
                          std::vector<Value> results{p[0]};
                          if (mask) results.push_back(b.convert(b.splat_like(p[0], 1), *mask));
                          return results;
                        });
}

bool is_running_norm(const Instruction& instruction) {
  return is_composite(instruction, kRunningNorm);
}
bool is_dropout(const Instruction& instruction) {
  return is_composite(instruction, kDropout);
}

void inline_training_forms(Region& region) {
  for (Instruction* instruction : region.snapshot()) {
    if (is_running_norm(*instruction) || is_dropout(*instruction)) {
      std::vector<Value> results =
          region.inline_region(instruction->region(), instruction->operands(), instruction);
      for (int i = 0; i < instruction->num_results(); ++i)
        region.replace_uses(instruction->result(i), results[static_cast<size_t>(i)]);
      region.erase(instruction);
      continue;
    }
    for (int i = 0; i < instruction->num_regions(); ++i) inline_training_forms(instruction->region(i));
  }
}

} // namespace firn::training
