#include "cli/bind_arguments.h"

#include <gmock/gmock.h>

namespace tessera::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What `parse` refuses with; "" where it does not.
template <class Parse>
std::string refusal(const Parse& parse) {
  try {
    parse();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    return error.what();
  }
  return "";
}

struct PinCase {
  const char* text;
  const char* nodes;
  const char* backend;
  const char* algorithm;
};

const PinCase kPins[] = {
    {"conv1=fast", "conv1", "fast", ""},
    {"conv1=fast:jit", "conv1", "fast", "jit"},
    {"conv1=fast:jit:avx2", "conv1", "fast", "jit:avx2"},
    {"block/conv:0=fast", "block/conv:0", "fast", ""},
    {"a=b=fast:jit", "a=b", "fast", "jit"},
    {"block/*=fast", "block/*", "fast", ""},
    {"stage=head=fast", "stage=head", "fast", ""},
};

TEST(BindArguments, TheLastSignEndsThePinnedNodes) {
  for (const PinCase& row : kPins) {
    const Pin pin = parse_pin(row.text);
    EXPECT_EQ(pin.nodes, row.nodes) << row.text;
    EXPECT_EQ(pin.backend, row.backend) << row.text;
    EXPECT_EQ(pin.algorithm, row.algorithm) << row.text;
  }
}

TEST(BindArguments, PinsWithoutAPartAreRefused) {
  for (const char* text : {"", "conv1", "=fast", "conv1=", "conv1=:jit", "conv1=fast:", "="}) {
    EXPECT_THAT(refusal([&] { parse_pin(text); }),
                HasSubstr("--pin '" + std::string(text) + "': expected NODES=BACKEND"));
  }
}

TEST(BindArguments, ExclusionsAreOfABackendOrAnOp) {
  EXPECT_EQ(parse_exclusion("fast").backend, "fast");
  EXPECT_EQ(parse_exclusion("fast").op, "");
  EXPECT_EQ(parse_exclusion("fast:Conv").backend, "fast");
  EXPECT_EQ(parse_exclusion("fast:Conv").op, "Conv");
  for (const char* text : {"", ":Conv", "fast:", ":"}) {
    EXPECT_THAT(refusal([&] { parse_exclusion(text); }), HasSubstr("expected BACKEND")) << text;
  }
}

TEST(BindArguments, BackendsAreNamesWithCommasBetween) {
  EXPECT_THAT(parse_backend_list("fast"), ElementsAre("fast"));
  EXPECT_THAT(parse_backend_list("fast,slow"), ElementsAre("fast", "slow"));
  for (const char* text : {"", ",", "fast,", ",fast", "fast,,slow"}) {
    EXPECT_THAT(refusal([&] { parse_backend_list(text); }), HasSubstr("expected names")) << text;
  }
  EXPECT_THAT(refusal([] { parse_backend_list("fast,slow,fast"); }), HasSubstr("'fast' twice"));
}

TEST(BindArguments, BecomeOptions) {
  BindArguments arguments;
  EXPECT_EQ(bind_options_of(arguments).threads, 0);
  EXPECT_TRUE(bind_options_of(arguments).backends.empty());
  arguments.threads = "3";
  arguments.backends = "fast,slow";
  arguments.pins = {"a=fast", "b=slow:plain"};
  arguments.exclusions = {"fast:Conv"};
  arguments.precision = "bfloat16";
  arguments.nan = "fast";
  arguments.device = "gpu";
  const BindOptions options = bind_options_of(arguments);
  EXPECT_EQ(options.threads, 3);
  EXPECT_THAT(options.backends, ElementsAre("fast", "slow"));
  ASSERT_EQ(options.pins.size(), 2U);
  EXPECT_EQ(options.pins[1].algorithm, "plain");
  ASSERT_EQ(options.exclusions.size(), 1U);
  EXPECT_EQ(options.exclusions[0].op, "Conv");
  EXPECT_EQ(options.precision, Precision::BFloat16);
  EXPECT_EQ(options.nan, NanMode::Fast);
  EXPECT_EQ(options.device, "gpu");
}

TEST(BindArguments, WrongNumbersAndPrecisionsAreRefused) {
  for (const char* text : {"", "some", "-1", "1.5", "4097"}) {
    BindArguments arguments;
    arguments.threads = text;
    EXPECT_THAT(refusal([&] { bind_options_of(arguments); }), HasSubstr("--threads")) << text;
  }
  for (const char* text : {"", "float16", "Float32"}) {
    BindArguments arguments;
    arguments.precision = text;
    EXPECT_THAT(refusal([&] { bind_options_of(arguments); }),
                HasSubstr("expected float32 or bfloat16"))
        << text;
  }
  for (const char* text : {"", "slow", "Fast"}) {
    BindArguments arguments;
    arguments.nan = text;
    EXPECT_THAT(refusal([&] { bind_options_of(arguments); }), HasSubstr("expected exact or fast"))
        << text;
  }
  BindArguments arguments;
  arguments.backends = "";
  EXPECT_NE(refusal([&] { bind_options_of(arguments); }), "") << "given, but empty";
}

}  // namespace
}  // namespace tessera::cli
