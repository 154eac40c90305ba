// Does not compile, with a message that says what to do: the owner has no memory for prepared weights.
#include "prepared.h"

#include <firn/owned.h>

int main() {
  firn::Owned<vision::Prepared> model;
  return model.status() ? 0 : 1;
}
