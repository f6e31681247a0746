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
    {17,
     "Unsupported: node 'node' (Cast): attribute 'to': elements of float8e4m3fn have no "
     "kernels"},
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

TEST(CastLike, TakesTheTypeOfTheOther) {
  const Tensor output = run_op("CastLike", 15, {}, {floats({1}, {3.5F}), ints({0}, {})})[0];
  EXPECT_THAT(integers(output), ElementsAre(3));
}

}  // namespace
}  // namespace tessera::ops
