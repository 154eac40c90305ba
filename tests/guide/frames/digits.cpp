// Statements of a function that returns whether all went well; there is a model, a picture and a logger.
#include "digits.h"
#include "denoiser.h"
#include "encoder.h"
#include "external_digits.h"
#include "prepared_digits.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <firn/owned.h>
#include <firn/tfcompile.h>
#include <firn/thread_pool.h>
#include <span>
#include <thread>
#include <vector>

namespace {

float picture[28][28];
float camera_frame[28 * 28];
vision::Digits::Arena model_arena;
vision::Digits model(model_arena);

void log(const char* text) {
  std::fprintf(stderr, "%s\n", text);
}

bool fragment() {
  // THE FRAGMENT
  return true;
}

} // namespace

int main() {
  (void)picture, (void)camera_frame, (void)&log, (void)model;
  return fragment() ? 0 : 1;
}
