// The report for people and the budget check.
#include "compiler/artifact/report.h"
#include "tests/artifact/sample_models.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::artifact;

TEST_CASE("the report shows the arena against its bound and kernels by work") {
  const std::string report = write_report(digits_sample());
  CHECK(report.find("arena         24,576 B, lower bound 24,576 B, ratio 1.000") != std::string::npos);
  CHECK(report.find("peak          15,680 B in step 2 of 3, /conv1/Conv\n"
                    "              12,544 B of conv1.output, until /fc/Gemm\n"
                    "              3,136 B of image, to the end of the run\n") != std::string::npos);
  CHECK(report.find("\nwhen linked   functions of the runtime") != std::string::npos);
  CHECK(report.find("\nconv1") < report.find("\nfc "));
}

TEST_CASE("a kept budget is no error") {
  CHECK(check_budgets(digits_sample(), {}));
  CHECK(check_budgets(digits_sample(), {9800 + 256, 24576 + 448}));
}

TEST_CASE("an exceeded budget names the excess and the largest contributors") {
  const Result flash = check_budgets(digits_sample(), {10000, std::nullopt});
  REQUIRE_FALSE(flash);
  CHECK(flash.error().message ==
        "flash use of 10,056 B exceeds the budget of 10,000 B by 56 B; largest: fc.weight "
        "240.0 kB, code of conv1 4.0 kB, code of fc 2.0 kB, conv1.weight 1.6 kB");
  const Result ram = check_budgets(digits_sample(), {std::nullopt, 20480});
  REQUIRE_FALSE(ram);
  CHECK(ram.error().message ==
        "RAM use of 25,024 B exceeds the budget of 20,480 B by 4,544 B; largest: conv1.output "
        "12.5 kB, image 3.1 kB, stack 448 B");
}

TEST_CASE("prepared weights are RAM, raw ones flash") {
  ModelDescription model = digits_sample();
  model.raw_weight_bytes = 128;
  CHECK(write_report(model).find("raw weights   128 B in the object") != std::string::npos);
  CHECK(check_budgets(model, {9800 + 128, 24576 + 448 + 256}));
  CHECK_FALSE(check_budgets(model, {9800 + 127, std::nullopt}));
  const Result ram = check_budgets(model, {std::nullopt, 24576 + 448 + 255});
  REQUIRE_FALSE(ram);
  CHECK(ram.error().message.find("prepared weights 256 B") != std::string::npos);
}

TEST_CASE("weights that are read in place are no RAM") {
  ModelDescription model = in_place_sample();
  CHECK(write_report(model).find("raw weights   256 B in the object, read there") != std::string::npos);
  CHECK(check_budgets(model, {9800 + 256, 24576 + 448}));
}

TEST_CASE("byte counts with binary suffixes") {
  CHECK(parse_byte_count("64K") == 65536);
  CHECK(parse_byte_count("1M") == 1 << 20);
  CHECK(parse_byte_count("123") == 123);
  CHECK(parse_byte_count("1.5K") == 1536);
  CHECK(parse_byte_count("0.25M") == 1 << 18);
  CHECK(parse_byte_count("1.0001K") == 1024);
  for (const char* bad : {"", "K", "-1", "1.5", "1.K", "1.xK", "1.0000000001K", "64KB", "99999999999G"})
    CHECK_FALSE(parse_byte_count(bad));
}
