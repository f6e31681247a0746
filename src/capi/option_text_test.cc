#include "capi/option_text.h"

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::capi {
namespace {

// Returns the error of set_option(), which must leave the options unchanged; "" for no error.
std::string refusal(std::string_view name, const std::string& text) {
  BindOptions options{.threads = 7};
  const std::string error =
      error_of(ErrorKind::InvalidArgument, [&] { set_option(options, name, text); });
  EXPECT_TRUE(error.empty() || options.threads == 7);
  return error;
}

TEST(OptionText, SetsEachTypeOfOption) {
  BindOptions options;
  set_option(options, "threads", "2");
  set_option(options, "backends", "native,reference");
  set_option(options, "optimize", "behind");
  set_option(options, "nan", "fast");
  set_option(options, "frozen", "true");
  set_option(options, "swap", "false");
  set_option(options, "cache_dir", "/a b");
  set_option(options, "optimize_for", "100-runs");
  set_option(options, "tune_budget_seconds", "0.5");
  set_option(options, "memory_budget_bytes", "2K");
  set_option(options, "shapes", "x=1x3");
  set_option(options, "shapes", "a=b=scalar");
  set_option(options, "shape_ranges", "a=b=1x8..128x32..100/32");
  set_option(options, "layouts", "x=csr:40");
  set_option(options, "pins", "conv*=native:winograd");
  set_option(options, "exclusions", "native:Conv");
  set_option(options, "state_pairs", "past=present");
  EXPECT_EQ(options.threads, 2);
  EXPECT_THAT(options.backends, ElementsAre("native", "reference"));
  EXPECT_EQ(options.optimize, Optimize::Behind);
  EXPECT_EQ(options.run.nan, NanMode::Fast);
  EXPECT_TRUE(options.cache.frozen);
  EXPECT_FALSE(options.cache.swap);
  EXPECT_EQ(options.cache.cache_dir, "/a b");
  EXPECT_EQ(options.tune.optimize_for, "100-runs");
  EXPECT_EQ(options.limits.tune_budget_seconds, 0.5);
  EXPECT_EQ(options.limits.memory_budget_bytes, 2048);
  EXPECT_THAT(options.shapes.at("x"), ElementsAre(1, 3));
  EXPECT_THAT(options.shapes.at("a=b"), ElementsAre());
  EXPECT_THAT(options.shape_ranges.at("a=b"),
              ElementsAre(SizeRange{1, 1}, SizeRange{8, 128}, SizeRange{32, 96, 32}));
  EXPECT_EQ(options.run.layouts.at("x"), "csr:40");
  ASSERT_EQ(options.run.pins.size(), 1U);
  EXPECT_EQ(options.run.pins[0].algorithm, "winograd");
  ASSERT_EQ(options.run.exclusions.size(), 1U);
  EXPECT_EQ(options.run.exclusions[0].op, "Conv");
  ASSERT_EQ(options.run.state_pairs.size(), 1U);
  EXPECT_EQ(options.run.state_pairs[0].output, "present");
}

TEST(OptionText, ALaterValueReplacesAndSeveralAddUp) {
  BindOptions options;
  for (const char* text : {"native", "reference"}) set_option(options, "backends", text);
  EXPECT_THAT(options.backends, ElementsAre("reference"));
  set_option(options, "backends", "");
  EXPECT_TRUE(options.backends.empty());
  for (const char* text : {"x=1", "y=2", "x=3"}) set_option(options, "shapes", text);
  EXPECT_EQ(options.shapes.size(), 2U);
  EXPECT_THAT(options.shapes.at("x"), ElementsAre(3));
  for (const char* text : {"native:Conv", "native:Relu"}) set_option(options, "exclusions", text);
  EXPECT_EQ(options.run.exclusions.size(), 2U);
}

struct RefusalCase {
  const char* name;
  const char* text;
  const char* expected;
};

const RefusalCase kRefusals[] = {
    {"thread", "2",
     "option 'thread': expected the name of an option of bind (docs/options.md), "
     "found no such option; did you mean 'threads'?"},
    {"run.nan", "fast", "did you mean 'nan'?"},
    {"", "", "found no such option"},
    {"on_progress", "x", "option 'on_progress': cannot be written as text"},
    {"tuning_inputs", "x", "cannot be written as text"},
    {"threads", "", "option threads '': expected a whole number from 0 to 4096"},
    {"threads", "-1", "expected a whole number"},
    {"threads", "99999999999999999999", "expected a whole number"},
    {"threads", "2 ", "expected a whole number"},
    {"most_shapes", "0", "most_shapes: expected at least 1, found 0"},
    {"frozen", "yes", "option frozen 'yes': expected false or true"},
    {"swap", "on", "expected false or true"},
    {"nan", "Fast", "expected exact or fast; did you mean 'fast'?"},
    {"optimize", "true", "expected off, now or behind"},
    {"tune_budget_seconds", "nan", "expected a finite number"},
    {"candidate_timeout_seconds", "0", "expected more than 0"},
    {"optimize_for", "speed", "expected 'latency'"},
    {"memory_budget_bytes", "1MB", "expected a size"},
    {"backends", "native,,reference", "expected names with commas between"},
    {"shapes", "x", "option shapes 'x': expected two parts with '=' between"},
    {"shapes", "x=1xH", "option shapes of 'x' '1xH': expected dimensions"},
    {"shape_ranges", "x=1x8..H", "option shape_ranges of 'x': expected sizes, or ranges LOW..HIGH"},
    {"pins", "conv1", "option pins 'conv1': expected NODES=BACKEND"},
    {"state_pairs", "past", "such as past=present"},
};

TEST(OptionText, RefusesWhatIsNoValue) {
  for (const RefusalCase& row : kRefusals) {
    EXPECT_THAT(refusal(row.name, row.text), HasSubstr(row.expected)) << row.name;
  }
}

TEST(OptionText, HasAllOptionsExceptArraysAndFunctions) {
  EXPECT_EQ(text_options().size(), bind_options().size() - 3);
}

}  // namespace
}  // namespace tessera::capi
