#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Attributes to(int64_t type) { return attributes_of({{"to", type}}); }

constexpr int64_t kOnnxInt64 = 7;
constexpr int64_t kOnnxBool = 9;
constexpr int64_t kOnnxInt32 = 6;

TEST(Cast, TruncatesFloats) {
  const Tensor output = run_op("Cast", 13, to(kOnnxInt64), {floats({2}, {-1.7F, 2.9F})})[0];
  EXPECT_EQ(output.type(), DataType::Int64);
  EXPECT_THAT(integers(output), ElementsAre(-1, 2));
}

TEST(Cast, MoreThanOneBlock) {
  std::vector<int64_t> input;
  for (int64_t index = 0; index < 20000; ++index) input.push_back(index % 2);
  const Tensor output = run_op("Cast", 13, to(kOnnxBool), {ints({20000}, input)})[0];
  for (size_t index = 0; index < 20000; ++index) {
    ASSERT_EQ(output.as<uint8_t>()[index], index % 2);
  }
}

struct ErrorCase {
  int64_t to;
  const char* message;
};

const ErrorCase kErrorCases[] = {
    {0,
     "InvalidModel: node 'node' (Cast): attribute 'to': expected the number of an element type, "
     "found 0"},
    {99,
     "InvalidModel: node 'node' (Cast): attribute 'to': expected the number of an element type, "
     "found 99"},
    {14, "Unsupported: node 'node' (Cast): attribute 'to': elements of complex64 have no kernels"},
};

TEST(Cast, RefusesTypesByName) {
  for (const ErrorCase& test : kErrorCases) {
    EXPECT_EQ(error_of([&] { run_op("Cast", 13, to(test.to), {floats({1}, {1})}); }), test.message);
  }
}

TEST(Cast, CarriesElements) {
  const Dim n = Dim::symbol("N");
  const InferInput input = with_elements({2}, {n, 5});
  EXPECT_THAT(*infer_op("Cast", 13, to(kOnnxInt32), {input})[0].elements, ElementsAre(n, Dim(5)));
  const InferInput large = with_elements({1}, {int64_t{1} << 40});
  EXPECT_EQ(infer_op("Cast", 13, to(kOnnxInt32), {large})[0].elements, std::nullopt);
  EXPECT_THAT(*infer_op("Cast", 13, to(kOnnxBool), {large})[0].elements, ElementsAre(Dim(1)));
}

constexpr int64_t kOnnxFloat8 = 17;  // e4m3fn
constexpr int64_t kOnnxInt4 = 22;
constexpr int64_t kOnnxFloat4 = 23;
constexpr int64_t kOnnxPower = 24;

TEST(Cast, HasTheSmallTypesOfItsVersion) {
  for (const auto& [version, type] : {std::pair{13, kOnnxFloat8},
                                      {19, kOnnxInt4},
                                      {21, kOnnxFloat4},
                                      {23, kOnnxPower},
                                      {24, int64_t{26}}}) {
    EXPECT_THAT(error_of([&] { run_op("Cast", version, to(type), {floats({1}, {1})}); }),
                testing::HasSubstr("attribute 'to': expected bool, int8"));
    EXPECT_EQ(run_op("Cast", 25, to(type), {floats({1}, {1})})[0].elements(), 1);
  }
  const Tensor small = run_op("Cast", 25, to(kOnnxInt4), {floats({1}, {1})})[0];
  EXPECT_THAT(error_of([&] { run_op("Cast", 19, to(kOnnxInt32), {small}); }),
              testing::HasSubstr("float8e5m2fnuz, found int4"));
}

TEST(Cast, SaturatesSmallFloatsUnlessToldNot) {
  const Tensor input = floats({4}, {1000, -kInfinity, 1.0625F, -0.0F});
  EXPECT_THAT(bytes(run_op("Cast", 19, to(kOnnxFloat8), {input})[0]),
              ElementsAre(0x7e, 0xfe, 0x38, 0x80));
  Attributes strict = to(kOnnxFloat8);
  strict.set("saturate", int64_t{0});
  EXPECT_THAT(bytes(run_op("Cast", 19, strict, {input})[0]), ElementsAre(0x7f, 0xff, 0x38, 0x80));
}

TEST(Cast, RoundsPowersOfTwoAsAsked) {
  const Tensor input = floats({3}, {1.25F, 1.5F, 0});
  const auto rounded = [&](const char* mode) {
    Attributes attributes = to(kOnnxPower);
    if (*mode != '\0') attributes.set("round_mode", std::string(mode));
    return bytes(run_op("Cast", 24, attributes, {input})[0]);
  };
  EXPECT_THAT(rounded(""), ElementsAre(128, 128, 0));
  EXPECT_THAT(rounded("down"), ElementsAre(127, 127, 0));
  EXPECT_THAT(rounded("nearest"), ElementsAre(127, 128, 0));
  EXPECT_EQ(error_of([&] { rounded("even"); }),
            "InvalidModel: node 'node' (Cast): attribute 'round_mode': expected up, down or "
            "nearest, found 'even'");
}

TEST(Cast, SmallIntegersKeepTheLowestBits) {
  const Tensor input = ints({4}, {-9, 7, 8, 100});
  const Tensor small = run_op("Cast", 25, to(kOnnxInt4), {input})[0];
  EXPECT_THAT(small.as<int8_t>(), ElementsAre(7, 7, -8, 4));
  EXPECT_THAT(integers(run_op("Cast", 25, to(kOnnxInt64), {small})[0]), ElementsAre(7, 7, -8, 4));
  EXPECT_THAT(bytes(run_op("Cast", 25, to(25), {small})[0]), ElementsAre(3, 3, 0, 0));  // uint2
  EXPECT_THAT(bytes(run_op("Cast", 25, to(kOnnxBool), {small})[0]), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(bytes(run_op("Cast", 25, to(kOnnxFloat8), {small})[0]),
              ElementsAre(0x4e, 0x4e, 0xd0, 0x48));
}

TEST(Cast, PowersOfTwoHaveMoreDigitsThanDoubles) {
  const int64_t power = int64_t{1} << 62;
  const Tensor input = ints({3}, {power, power + 1, power + power / 2 - 1});
  Attributes nearest = to(kOnnxPower);
  nearest.set("round_mode", std::string("nearest"));
  EXPECT_THAT(bytes(run_op("Cast", 24, to(kOnnxPower), {input})[0]), ElementsAre(189, 190, 190));
  EXPECT_THAT(bytes(run_op("Cast", 24, nearest, {input})[0]), ElementsAre(189, 189, 189));
}

TEST(CastLike, TakesTheTypeOfTheOther) {
  const Tensor output = run_op("CastLike", 15, {}, {floats({1}, {3.5F}), ints({0}, {})})[0];
  EXPECT_THAT(integers(output), ElementsAre(3));
}

}  // namespace
}  // namespace tessera::ops
