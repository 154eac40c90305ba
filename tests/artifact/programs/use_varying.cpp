// Dims that vary, in C++: setting them, what is refused, and the views at their extents.
#include "expect.h"
#include "varying.h"

#include <firn/owned.h>
#include <firn/tfcompile.h>

#include <cstring>

using nlp::Varying;

static unsigned char nibbles[64];
static float choices[8];

static void bind(Varying& model) {
  model.bind_set_batch_2(choices);
  model.bind_nibbles(nibbles);
}

static void dims_start_at_the_bounds() {
  firn::Owned<Varying> model;
  bind(*model);
  const Varying::Dims bounds, dims = model->dims();
  EXPECT(bounds.batch == 8 && bounds.seq == 64 && bounds.image_height == 96 && bounds.class_ == 8);
  EXPECT(dims.batch == 8 && dims.seq == 64 && dims.image_height == 96 && dims.class_ == 8);
  EXPECT(model->input_ids().extent(0) == 8 && model->input_ids().extent(1) == 64);
  EXPECT(model->input_ids().size_bytes() == Varying::info().inputs[0].bytes);
  EXPECT(model->run());
  EXPECT(model->longer()(0, 0) == 8064 && model->longer()(0, 1) == 3008);
}

static void views_are_compact_at_the_extents() {
  firn::Owned<Varying> model;
  bind(*model);
  Varying::Dims dims;
  dims.batch = 2, dims.seq = 17, dims.image_height = 64, dims.class_ = 4;
  EXPECT(model->set_dims(dims));
  auto ids = model->input_ids();
  EXPECT(ids.extent(0) == 2 && ids.extent(1) == 17 && &ids(1, 0) == ids.data() + 17);
  EXPECT(ids.data() == model->input_data(0));
  EXPECT(model->image().extent(0) == 64 && model->image().extent(1) == 3);
  EXPECT(model->run());
  EXPECT(model->longer().extent(1) == 18 && model->longer()(0, 0) == 2017 && model->longer()(0, 1) == 2004);
  EXPECT(model->tiles().extent(0) == 8 && model->tiles().extent(1) == 9);
  EXPECT(model->boxes().extent(0) == 2 && model->boxes().extent(1) == 1 && model->boxes().extent(2) == 4);
  EXPECT(model->nibbles().extent(0) == 2 && model->nibbles().extent(1) == 9);
  EXPECT(model->set_seq(0));
  EXPECT(model->input_ids().size() == 0 && model->longer().extent(1) == 1 && model->tiles().extent(1) == 0);
  EXPECT(model->dims().batch == 2 && model->dims().seq == 0);
}

static void what_is_not_allowed_changes_nothing() {
  firn::Owned<Varying> model;
  EXPECT(model->set_batch(3) && model->set_image_height(32) && model->set_class_(4));
  EXPECT(model->set_batch(0).code() == FIRN_STATUS_OUT_OF_RANGE);
  EXPECT(std::strstr(model->set_batch(9).message(), "not compiled for"));
  EXPECT(model->set_batch(9).value() >> 16 == 0 && model->set_seq(65).value() >> 16 == 1); // which dim it is
  EXPECT(!model->set_batch(-1) && !model->set_seq(65) && !model->set_seq(PTRDIFF_MIN) &&
         !model->set_seq(PTRDIFF_MAX));
  EXPECT(!model->set_image_height(33) && !model->set_image_height(128) && !model->set_image_height(0));
  EXPECT(!model->set_class_(3) && model->set_class_(8) && model->set_class_(1));
  Varying::Dims dims;
  dims.batch = 5, dims.class_ = 7;
  EXPECT(!model->set_dims(dims));
  EXPECT(model->dims().batch == 3 && model->dims().seq == 64 && model->dims().image_height == 32);
  EXPECT(model->dims().class_ == 1);
}

static bool says(const Varying::Dims& dims, const char* wanted) {
  char text[80], cut[8];
  const std::size_t length = Varying::refusal(dims, text, sizeof text);
  EXPECT(Varying::refusal(dims, cut, sizeof cut) == length && std::strncmp(cut, wanted, 7) == 0 &&
         std::strlen(cut) == 7);
  EXPECT(Varying::refusal(dims, nullptr, 0) == length);
  return length == std::strlen(wanted) && std::strcmp(text, wanted) == 0;
}

static void what_is_not_allowed_is_told() {
  Varying::Dims dims;
  char text[8] = "?";
  EXPECT(Varying::refusal(dims, text, sizeof text) == 0 && text[0] == 0);
  dims.class_ = 7;
  EXPECT(says(dims, "class_ is 7, wants 1, 4 or 8"));
  dims.image_height = 65;
  EXPECT(says(dims, "image_height is 65, wants a multiple of 32 from 32 to 96"));
  dims.batch = PTRDIFF_MIN;
  EXPECT(says(dims, sizeof(std::ptrdiff_t) == 8 ? "batch is -9223372036854775808, wants 1 to 8"
                                                : "batch is -2147483648, wants 1 to 8"));
}

static void states_and_bound_buffers_stay() {
  firn::Owned<Varying> model;
  bind(*model);
  EXPECT(model->run());
  EXPECT(model->set_batch(1));
  EXPECT(model->run());
  EXPECT(model->runs()(0) == 2.0f);
  EXPECT(model->nibbles().data() == nibbles);
}

static void instances_that_failed_or_moved_refuse() {
  Varying failed(firn::ByteSpan(nibbles, sizeof nibbles));
  EXPECT(failed.set_batch(1).code() == FIRN_STATUS_ARENA_TOO_SMALL);
  EXPECT(failed.input_ids().data() == nullptr && failed.dims().batch == 8);
  static Varying::Arena arena;
  Varying first(arena);
  EXPECT(first.set_batch(4));
  Varying second(static_cast<Varying&&>(first));
  EXPECT(second.dims().batch == 4 && second.input_ids().extent(0) == 4);
  EXPECT(first.set_batch(4).code() == FIRN_STATUS_NOT_INITIALISED);
  EXPECT(first.input_ids().data() == nullptr && first.input_ids().size() == 0);
}

static void generic_code_finds_bounds_and_extents() {
  firn::Owned<Varying> model;
  bind(*model);
  const firn::ModelInfo& info = Varying::info();
  EXPECT(info.dim_count == 4 && info.dims[0].lower == 1 && info.dims[0].upper == 8);
  EXPECT(std::strcmp(info.dims[3].name, "class_") == 0 &&
         std::strcmp(info.dims[3].original_name, "class") == 0);
  EXPECT(info.dims[2].multiple == 32 && info.dims[3].allowed_count == 3 && info.dims[3].allowed[1] == 4);
  EXPECT(info.inputs[0].varies && info.inputs[0].dims[1] == 64 && !info.states[0].varies);
  EXPECT(model->set_dim(1, 5));
  EXPECT(!model->set_dim(1, 65) && model->set_dim(4, 1).code() == FIRN_STATUS_OUT_OF_RANGE);
  EXPECT(model->input_extent(0, 1) == 5 && model->input_extent(1, 1) == 3);
  EXPECT(model->input_extent(0, 2) == 0 && model->input_extent(3, 0) == 0);
  EXPECT(model->output_extent(0, 1) == 6 && model->output_extent(2, 0) == 0);
  EXPECT(model->run());
  EXPECT(model->output_extent(2, 0) == 2 && model->output_extent(9, 0) == 0);
}

static void tfcompile_sees_the_bounds() {
  firn::TfCompiled<Varying> model;
  EXPECT(model.num_args() == 3 && model.arg_size(0) == 8 * 64 * 8 && model.result_size(0) == 8 * 65 * 8);
  EXPECT(model.arg0_data() == model.arg_data(0));
}

int main() {
  dims_start_at_the_bounds();
  views_are_compact_at_the_extents();
  what_is_not_allowed_changes_nothing();
  what_is_not_allowed_is_told();
  states_and_bound_buffers_stay();
  instances_that_failed_or_moved_refuse();
  generic_code_finds_bounds_and_extents();
  tfcompile_sees_the_bounds();
  return failures;
}
