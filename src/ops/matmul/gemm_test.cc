#include <random>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(Gemm, EqualsTheDefinition) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const int64_t rows : {1, 3, 66}) {
    for (int flags = 0; flags < 4; ++flags) {
      const int64_t columns = 197, depth = 261;
      const bool is_left_turned = (flags & 1) != 0, is_right_turned = (flags & 2) != 0;
      std::vector<float> a(static_cast<size_t>(rows * depth)),
          b(static_cast<size_t>(columns * depth));
      std::vector<float> c(static_cast<size_t>(columns));
      for (auto* values : {&a, &b, &c}) {
        for (float& value : *values) value = normal(random);
      }
      const Attributes attributes = attributes_of({{"transA", is_left_turned},
                                                   {"transB", is_right_turned},
                                                   {"alpha", 0.5F},
                                                   {"beta", 2.0F}});
      const auto dims = [](bool is_turned, int64_t first, int64_t second) {
        return is_turned ? std::vector<int64_t>{second, first}
                         : std::vector<int64_t>{first, second};
      };
      const Tensor output =
          run_op("Gemm", 13, attributes,
                 {floats(dims(is_left_turned, rows, depth), a),
                  floats(dims(is_right_turned, depth, columns), b), floats({columns}, c)})[0];
      for (int64_t at = 0; at < rows * columns; ++at) {
        const int64_t row = at / columns, column = at % columns;
        double sum = 0;
        for (int64_t step = 0; step < depth; ++step) {
          const int64_t left = is_left_turned ? step * rows + row : row * depth + step;
          const int64_t right = is_right_turned ? column * depth + step : step * columns + column;
          sum += static_cast<double>(a[static_cast<size_t>(left)]) *
                 static_cast<double>(b[static_cast<size_t>(right)]);
        }
        const double expected = sum / 2 + 2.0 * static_cast<double>(c[static_cast<size_t>(column)]);
        ASSERT_NEAR(output.as<float>()[static_cast<size_t>(at)], expected, 1e-4);
      }
    }
  }
}

TEST(Gemm, IntegersAreExact) {
  const Tensor left = ints({1, 1}, {9007199254740993});
  const Tensor output = run_op("Gemm", 11, {}, {left, ints({1, 1}, {1}), ints({}, {2})})[0];
  EXPECT_EQ(output.as<int64_t>()[0], 9007199254740995);
}

TEST(Gemm, BeforeVersion7CBroadcastsOnlyOnRequest) {
  const std::vector<InferInput> inputs = {typed(DataType::Float32, Shape{2, 3}),
                                          typed(DataType::Float32, Shape{3, 4}),
                                          typed(DataType::Float32, Shape{4})};
  EXPECT_THROW(infer_op("Gemm", 6, {}, inputs), Error);
  EXPECT_EQ(*infer_op("Gemm", 6, attributes_of({{"broadcast", 1}}), inputs)[0].type.shape,
            (Shape{2, 4}));
  EXPECT_EQ(*infer_op("Gemm", 7, {}, inputs)[0].type.shape, (Shape{2, 4}));
}

}  // namespace
}  // namespace tessera::ops
