#include <random>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(MatMul, EqualsTheDefinitionAcrossBlocks) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const int64_t rows : {1, 2, 3, 70}) {
    for (const int64_t columns : {1, 5, 200}) {
      for (const int64_t depth : {0, 1, 7, 300}) {
        std::vector<float> left(static_cast<size_t>(rows * depth));
        std::vector<float> right(static_cast<size_t>(depth * columns));
        for (float& value : left) value = normal(random);
        for (float& value : right) value = normal(random);
        const Tensor output = run_op(
            "MatMul", 13, {}, {floats({rows, depth}, left), floats({depth, columns}, right)})[0];
        for (int64_t at = 0; at < rows * columns; ++at) {
          double sum = 0;
          for (int64_t step = 0; step < depth; ++step) {
            sum += static_cast<double>(left[static_cast<size_t>(at / columns * depth + step)]) *
                   static_cast<double>(right[static_cast<size_t>(step * columns + at % columns)]);
          }
          ASSERT_NEAR(output.as<float>()[static_cast<size_t>(at)], sum, 1e-5)
              << rows << " " << columns << " " << depth;
        }
      }
    }
  }
}

// Each row: the shapes of two operands, and the shape of numpy.matmul's result.
struct MatMulCase {
  std::vector<int64_t> left, right, output;
};

TEST(MatMul, ShapesFollowNumpy) {
  const MatMulCase cases[] = {{{3}, {3}, {}},
                              {{2, 3}, {3}, {2}},
                              {{3}, {3, 4}, {4}},
                              {{5, 2, 3}, {3, 4}, {5, 2, 4}},
                              {{2, 3}, {5, 3, 4}, {5, 2, 4}},
                              {{6, 1, 2, 3}, {5, 3, 4}, {6, 5, 2, 4}},
                              {{3}, {5, 3, 4}, {5, 4}},
                              {{5, 2, 3}, {3}, {5, 2}},
                              {{5, 2, 3}, {1, 1, 3, 4}, {1, 5, 2, 4}}};
  for (const MatMulCase& test : cases) {
    std::vector<float> left(static_cast<size_t>(element_count(test.left)));
    std::vector<float> right(static_cast<size_t>(element_count(test.right)), 1.0F);
    for (size_t index = 0; index < left.size(); ++index) left[index] = static_cast<float>(index);
    const Tensor output =
        run_op("MatMul", 13, {}, {floats(test.left, left), floats(test.right, right)})[0];
    EXPECT_EQ(output.dims(), test.output);
    // The right side is all ones: the first result is the sum of the first row on the left.
    EXPECT_EQ(output.as<float>()[0], 3.0F);
    EXPECT_EQ(output.as<float>().back(), left[left.size() - 1] * 3 - 3);
  }
}

TEST(MatMul, IntegersWrapAndStayExact) {
  const Tensor left = ints({1, 2}, {int64_t{1} << 62, 9007199254740993});
  const Tensor right = ints({2, 1}, {4, 1});
  const Tensor output = run_op("MatMul", 13, {}, {left, right})[0];
  EXPECT_EQ(output.as<int64_t>()[0], 9007199254740993);
}

TEST(MatMul, SymbolsBroadcast) {
  const Dim batch = Dim::symbol("batch");
  const auto shape_of = [](Shape left, Shape right) {
    return *infer_op("MatMul", 13, {},
                     {typed(DataType::Float32, std::move(left)),
                      typed(DataType::Float32, std::move(right))})[0]
                .type.shape;
  };
  EXPECT_EQ(shape_of({batch, 2, 3}, {batch, 3, 4}), (Shape{batch, 2, 4}));
  EXPECT_EQ(shape_of({batch, 2, 3}, {1, 3, 4}), (Shape{batch, 2, 4}));
  EXPECT_EQ(shape_of({batch, 2, 3}, {7, 3, 4}), (Shape{7, 2, 4}));
  const Dim other = Dim::symbol("other");
  EXPECT_EQ(shape_of({batch, 2, 3}, {other, 3, 4}),
            (Shape{expression("broadcast", {batch, other}), 2, 4}));
}

TEST(MatMul, ShapesThatDoNotFitAreBothNamed) {
  const auto message_of = [](Shape left, Shape right) -> std::string {
    return error_of([&] {
      infer_op(
          "MatMul", 13, {},
          {typed(DataType::Float32, std::move(left)), typed(DataType::Float32, std::move(right))});
    });
  };
  EXPECT_EQ(message_of({2, 3}, {4, 5}),
            "InvalidModel: node 'node' (MatMul): expected as many columns on the left as rows on "
            "the right, found 2x3 and 4x5");
  EXPECT_THAT(message_of({2, 2, 3}, {3, 3, 5}), HasSubstr("found 2x2x3 and 3x3x5"));
  EXPECT_THAT(message_of({}, {3}), HasSubstr("found a scalar"));
}

}  // namespace
}  // namespace tessera::ops
