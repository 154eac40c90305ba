// Strings: inputs that refer to the program's bytes, outputs that refer to these and to the run's, and runs
// whose strings find no room.
#include "words.h"
#include "few_bytes.h"

#include <firn/owned.h>

#include <string>

int main() {
  firn::Owned<demo::Words> model;
  if (!model->status() || !model->sentence()(0).empty()) return 1;
  if (!model->run() || model->words().extent(1) != 0 || model->marked()(1) != "!") return 2;
  const std::string first = "The FOX and the dog";
  model->sentence()(0) = first;
  model->sentence()(1) = firn::Text("hello\0fox", 9);
  if (!model->run()) return 3;
  const auto words = model->words();
  if (words.extent(1) != 5 || words(0, 1) != "fox" || words(1, 0) != firn::Text("hello\0fox", 9) ||
      !words(1, 1).empty())
    return 4;
  if (model->counts()(0) != 5 || model->counts()(1) != 1) return 5;
  if (model->sums()(0, 0) != 112 || model->sums()(0, 1) != 224 || model->sums()(1, 0) != 0) return 6;
  const std::string_view marked = model->marked()(0);
  if (marked != "the fox and the dog!" || first != "The FOX and the dog") return 7;
  if (model->greets()(0) || !model->greets()(1)) return 8;

  const firn::Text bound[] = {"fox fox", std::string_view("dog")};
  model->bind_sentence(bound);
  if (!model->run() || model->sums()(0, 1) != 40 || model->sums()(1, 1) != 200) return 9;

  firn::Owned<demo::FewBytes> few;
  few->sentence()(0) = "a b c";
  if (!few->run()) return 10;
  few->sentence()(0) = "a b c d e f g h i j k";
  if (few->run().code() != FIRN_STATUS_OUT_OF_RANGE) return 11;
  few->sentence()(0) = "a b c d";
  if (few->run().value() != (FIRN_STATUS_OUT_OF_RANGE | 3 << 8)) return 12;
  few->sentence()(0) = "fox";
  return few->run() && few->sums()(0, 0) == 10 ? 0 : 13;
}
