#include "cli/arguments/bind_arguments.h"

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

// The message with which `parse` refuses; "" if it does not.
template <class Parse>
std::string refusal(const Parse& parse) {
  return error_of(ErrorKind::InvalidArgument, [&] { parse(); });
}

// The flag of an option with a value, e.g. given("threads", "2").
BindArguments given(std::string_view name, const std::string& value) {
  BindArguments arguments;
  arguments[name].value = value;
  return arguments;
}

TEST(BindArguments, BecomeOptions) {
  BindArguments arguments;
  EXPECT_EQ(bind_options_of(arguments).threads, 0);
  EXPECT_TRUE(bind_options_of(arguments).backends.empty());
  arguments["threads"].value = "3";
  arguments["backends"].value = "fast,slow";
  arguments["pins"].values = {"a=fast", "b=slow:plain"};
  arguments["exclusions"].values = {"fast:Conv"};
  arguments["precision"].value = "bfloat16";
  arguments["nan"].value = "fast";
  arguments["devices"].value = "gpu,gpu:1";
  const BindOptions options = bind_options_of(arguments);
  EXPECT_EQ(options.threads, 3);
  EXPECT_THAT(options.backends, ElementsAre("fast", "slow"));
  ASSERT_EQ(options.run.pins.size(), 2U);
  EXPECT_EQ(options.run.pins[1].algorithm, "plain");
  ASSERT_EQ(options.run.exclusions.size(), 1U);
  EXPECT_EQ(options.run.exclusions[0].op, "Conv");
  EXPECT_EQ(options.run.precision, Precision::BFloat16);
  EXPECT_EQ(options.run.nan, NanMode::Fast);
  EXPECT_THAT(options.run.devices, ElementsAre("gpu", "gpu:1"));
}

TEST(BindArguments, WhatIsNotGivenIsAsPreset) {
  BindOptions preset;
  preset.threads = 5;
  preset.run.precision = Precision::BFloat16;
  const BindOptions options = bind_options_of(given("precision", "float32"), preset);
  EXPECT_EQ(options.threads, 5);
  EXPECT_EQ(options.run.precision, Precision::Float32);
  EXPECT_TRUE(options.cache.swap);
  EXPECT_FALSE(bind_options_of({}).cache.swap);
  EXPECT_TRUE(bind_options_of(given("swap", "on")).cache.swap);
}

// A value that each flag takes.
std::string some_value(std::string_view name) {
  if (name == "precision") return "bfloat16";
  if (name == "nan" || name == "accuracy") return "fast";
  if (name == "swap") return "off";
  if (name == "memory_budget_bytes") return "1K";
  if (name == "pins" || name == "layouts") return "x=other";
  const bool is_number =
      name == "threads" || name == "max_bulk_steps" || name.ends_with("_seconds");
  return is_number ? "3" : "other";
}

// Compares texts and containers by their sizes, in which the values here differ.
template <class T>
bool is_same(const T& left, const T& right) {
  if constexpr (requires { left.size(); }) {
    return left.size() == right.size();
  } else if constexpr (requires { left == right; }) {
    return left == right;
  } else {
    return static_cast<bool>(left) == static_cast<bool>(right);
  }
}

TEST(BindArguments, EachFlagSetsItsField) {
  for (const BindOption& option : bind_options()) {
    if (option.flag.name.empty()) continue;
    SCOPED_TRACE(option.flag.name);
    BindArguments arguments;
    GivenOption& one = arguments[option.name];
    if (option.flag.value.empty()) {
      // An option that is on by default can only be switched off.
      (option.name == "fuse" ? one.is_negated : one.is_set) = true;
    } else if (option.flag.is_repeatable) {
      one.values = {some_value(option.name)};
    } else {
      one.value = some_value(option.name);
    }
    const BindOptions plain;
    const BindOptions changed = bind_options_of(arguments, plain);
    for (const BindOption& other : bind_options()) {
      std::visit(
          [&](const auto& field) {
            EXPECT_EQ(is_same(field.get(plain), field.get(changed)), &other != &option)
                << other.name;
          },
          other.field.typed);
    }
  }
}

TEST(BindArguments, WrongValuesAreRefused) {
  for (const char* text : {"", "some", "-1", "1.5", "4097"}) {
    EXPECT_THAT(refusal([&] { bind_options_of(given("threads", text)); }), HasSubstr("--threads"))
        << text;
  }
  for (const char* text : {"", "float16", "Float32"}) {
    EXPECT_THAT(refusal([&] { bind_options_of(given("precision", text)); }),
                HasSubstr("--precision '" + std::string(text) + "': expected float32 or bfloat16"));
  }
  for (const char* text : {"", "slow", "Fast"}) {
    EXPECT_THAT(refusal([&] { bind_options_of(given("nan", text)); }),
                HasSubstr("expected exact or fast"))
        << text;
  }
  for (const char* name : {"candidate_timeout_seconds", "tune_budget_seconds"}) {
    EXPECT_THAT(refusal([&] { bind_options_of(given(name, "0")); }),
                HasSubstr("expected a number above 0"));
  }
  EXPECT_THAT(refusal([] { bind_options_of(given("memory_budget_bytes", "1MB")); }),
              HasSubstr("--memory-budget '1MB': expected a size"));
  EXPECT_THAT(refusal([] { bind_options_of(given("swap", "yes")); }),
              HasSubstr("expected off or on"));
  EXPECT_NE(refusal([] { bind_options_of(given("backends", "")); }), "") << "given, but empty";
  BindArguments both;
  both["optimize"].is_set = both["optimize"].is_negated = true;
  EXPECT_THAT(refusal([&] { bind_options_of(both); }),
              HasSubstr("--no-optimize: expected either this or --optimize, found both"));
  BindArguments twice;
  twice["layouts"].values = {"x=csr", "x=row_sparse"};
  EXPECT_THAT(refusal([&] { bind_options_of(twice); }),
              HasSubstr("expected one --layout for each name, found two"));
}

}  // namespace
}  // namespace tessera::cli
