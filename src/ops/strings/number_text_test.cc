#include "ops/strings/number_text.h"

#include <array>

#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Numbers of TensorProto.DataType.
constexpr int kFloat = 1;
constexpr int kUInt8 = 2;
constexpr int kInt64 = 7;
constexpr int kString = 8;
constexpr int kBool = 9;
constexpr int kDouble = 11;
constexpr int kInt4 = 22;
constexpr int kFloat4 = 23;  // e2m1

Tensor cast(const Tensor& input, int to) {
  return run_text({"Cast"}, attributes_of({{"to", to}}), {input})[0];
}

std::string cast_error(const std::string& text, int to) {
  return error_of(ErrorKind::InvalidArgument, [&] { cast(words({"1", text}), to); });
}

TEST(NumberText, WritesPlainText) {
  EXPECT_THAT(texts(cast(floats({0.1F, 1, -0.0F, 1e20F, 1.5e-7F, 16777216}), kString)),
              ElementsAre("0.1", "1", "-0", "100000002004087734272", "0.00000015", "16777216"));
  EXPECT_THAT(texts(cast(floats({kNan, kInfinity, -kInfinity}), kString)),
              ElementsAre("NaN", "INF", "-INF"));
  const auto pi = Tensor::from<double>(DataType::Float64, {1}, std::array{3.141592653589793});
  EXPECT_THAT(texts(cast(pi, kString)), ElementsAre("3.141592653589793"));
  EXPECT_THAT(texts(cast(ints({2}, {kSmallest, 65}), kString)),
              ElementsAre("-9223372036854775808", "65"));
  const auto small = Tensor::from<int8_t>(DataType::Int8, {1}, std::array{int8_t{-5}});
  EXPECT_THAT(texts(cast(small, kString)), ElementsAre("-5"));
  const auto bools = Tensor::from<bool>(DataType::Bool, {2}, std::array{true, false});
  EXPECT_THAT(texts(cast(bools, kString)), ElementsAre("1", "0"));
}

TEST(NumberText, OfSmallTypes) {
  const Tensor small = cast(words({"-1.5", "1e9", "0.3"}), kFloat4);
  EXPECT_THAT(bytes(small), ElementsAre(0xb, 7, 1));
  EXPECT_THAT(texts(cast(small, kString)), ElementsAre("-1.5", "6", "0.5"));
  EXPECT_THAT(texts(cast(cast(words({"-8", "7"}), kInt4), kString)), ElementsAre("-8", "7"));
  EXPECT_THAT(cast_error("8", kInt4), HasSubstr("a number of int4, found '8' as element 1"));
}

TEST(NumberText, ReadsWhatTheStandardNames) {
  EXPECT_THAT(values(cast(words({"3.14", "1000", "1e-5", "1E8", " 2 ", "+7"}), kFloat)),
              ElementsAre(3.14F, 1000.0F, 1e-5F, 1e8F, 2.0F, 7.0F));
  EXPECT_THAT(values(cast(words({"+INF", "inf", "-Inf"}), kFloat)),
              ElementsAre(kInfinity, kInfinity, -kInfinity));
  EXPECT_TRUE(std::isnan(values(cast(words({"NaN"}), kFloat))[0]));
  EXPECT_EQ(cast(words({"0.1"}), kDouble).as<double>()[0], 0.1);
  EXPECT_EQ(values(cast(words({"1e400", "-1e-400"}), kFloat))[0], kInfinity);
}

TEST(NumberText, ReadsIntegersExactly) {
  const Tensor numbers = cast(words({"9223372036854775807", "100.5", "-2.9", "1e3"}), kInt64);
  EXPECT_THAT(numbers.as<int64_t>(), ElementsAre(kLargest, 100, -2, 1000));
  EXPECT_THAT(bytes(cast(words({"255", "0"}), kUInt8)), ElementsAre(255, 0));
  EXPECT_THAT(bytes(cast(words({"0", "2", "0.0", "NaN"}), kBool)), ElementsAre(0, 1, 0, 1));
}

TEST(NumberText, RefusesWhatIsNoNumber) {
  EXPECT_THAT(cast_error("abc", kFloat),
              AllOf(HasSubstr("expected a number of float32, found 'abc' as element 1"),
                    HasSubstr("node 'node' (Cast)")));
  for (const char* text : {"", " ", "+", "+-1", "7 8", "1_000", "0x10", "1e", "--1"}) {
    EXPECT_THAT(cast_error(text, kFloat), HasSubstr("as element 1")) << text;
    EXPECT_THAT(cast_error(text, kInt64), HasSubstr("as element 1")) << text;
  }
}

TEST(NumberText, RefusesNumbersThatDoNotFit) {
  EXPECT_THAT(cast_error("256", kUInt8), HasSubstr("a number of uint8"));
  EXPECT_THAT(cast_error("-1", kUInt8), HasSubstr("a number of uint8"));
  EXPECT_THAT(cast_error("9223372036854775808", kInt64), HasSubstr("a number of int64"));
  EXPECT_THAT(cast_error("NaN", kInt64), HasSubstr("a number of int64"));
  EXPECT_THAT(cast_error("inf", kInt64), HasSubstr("a number of int64"));
}

TEST(NumberText, KeepsStrings) {
  EXPECT_THAT(texts(cast(words({"a", ""}), kString)), ElementsAre("a", ""));
  EXPECT_THAT(texts(run_text({"CastLike"}, {}, {ints({1}, {3}), words({})})[0]), ElementsAre("3"));
}

}  // namespace
}  // namespace tessera::ops
