#include "base/errors/likely_name.h"

#include <gmock/gmock.h>

namespace tessera {
namespace {

TEST(LikelyName, CountsEdits) {
  struct Case {
    const char* left;
    const char* right;
    size_t distance;
  };
  const Case cases[] = {
      {"", "", 0},         {"", "abc", 3},           {"abc", "", 3},           {"Conv", "conv", 0},
      {"Cnov", "Conv", 1}, {"thread", "threads", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1},
      {"abc", "ca", 3},    {"run", "tune", 2},
  };
  for (const Case& row : cases) {
    EXPECT_EQ(edit_distance(row.left, row.right), row.distance) << row.left << " " << row.right;
    EXPECT_EQ(edit_distance(row.right, row.left), row.distance) << row.right << " " << row.left;
  }
}

TEST(LikelyName, IsNearOrNone) {
  struct Case {
    const char* name;
    std::vector<std::string> known;
    const char* likely;  // null: none
  };
  const Case cases[] = {
      {"thread", {"costs", "threads", "trace"}, "threads"},
      {"rn", {"run", "tune"}, "run"},
      {"Cnov", {"Cos", "Conv", "ConvTranspose"}, "Conv"},
      {"conv", {"ConvTranspose", "Conv"}, "Conv"},
      {"cache", {"costs", "cache-dir"}, "cache-dir"},
      {"opt", {"optimize-for", "optimize"}, "optimize"},
      {"mem", {"memory-budget", "threads"}, "memory-budget"},
      {"bogus", {"costs", "pin", "node"}, nullptr},
      {"q", {"x", "y"}, nullptr},
      {"t", {"threads"}, nullptr},
      {"", {"x", ""}, ""},
      {"", {"x"}, nullptr},
      {"x", {}, nullptr},
      {"ab", {"xy"}, nullptr},
  };
  for (const Case& row : cases) {
    const std::optional<std::string> likely = likely_name(row.name, row.known);
    ASSERT_EQ(likely.has_value(), row.likely != nullptr) << row.name;
    if (!likely) continue;
    EXPECT_EQ(*likely, row.likely) << row.name;
  }
}

TEST(LikelyName, LongNamesAreComparedByTheirBeginnings) {
  const std::string known(100'000, 'a');
  EXPECT_EQ(likely_name(std::string(100'001, 'a'), {known}), known);
}

TEST(LikelyName, EndsAMessage) {
  EXPECT_EQ(did_you_mean("Cnov", {"Conv"}), "; did you mean 'Conv'?");
  EXPECT_EQ(did_you_mean("Cnov", {"Relu"}), "");
}

}  // namespace
}  // namespace tessera
