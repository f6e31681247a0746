#include "api/options/argument_text.h"

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera {
namespace {

// The message of the InvalidArgument that `call` throws; "" if it throws nothing.
template <class Call>
std::string refusal(const Call& call) {
  return error_of(ErrorKind::InvalidArgument, [&] { call(); });
}

TEST(ArgumentText, SplitsAtTheLastSign) {
  struct Case {
    const char* text;
    const char* name;
    const char* value;
  };
  const Case cases[] = {
      {"x=a.npy", "x", "a.npy"},
      {"a=b=c.npy", "a=b", "c.npy"},
      {"#0=/tmp/a.pb", "#0", "/tmp/a.pb"},
      {"scope/x:0=a", "scope/x:0", "a"},
  };
  for (const Case& row : cases) {
    const NamedArgument argument = split_named_argument("--input", row.text);
    EXPECT_EQ(argument.name, row.name);
    EXPECT_EQ(argument.value, row.value);
  }
  for (const char* text : {"", "x", "=", "=a", "x="}) {
    EXPECT_THAT(refusal([&] { split_named_argument("--input", text); }),
                HasSubstr("--input '" + std::string(text) + "': expected NAME=VALUE"));
  }
}

TEST(ArgumentText, ParsesDimensions) {
  EXPECT_THAT(parse_dims("--shape", "1x3x224x224"), ElementsAre(1, 3, 224, 224));
  EXPECT_THAT(parse_dims("--shape", "0"), ElementsAre(0));
  EXPECT_THAT(parse_dims("--shape", "scalar"), IsEmpty());
  for (const char* text :
       {"", "x", "1x", "x1", "1xx2", "-1", "+1", " 1", "1x2 ", "H", "1.5", "9223372036854775808"}) {
    EXPECT_THAT(refusal([&] { parse_dims("--shape", text); }), HasSubstr("1x3x224x224")) << text;
  }
}

TEST(ArgumentText, ParsesByteCounts) {
  struct Case {
    const char* text;
    int64_t bytes;
  };
  const Case cases[] = {
      {"0", 0},
      {"1048576", 1048576},
      {"9223372036854775807", INT64_MAX},
      {"1K", 1024},
      {"1k", 1024},
      {"512M", int64_t{512} << 20},
      {"1.5G", int64_t{1536} << 20},
      {"2T", int64_t{2} << 40},
      {"1KiB", 1024},
      {"0.25MiB", 262144},
      {"0.3K", 307},  // fractions of a byte are dropped
      {"0.99999999999999999999K", 1023},
  };
  for (const Case& row : cases) {
    EXPECT_EQ(parse_byte_count("--limit", row.text, 0), row.bytes) << row.text;
  }
  for (const char* text : {"",
                           "1X",
                           "M",
                           "-1",
                           "-1M",
                           "+1M",
                           "nan",
                           "inf",
                           "1e6",
                           "1MB",
                           "1B",
                           "1.5",
                           ".5M",
                           "1.M",
                           "1 M",
                           "1MM",
                           "1MiBs",
                           "0x1M",
                           "9223372036854775808",
                           "8388608T",
                           "99999999999999999999K"}) {
    EXPECT_THAT(refusal([&] { parse_byte_count("--limit", text, 0); }),
                HasSubstr("--limit '" + std::string(text) +
                          "': expected a size such as 512M or "
                          "1.5G, found '" +
                          text + "'"));
  }
  EXPECT_THAT(refusal([] { parse_byte_count("--limit", "0.5K", 513); }),
              HasSubstr("of at least 513 bytes, found '0.5K'"));
}

TEST(ArgumentText, ParsesTolerances) {
  EXPECT_EQ(parse_tolerance("--rtol", "0"), 0);
  EXPECT_EQ(parse_tolerance("--rtol", "1e-3"), 1e-3);
  for (const char* text : {"", "-1", "nan", "inf", "x", "1,5", "1e-3x"}) {
    EXPECT_THAT(refusal([&] { parse_tolerance("--rtol", text); }),
                HasSubstr("--rtol '" + std::string(text) + "': expected a finite number"));
  }
}

TEST(ArgumentText, ParsesChoices) {
  EXPECT_EQ(parse_choice("--swap", "on", {"off", "on"}), 1U);
  EXPECT_THAT(refusal([] { parse_choice("--order", "secnd", {"first", "second", "last"}); }),
              HasSubstr("--order 'secnd': expected first, second or last; did you mean 'second'?"));
  EXPECT_THAT(refusal([] { parse_choice("--swap", "maybe", {"off", "on"}); }),
              testing::EndsWith("expected off or on"));
}

TEST(ArgumentText, ParsesWholeNumbers) {
  EXPECT_EQ(parse_whole_number("--random", "0"), 0U);
  EXPECT_EQ(parse_whole_number("--random", "010"), 10U);
  EXPECT_EQ(parse_whole_number("--random", "18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", "0x1", "1.5", "1e3", "18446744073709551616"}) {
    EXPECT_THAT(refusal([&] { parse_whole_number("--random", text); }),
                HasSubstr("--random '" + std::string(text) + "': expected a whole number"));
  }
}

TEST(ArgumentText, FindsByNameThenByIndex) {
  std::vector<ValueDescription> values(3);
  values[0].name = "picture";
  values[1].name = "#0";
  values[2].name = "mask";
  const auto find = [&](const char* name) {
    return find_value_index("--input", "input", name, values);
  };
  EXPECT_EQ(find("mask"), 2U);
  EXPECT_EQ(find("#0"), 1U);
  EXPECT_EQ(find("#2"), 2U);
  for (const char* name : {"Mask", "#3", "#", "#-1", "#1x", "#99999999999999999999"}) {
    EXPECT_THAT(refusal([&] { find(name); }),
                HasSubstr("its inputs are #0 'picture', #1 '#0', #2 'mask'"))
        << name;
  }
  EXPECT_THAT(refusal([&] { find_value_index("--expect", "output", "y", {}); }),
              HasSubstr("--expect 'y': the model has no such output; it has no outputs"));
}

TEST(ArgumentText, NumbersKeepToTheirRange) {
  EXPECT_EQ(parse_whole_number("--runs", "7", 1, 7), 7U);
  for (const char* text : {"0", "8", "-1", "1.0", "", "x"}) {
    EXPECT_THROW(parse_whole_number("--runs", text, 1, 7), Error) << text;
  }
  EXPECT_EQ(parse_positive_number("--seconds", "0.5", 10), 0.5);
  EXPECT_EQ(parse_positive_number("--seconds", "10", 10), 10);
  for (const char* text : {"0", "-1", "10.1", "nan", "inf", "", "1s", "1e999"}) {
    EXPECT_THROW(parse_positive_number("--seconds", text, 10), Error) << text;
  }
}

struct PinCase {
  const char* text;
  const char* nodes;
  const char* backend;
  const char* algorithm;
};

const PinCase kPins[] = {
    {"conv1=fast", "conv1", "fast", ""},
    {"conv1=fast:wide", "conv1", "fast", "wide"},
    {"conv1=fast:wide:avx2", "conv1", "fast", "wide:avx2"},
    {"block/conv:0=fast", "block/conv:0", "fast", ""},
    {"a=b=fast:wide", "a=b", "fast", "wide"},
    {"block/*=fast", "block/*", "fast", ""},
    {"stage=head=fast", "stage=head", "fast", ""},
};

TEST(ArgumentText, TheLastSignEndsThePinnedNodes) {
  for (const PinCase& row : kPins) {
    const Pin pin = parse_pin("--pin", row.text);
    EXPECT_EQ(pin.nodes, row.nodes) << row.text;
    EXPECT_EQ(pin.backend, row.backend) << row.text;
    EXPECT_EQ(pin.algorithm, row.algorithm) << row.text;
  }
}

TEST(ArgumentText, PinsWithoutAPartAreRefused) {
  for (const char* text : {"", "conv1", "=fast", "conv1=", "conv1=:wide", "conv1=fast:", "="}) {
    EXPECT_THAT(refusal([&] { parse_pin("--pin", text); }),
                HasSubstr("--pin '" + std::string(text) + "': expected NODES=BACKEND"));
  }
}

TEST(ArgumentText, ExclusionsAreOfABackendOrAnOp) {
  EXPECT_EQ(parse_exclusion("--exclude", "fast").backend, "fast");
  EXPECT_EQ(parse_exclusion("--exclude", "fast").op, "");
  EXPECT_EQ(parse_exclusion("--exclude", "fast:Conv").backend, "fast");
  EXPECT_EQ(parse_exclusion("--exclude", "fast:Conv").op, "Conv");
  for (const char* text : {"", ":Conv", "fast:", ":"}) {
    EXPECT_THAT(refusal([&] { parse_exclusion("--exclude", text); }), HasSubstr("expected BACKEND"))
        << text;
  }
}

TEST(ArgumentText, BackendsAreNamesWithCommasBetween) {
  const auto parse_backend_list = [](const std::string& text) {
    return parse_name_list("--backends", text, "fast,slow");
  };
  EXPECT_THAT(parse_backend_list("fast"), ElementsAre("fast"));
  EXPECT_THAT(parse_backend_list("fast,slow"), ElementsAre("fast", "slow"));
  for (const char* text : {"", ",", "fast,", ",fast", "fast,,slow"}) {
    EXPECT_THAT(refusal([&] { parse_backend_list(text); }), HasSubstr("expected names")) << text;
  }
  EXPECT_THAT(refusal([&] { parse_backend_list("fast,slow,fast"); }), HasSubstr("'fast' twice"));
}

}  // namespace
}  // namespace tessera
