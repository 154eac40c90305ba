// The verifier's rules for composites: forms that it accepts, and each of their rules broken once.
#include "compiler/graph/verify.h"

#include "tests/graph/text_files.h"

namespace firn {
namespace {

// A composite whose body returns its first operand as many times as there are results; what it computes is
// not the verifier's concern.
struct CompositeText {
  std::string attributes, operands, types; // operands: "%a: f32[2];%b: f32[3]"; types: "f32[2];f32[]"
};

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ';');) parts.push_back(part);
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string module_of(const CompositeText& c) {
  std::vector<std::string> parameters = parts_of(c.operands), types = parts_of(c.types), names, body, results;
  for (const std::string& parameter : parameters) names.push_back(parameter.substr(0, parameter.find(':')));
  std::string constants;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string name = "%r" + std::to_string(i), zero = "%z" + std::to_string(i);
    std::string dtype = types[i].substr(0, types[i].find('['));
    constants += zero + " = constant [0] : " + dtype + "[] ";
    constants += name + " = broadcast_in_dim " + zero + " {dims = []} : " + types[i] + " ";
    body.push_back(name);
    results.push_back(types.size() == 1 ? "%y" : "%y#" + std::to_string(i));
  }
  std::string count = types.size() == 1 ? "" : ":" + std::to_string(types.size());
  std::string type = types.size() == 1 ? types[0] : "(" + joined(types) + ")";
  return main_text(joined(parameters), joined(types),
                   "%y" + count + " = composite " + joined(names) + " {" + c.attributes + "} region(" +
                       joined(parameters) + ") { " + constants + "return " + joined(body) + " } : " + type +
                       " return " + joined(results));
}

std::string error_of(const CompositeText& c) {
  Result verified = verify(*parse_or_fail("m", module_of(c)));
  return verified ? "" : verified.error().message;
}

void accepts(const CompositeText& c) {
  INFO(module_of(c));
  CHECK(error_of(c) == "");
}

void refuses(const CompositeText& c, const std::string& wanted) {
  std::string message = error_of(c);
  INFO(module_of(c) << "\nfound: " << message << "\nwanted: " << wanted);
  CHECK(message.find(wanted) != std::string::npos);
}

TEST_CASE("softmax has one dim of its operand") {
  accepts({"dim = 1, name = softmax", "%x: f32[2,3]", "f32[2,3]"});
  accepts({"dim = 0, name = log_softmax", "%x: f16[2]", "f16[2]"});
  refuses({"dim = 2, name = softmax", "%x: f32[2,3]", "f32[2,3]"}, "softmax: dim = 2 of 2 dims");
  refuses({"dim = -1, name = log_softmax", "%x: f32[2,3]", "f32[2,3]"}, "log_softmax: dim = -1 of 2 dims");
  refuses({"name = softmax", "%x: f32[2,3]", "f32[2,3]"}, "attribute dim is missing or of another kind");
  refuses({"dim = 0, name = softmax", "%x: i32[2]", "i32[2]"}, "operand 0 has no floats");
  refuses({"dim = 0, name = softmax", "%x: f32[2]", "f32[3]"}, "result 0 is f32[3], wants f32[2]");
  refuses({"dim = 0, name = softmax", "%x: f32[2];%y2: f32[2]", "f32[2]"}, "has 2 operands, wants 1");
}

TEST_CASE("activations have the type of their operand") {
  accepts({"approximate = tanh, name = gelu", "%x: f32[2]", "f32[2]"});
  for (const char* name : {"silu", "mish", "hard_swish"}) {
    accepts({std::string("name = ") + name, "%x: f64[2]", "f64[2]"});
    refuses({std::string("name = ") + name, "%x: f64[2]", "f32[2]"}, "result 0 is f32[2], wants f64[2]");
  }
  refuses({"approximate = fast, name = gelu", "%x: f32[2]", "f32[2]"},
          "attribute approximate is fast, wants one of none, tanh");
  refuses({"name = gelu", "%x: f32[2]", "f32[2]"}, "attribute approximate is missing");
}

const std::string kStash = ", epsilon = 0.5, stash = f32";

TEST_CASE("norms along a row have scales that broadcast") {
  const std::string layer = "dim = 1, name = layer_norm" + kStash;
  accepts({layer, "%x: f32[2,3];%s: f32[3];%b: f32[3]", "f32[2,3]"});
  accepts({layer + ", statistics = true", "%x: f16[2,3];%s: f16[1]", "f16[2,3];f32[2,1];f32[2,1]"});
  refuses({layer, "%x: f32[2,3];%s: f32[2]", "f32[2,3]"}, "operand 1 is f32[2], wants floats that broadcast");
  refuses({layer, "%x: f32[3];%s: f32[3]", "f32[3]"}, "layer_norm: dim = 1 of 1 dims");
  refuses({layer, "%x: f32[2,3];%s: f32[3]", "f32[2,3];f32[2,1];f32[2,1]"}, "two more results alone");
  refuses({layer + ", statistics = true", "%x: f32[2,3];%s: f32[3]", "f32[2,3];f32[2,3];f32[2,1]"},
          "result 1 is f32[2,3], wants f32[2,1]");
  refuses({"dim = 1, epsilon = 0.5, name = layer_norm", "%x: f32[2,3];%s: f32[3]", "f32[2,3]"},
          "attribute stash is missing");
  refuses({"dim = 1, name = rms_norm, stash = f32", "%x: f32[2,3];%s: f32[3]", "f32[2,3]"},
          "attribute epsilon is missing");
  accepts({"dim = 1, name = rms_norm" + kStash, "%x: f32[2,3];%s: f16[3]", "f16[2,3]"});
}

TEST_CASE("norms of channels have a scale for each") {
  const std::string operands = "%x: f32[2,4,3];%s: f32[4];%b: f32[4]";
  accepts({"epsilon = 0.5, name = instance_norm", operands, "f32[2,4,3]"});
  accepts({"groups = 2, name = group_norm" + kStash, operands, "f32[2,4,3]"});
  refuses({"groups = 3, name = group_norm" + kStash, operands, "f32[2,4,3]"},
          "groups = 3 do not divide 4 channels");
  refuses({"groups = 0, name = group_norm" + kStash, operands, "f32[2,4,3]"}, "groups = 0 do not divide");
  refuses({"epsilon = 0.5, name = instance_norm", "%x: f32[2,4,3];%s: f32[3];%b: f32[4]", "f32[2,4,3]"},
          "operand 1 is f32[3], wants a float for each of 4 channels");
  refuses({"epsilon = 0.5, name = instance_norm", "%x: f32[2];%s: f32[2];%b: f32[2]", "f32[2]"},
          "operand 0 has 1 dims, wants 2 or more");
  const std::string statistics = "f32[2,4,3];f32[1,4,1];f32[1,4,1]";
  accepts({"epsilon = 0.5, name = batch_norm", "%x: f32[2,4,3];%s: f32[4,1];%b: f32[4,1]", statistics});
  refuses({"epsilon = 0.5, name = batch_norm", "%x: f32[2,4,3];%s: f32[4,1];%b: f32[2,1]", statistics},
          "operand 2 is f32[2,1], wants floats that broadcast");
  refuses({"epsilon = 0.5, name = batch_norm", "%x: f32[2,4,3];%s: f32[1];%b: f32[1]",
           "f32[2,4,3];f32[1,4,1];f32[4]"},
          "result 2 is f32[4], wants f32[1,4,1]");
}

TEST_CASE("losses over classes have a label for each position") {
  const std::string mean = "name = softmax_cross_entropy, reduction = mean";
  accepts({mean, "%x: f32[2,5,3];%l: i64[2,3];%w: f32[5]", "f32[]"});
  accepts({"log_probabilities = true, " + mean, "%x: f32[2,5];%l: i32[2]", "f32[];f32[2,5]"});
  accepts({"name = negative_log_likelihood, reduction = none", "%x: f32[2,5];%l: i32[2]", "f32[2]"});
  refuses({mean, "%x: f32[2,5];%l: i64[5]", "f32[]"}, "operand 1 is i64[5], wants integers of [2]");
  refuses({mean, "%x: f32[2,5];%l: f32[2]", "f32[]"}, "operand 1 is f32[2], wants integers of [2]");
  refuses({mean, "%x: f32[2,5];%l: i64[2];%w: f32[2]", "f32[]"}, "wants a float for each of 5 channels");
  refuses({mean, "%x: f32[2,5];%l: i64[2]", "f32[2]"}, "result 0 is f32[2], wants f32[]");
  refuses({mean, "%x: f32[2,5];%l: i64[2]", "f32[];f32[2,5]"}, "a second result alone");
  refuses({"name = negative_log_likelihood, reduction = max", "%x: f32[2,5];%l: i64[2]", "f32[]"},
          "attribute reduction is max, wants one of none, sum, mean");
  refuses({"ignore_index = 0.5, " + mean, "%x: f32[2,5];%l: i64[2]", "f32[]"},
          "attribute ignore_index is missing or of another kind");
}

} // namespace
} // namespace firn
