// Constructs a model and says what its constructor found: the exit code is 0 if that is the message given, or
// "ok".
#include "newer.h"
#include <firn/owned.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  firn::Owned<net::Newer> model;
  const char* message = model->status().message();
  std::printf("%s\n", message);
  return std::strcmp(message, argc > 1 ? argv[1] : "ok");
}
