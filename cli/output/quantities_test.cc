#include "cli/output/quantities.h"

#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

TEST(Quantities, HaveThreeDigitsAndAUnit) {
  EXPECT_EQ(quantity_text(0), "0");
  EXPECT_EQ(quantity_text(999), "999");
  EXPECT_EQ(quantity_text(1'500'000), "1.50 M");
  EXPECT_EQ(quantity_text(39.2e9), "39.2 G");
  EXPECT_EQ(bytes_text(17), "17 B");
  EXPECT_EQ(bytes_text(3 << 19), "1.50 MiB");
}

TEST(Quantities, TimesAreInTheUnitThatFits) {
  const struct {
    double seconds;
    const char* text;
  } cases[] = {
      {0, "0.0 \xc2\xb5s"},
      {12.34e-6, "12.3 \xc2\xb5s"},
      {999.94e-6, "999.9 \xc2\xb5s"},
      {999.96e-6, "1.000 ms"},
      {2.6244e-3, "2.624 ms"},
      {9.9996e-3, "10.00 ms"},
      {31.9e-3, "31.90 ms"},
      {0.3, "300.0 ms"},
      {0.99996, "1.000 s"},
      {19.5, "19.50 s"},
      {3600, "3600.0 s"},
  };
  for (const auto& row : cases) EXPECT_EQ(time_text(row.seconds), row.text);
}

TEST(Quantities, AnIntervalIsHalfOfItInPercent) {
  EXPECT_EQ(time_text(MeasuredTime{2e-3, 1.9e-3, 2.1e-3, 9}),
            "2.000 ms \xc2\xb1"
            "5.0 %");
  EXPECT_EQ(time_text(2e-3, 1.5e-3, 2.5e-3),
            "2.000 ms \xc2\xb1"
            "25 %");
  EXPECT_EQ(time_text(2e-3, 0.1e-3, 3.5e-3), "2.000 ms \xc2\xb1>50 %");
  EXPECT_EQ(time_text(2e-3, 0, 0), "2.000 ms") << "nobody found an interval";
}

TEST(Quantities, CountsAreOneOrMany) {
  EXPECT_EQ(count_text(1, "step"), "1 step");
  EXPECT_EQ(count_text(0, "step"), "0 steps");
  EXPECT_EQ(count_text(1, "copy", "copies"), "1 copy");
  EXPECT_EQ(count_text(2, "copy", "copies"), "2 copies");
}

}  // namespace
}  // namespace tessera::cli
