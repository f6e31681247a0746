#include "cli/output/json_output.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace tessera::cli {
namespace {

TEST(JsonOutput, IsValidWhateverTheNamesHold) {
  const std::string name("a/b\"\n\xff\x00z", 8);
  const Json parsed = Json::parse(json_text({{"name", name}}));
  EXPECT_EQ(parsed["name"], std::string("a/b\"\n\xef\xbf\xbd\0z", 10));
}

TEST(JsonOutput, ShapesKeepTheirSymbols) {
  ValueDescription value;
  value.name = "x";
  value.type = DataType::Float32;
  EXPECT_EQ(fields_json(value).dump(), R"({"value":"x","type":"float32","shape":null})");
  value.shape = {
      {Dimension{.value = std::nullopt, .symbol = "batch"}, Dimension{.value = 3, .symbol = ""}}};
  EXPECT_EQ(fields_json(value)["shape"].dump(), R"(["batch",3])");
  value.shape.emplace();
  EXPECT_EQ(fields_json(value)["shape"].dump(), "[]");
}

TEST(JsonOutput, NumbersKeepTheirValue) {
  struct Case {
    WideNumber number;
    const char* text;
  };
  const Case cases[] = {
      {0.25, "0.25"},
      {-3, "-3"},
      {std::numeric_limits<int64_t>::min(), "-9223372036854775808"},
      {static_cast<WideNumber>(std::numeric_limits<uint64_t>::max()), "18446744073709551615"},
      {1e300, "1e+300"},
      {std::numeric_limits<WideNumber>::infinity(), "null"},
      {-std::numeric_limits<WideNumber>::infinity(), "null"},
      {std::nan(""), "null"},
  };
  for (const Case& row : cases) EXPECT_EQ(number_json(row.number).dump(), row.text);
}

TEST(JsonOutput, TheFormatComesFirstAndOneNewlineLast) {
  const std::string text = json_text({{"a", 1}});
  EXPECT_EQ(text, "{\n  \"format\": 1,\n  \"a\": 1\n}\n");
  EXPECT_EQ(json_file_text(Json::array()), "[]\n");
}

TEST(JsonOutput, TimesAreMicroseconds) {
  EXPECT_EQ(microseconds_json(0.25), 250000.0);
  EXPECT_EQ(microseconds_json(std::nullopt), nullptr);
  EXPECT_EQ(microseconds_json(std::numeric_limits<double>::infinity()), nullptr);
}

TEST(JsonOutput, ErrorsHaveAKindInSnakeCase) {
  EXPECT_EQ(error_json(ErrorKind::OutOfMemory, "here", "why").dump(),
            R"({"error":{"kind":"out_of_memory","where":"here","message":"why"}})");
}

}  // namespace
}  // namespace tessera::cli
