#include <limits>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

std::vector<Tensor> scalars(int64_t start, int64_t limit, int64_t delta) {
  return {ints({}, {start}), ints({}, {limit}), ints({}, {delta})};
}

struct RangeCase {
  int64_t start;
  int64_t limit;
  int64_t delta;
  std::vector<int64_t> expected;
};

const RangeCase kRangeCases[] = {
    {3, 9, 3, {3, 6}},
    {10, 4, -2, {10, 8, 6}},
    {0, 5, 2, {0, 2, 4}},
    {5, 5, 1, {}},
    {5, 0, 1, {}},
    {kSmallest, kLargest, kLargest, {kSmallest, -1, kLargest - 1}},
    {kLargest, kSmallest, kSmallest, {kLargest, -1}},
};

TEST(Range, Integers) {
  for (const RangeCase& test : kRangeCases) {
    EXPECT_EQ(integers(run_op("Range", 11, {}, scalars(test.start, test.limit, test.delta))[0]),
              test.expected);
  }
}

TEST(Range, Floats) {
  const Tensor output =
      run_op("Range", 11, {}, {floats({}, {1}), floats({}, {0}), floats({}, {-0.25F})})[0];
  EXPECT_THAT(values(output), ElementsAre(1, 0.75F, 0.5F, 0.25F));
}

TEST(Range, RefusesEndlessOnes) {
  EXPECT_THAT(error_of([] { run_op("Range", 11, {}, scalars(0, 1, 0)); }),
              HasSubstr("input 'delta': expected a step other than 0, found 0"));
  EXPECT_THAT(error_of([] { run_op("Range", 11, {}, scalars(kSmallest, kLargest, 1)); }),
              HasSubstr("within 64 bits"));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_of([&] {
                run_op("Range", 11, {}, {floats({}, {0}), floats({}, {infinity}), floats({}, {1})});
              }),
              HasSubstr("expected a finite number of elements"));
}

TEST(Range, CountsUpToASymbol) {
  const Dim n = Dim::symbol("N");
  const auto run = [&](Dim start, Dim limit, Dim delta) {
    return infer_op(
        "Range", 11, {},
        {with_elements({}, {start}), with_elements({}, {limit}), with_elements({}, {delta})})[0];
  };
  EXPECT_EQ(run(0, n, 1).type, Type::tensor(DataType::Int64, Shape{n}));
  EXPECT_EQ(run(1, n, 2).type, run(1, n, 2).type);
  EXPECT_FALSE(is_known(*run(1, n, 2).type.shape));
}

TEST(Range, CarriesElements) {
  const auto inputs = scalars(2, 8, 3);
  const auto outputs = infer_op(
      "Range", 11, {}, {infer_input(inputs[0]), infer_input(inputs[1]), infer_input(inputs[2])});
  EXPECT_THAT(*outputs[0].elements, ElementsAre(Dim(2), Dim(5)));
}

}  // namespace
}  // namespace tessera::ops
