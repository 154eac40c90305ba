// A compiled model of 8-bit floats and packed elements, through the views of its header.
#include "expect.h"
#include "narrow.h"

#include <firn/owned.h>

int main() {
  firn::Owned<test::Narrow> model;
  EXPECT(model->status());
  static_assert(sizeof(*model->x().data()) == 1, "a code takes a byte");
  static_assert(test::Narrow::input_count == 2 && test::Narrow::output_count == 4, "as the model says");
  EXPECT(model->y().size() == 9 && model->y().size_bytes() == 5);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) model->x()(i, j) = static_cast<float>(i * 5 + j) - 7.0f;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) model->y()(i, j) = static_cast<std::int8_t>(i * 3 + j - 5);
  EXPECT(model->run());
  // f4e2m1 holds the integers from -6 to 6 but for 5, which is a tie.
  const float fours[] = {0, 1, 2, 3, 4, 4, 6, 6};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) {
      const int value = i * 5 + j - 7;
      const float narrow = value < 0 ? -fours[-value] : fours[value];
      EXPECT(model->output_0()(i, j) == static_cast<float>(firn::float8_e5m2(static_cast<float>(value))));
      EXPECT(model->output_2()(j, i) == narrow);
    }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) EXPECT(model->output_1()(j, i) == i * 3 + j - 5);
  EXPECT(model->output_3()(0) == -4.0f && model->output_3()(1) == 3.5f && model->output_3()(2) == 1.5f);
  EXPECT(model->output_1().data()[4] < 16); // nothing lies behind the last element
  return failures;
}
