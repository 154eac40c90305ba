// Instances that cannot run: their views may be asked for and are of null, run() says why, and nothing is
// touched.
#include "demanding.h"
#include "digits.h"
#include "everything.h"
#include "expect.h"
#include "prepared.h"

#include <firn/owned.h>
#include <firn/tfcompile.h>

#include <cstdlib>
#include <utility>

static bool is_out_of_memory = false;

void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const std::size_t step = static_cast<std::size_t>(alignment);
  return is_out_of_memory ? nullptr : std::aligned_alloc(step, (bytes + step - 1) / step * step);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}

// Everything of digits (and of the like with prepared weights) after a failure with this code.
template <class Model> static void expect_nothing(Model& model, int code) {
  EXPECT(model.status().code() == code);
  EXPECT(model.run().code() == code);
  EXPECT(model.image().data() == nullptr);
  EXPECT(model.probabilities().data() == nullptr);
  EXPECT(model.input_data(0) == nullptr && model.output_data(0) == nullptr);
  float image[784] = {};
  model.bind_image(image);
  EXPECT(model.input_data(0) == image);
  model.bind_image(nullptr);
  EXPECT(model.input_data(0) == nullptr);
  EXPECT(model.bind_output(0, nullptr));
  EXPECT(model.probabilities().data() == nullptr);
  EXPECT(model.run().code() == code);
}

static void expect_nothing(Everything& model, int code) {
  EXPECT(model.status().code() == code);
  EXPECT(model.in_f64().data() == nullptr && model.in_u2().data() == nullptr);
  EXPECT(model.out_c128().data() == nullptr && model.out_i4().data() == nullptr);
  EXPECT(model.boxes().data() == nullptr && model.boxes().extent(0) == 0);
  EXPECT(model.memory().data() == nullptr && model.past().data() == nullptr);
  model.reset();
  EXPECT(model.run().code() == code);
}

static void an_arena_that_does_not_fit() {
  static vision::Digits::Arena arena;
  vision::Digits small(firn::ByteSpan(arena.bytes, 100));
  expect_nothing(small, FIRN_STATUS_ARENA_TOO_SMALL);
  vision::Digits misaligned(firn::ByteSpan(arena.bytes + 1, sizeof arena.bytes - 1));
  expect_nothing(misaligned, FIRN_STATUS_ARENA_TOO_SMALL);
  vision::Digits nowhere((firn::ByteSpan()));
  expect_nothing(nowhere, FIRN_STATUS_NO_MEMORY);
  static Everything::Arena everything_arena;
  Everything everything(firn::ByteSpan(everything_arena.bytes, 1));
  expect_nothing(everything, FIRN_STATUS_ARENA_TOO_SMALL);
}

static void weights_that_do_not_fit() {
  static vision::Digits::Arena arena;
  vision::Digits digits(arena, vision::Digits::Weights::bound({}));
  expect_nothing(digits, FIRN_STATUS_NO_WEIGHTS);
  vision::Prepared prepared(arena.bytes, vision::Prepared::Weights::prepare(firn::ByteSpan()));
  expect_nothing(prepared, FIRN_STATUS_NO_WEIGHTS);
}

static void moved_from() {
  static vision::Digits::Arena arena;
  vision::Digits first(arena);
  vision::Digits second(std::move(first));
  expect_nothing(first, FIRN_STATUS_NOT_INITIALISED);
  EXPECT(second.run());
  static Everything::Arena everything_arena;
  Everything everything(everything_arena), other(std::move(everything));
  expect_nothing(everything, FIRN_STATUS_NOT_INITIALISED);
  firn::Owned<vision::Digits> owned, taken(std::move(owned));
  expect_nothing(*owned, FIRN_STATUS_NOT_INITIALISED);
  EXPECT(taken->run());
}

static void failed_allocation() {
  is_out_of_memory = true;
  firn::Owned<vision::Digits> owned;
  firn::Owned<Everything> everything;
  firn::TfCompiled<vision::Digits> compiled;
  is_out_of_memory = false;
  EXPECT(owned.status().code() == FIRN_STATUS_NO_MEMORY);
  expect_nothing(*owned, FIRN_STATUS_NO_MEMORY);
  expect_nothing(*everything, FIRN_STATUS_NO_MEMORY);
  EXPECT(compiled.arg0_data() == nullptr && compiled.result_data(0) == nullptr);
  EXPECT(!compiled.Run() && !compiled.error_msg().empty());
  firn::Owned<vision::Digits> good;
  owned = std::move(good);
  EXPECT(owned->run());
}

static void tensors_that_do_not_exist() {
  firn::Owned<vision::Digits> digits;
  float buffer[784] = {};
  for (std::size_t index : {std::size_t{1}, std::size_t{7}, static_cast<std::size_t>(-1)}) {
    EXPECT(digits->bind_input(index, buffer).code() == FIRN_STATUS_OUT_OF_RANGE);
    EXPECT(digits->bind_output(index, buffer).code() == FIRN_STATUS_OUT_OF_RANGE);
    EXPECT(digits->input_data(index) == nullptr && digits->output_data(index) == nullptr);
  }
  EXPECT(digits->bind_input(0, buffer));
  EXPECT(digits->run());
  firn::TfCompiled<vision::Digits> compiled;
  EXPECT(compiled.arg_data(compiled.LookupArgIndex("nothing")) == nullptr);
  EXPECT(compiled.result_data(5) == nullptr);
  compiled.set_arg_data(5, buffer);
  EXPECT(compiled.arg_size(5) == 0 && compiled.result_size(1) == 0);
  EXPECT(compiled.Run());
}

static void another_cpu() {
  Demanding::Arena arena;
  Demanding model(arena);
  EXPECT(model.Y().data() == nullptr);
  EXPECT(model.bind_input(0, nullptr).code() == FIRN_STATUS_OUT_OF_RANGE);
}

int main() {
  an_arena_that_does_not_fit();
  weights_that_do_not_fit();
  moved_from();
  failed_allocation();
  tensors_that_do_not_exist();
  another_cpu();
  return failures;
}
