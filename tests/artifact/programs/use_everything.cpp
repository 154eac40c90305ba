// Every element type, external and counted tensors, states, a model without arena or weights, and one
// for another CPU.
#include "bare.h"
#include "demanding.h"
#include "everything.h"
#include "expect.h"

#include <firn/owned.h>

#include <cstring>

static void element_types_pass_through() {
  firn::Owned<Everything> model;
  float external_in[4] = {1, 2, 3, 4}, external_out[4] = {};
  EXPECT(model->run().code() == FIRN_STATUS_NOT_BOUND);
  model->bind_external_in(external_in);
  EXPECT(model->run().code() == FIRN_STATUS_NOT_BOUND);
  model->bind_external_out(external_out);
  model->in_f64()(1, 2) = 0.1;
  model->in_f16()(1, 2) = 0.5f;
  model->in_bf16()(0, 1) = 3.0f;
  model->in_f8e4m3fn()(0, 1) = 448.0f;
  model->in_f4e2m1()(1, 1) = -6.0f;
  model->in_i64()(1, 2) = -7;
  model->in_i4()(1, 2) = -8;
  model->in_u2()(0, 2) = 3;
  model->in_bool()(1, 0) = true;
  model->in_c64()(1, 1) = {1.0f, 2.0f};
  EXPECT(model->run());
  EXPECT(model->out_f64()(1, 2) == 0.1);
  EXPECT(model->out_f16()(1, 2) == 0.5f);
  EXPECT(model->out_bf16()(0, 1) == 3.0f);
  EXPECT(model->out_f8e4m3fn()(0, 1) == 448.0f);
  EXPECT(model->out_f4e2m1()(1, 1) == -6.0f);
  EXPECT(model->out_i64()(1, 2) == -7);
  EXPECT(model->out_i4()(1, 2) == -8);
  EXPECT(model->out_u2()(0, 2) == 3);
  EXPECT(model->out_bool()(1, 0));
  EXPECT(model->out_c64()(1, 1).imag == 2.0f);
  EXPECT(external_out[3] == 4.0f);
}

static void counted_outputs_show_the_rows_that_exist() {
  firn::Owned<Everything> model;
  float buffer[4] = {};
  EXPECT(model->boxes().extent(0) == 0);
  model->bind_external_in(buffer);
  model->bind_external_out(buffer);
  EXPECT(model->run());
  EXPECT(model->boxes().extent(0) == 2);
  EXPECT(model->boxes().size() == 8);
  EXPECT(model->output_495().size() == 0);
}

static void state_is_kept_until_reset() {
  firn::Owned<Everything> model;
  float buffer[4] = {};
  model->bind_external_in(buffer);
  model->bind_external_out(buffer);
  EXPECT(model->memory()(0) == 0.0f);
  EXPECT(model->past()(0) == 1.0f);
  EXPECT(model->run());
  EXPECT(model->run());
  EXPECT(model->memory()(0) == 2.0f);
  model->past()(0) = 5.0f;
  model->reset();
  EXPECT(model->memory()(0) == 0.0f);
  EXPECT(model->past()(0) == 1.0f);
}

static void names_of_the_model_survive() {
  const firn::ModelInfo& info = Everything::info();
  EXPECT(std::strcmp(info.name, "every\"thing\n") == 0);
  EXPECT(std::strcmp(info.inputs[27].original_name, "external/\"in\"\xc3\xa9\n?\?/") == 0);
  EXPECT(info.inputs[27].external);
  EXPECT(std::strcmp(info.inputs[25].name, "class_") == 0);
  EXPECT(info.inputs[25].rank == 0 && info.inputs[25].dims == nullptr);
  EXPECT(info.state_count == 2);
}

static void a_bare_model_runs() {
  a::b::BareModel::Arena arena;
  a::b::BareModel model(arena);
  float output[2] = {};
  model.bind_Y(output);
  EXPECT(model.run());
  EXPECT(output[1] == 2.0f);
  EXPECT(a::b::BareModel::info().inputs == nullptr);
}

static void a_model_for_another_cpu_refuses_to_run() {
  Demanding::Arena arena;
  Demanding model(arena);
  float output[2] = {};
  model.bind_Y(output);
  EXPECT(model.status().code() == FIRN_STATUS_UNSUPPORTED_CPU);
  EXPECT(model.run().code() == FIRN_STATUS_UNSUPPORTED_CPU);
  EXPECT(std::strcmp(model.status().message(), "the model was compiled for another CPU") == 0);
}

int main() {
  element_types_pass_through();
  counted_outputs_show_the_rows_that_exist();
  state_is_kept_until_reset();
  names_of_the_model_survive();
  a_bare_model_runs();
  a_model_for_another_cpu_refuses_to_run();
  return failures;
}
