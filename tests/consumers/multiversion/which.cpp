// Prints the CPU whose code runs, or why none does.
#include "several.h"

#include <firn/owned.h>

#include <cstdio>

int main() {
  firn::Owned<nets::Several> model;
  std::puts(model.status() && model->run() ? model->info().cpu : model.status().message());
  return model.status() ? 0 : 1;
}
