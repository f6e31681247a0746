#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Attributes equation(const std::string& text) { return attributes_of({{"equation", text}}); }

const Tensor kMatrix = floats({2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor kSquare = floats({2, 2}, {1, 2, 3, 4});
const Tensor kVector = floats({3}, {1, 10, 100});

TEST(Einsum, SumsProducts) {
  const struct {
    std::string equation;
    std::vector<Tensor> inputs;
    std::vector<int64_t> shape;
    std::vector<float> expected;
  } cases[] = {
      {"ij->ji", {kMatrix}, {3, 2}, {1, 4, 2, 5, 3, 6}},
      {"ij->", {kMatrix}, {}, {21}},
      {"ij->j", {kMatrix}, {3}, {5, 7, 9}},
      {"ii->i", {kSquare}, {2}, {1, 4}},
      {"ii", {kSquare}, {}, {5}},
      {"ij,j->i", {kMatrix, kVector}, {2}, {321, 654}},
      {"ij,ij->ij", {kMatrix, kMatrix}, {2, 3}, {1, 4, 9, 16, 25, 36}},
      {"ij,jk", {kSquare, kMatrix}, {2, 3}, {9, 12, 15, 19, 26, 33}},
      {"i,j->ji", {floats({2}, {1, 2}), kVector}, {3, 2}, {1, 2, 10, 20, 100, 200}},
      {"ij,j,i->j", {kMatrix, kVector, floats({2}, {1, -1})}, {3}, {-3, -30, -300}},
      {"...j,j->...", {kMatrix, kVector}, {2}, {321, 654}},
      {"...,...", {kMatrix, kVector}, {2, 3}, {1, 20, 300, 4, 50, 600}},
      // An axis of length 1 is repeated.
      {"ij,ij->ij", {kMatrix, floats({2, 1}, {1, -1})}, {2, 3}, {1, 2, 3, -4, -5, -6}},
      {"ij,jk->ik", {kMatrix, floats({1, 1}, {2})}, {2, 1}, {12, 30}},
      // A sum of nothing.
      {"ij->i", {floats({2, 0}, {})}, {2}, {0, 0}},
      {"ij->j", {floats({2, 0}, {})}, {0}, {}},
  };
  for (const auto& [text, inputs, shape, expected] : cases) {
    const Tensor found = run_op("Einsum", 12, equation(text), inputs)[0];
    EXPECT_EQ(found.dims(), shape) << text;
    EXPECT_EQ(values(found), expected) << text;
  }
}

TEST(Einsum, IntegersWrapAround) {
  const Tensor large = Tensor::from<int8_t>(DataType::Int8, {2}, std::vector<int8_t>{100, 100});
  const Tensor found = run_op("Einsum", 12, equation("i,i->"), {large, large})[0];
  EXPECT_EQ(found.as<int8_t>()[0], static_cast<int8_t>(20000));
}

TEST(Einsum, SymbolsReachTheResult) {
  const InferInput left = typed(DataType::Float32, Shape{Dim::symbol("batch"), 8, 16});
  const InferInput right = typed(DataType::Float32, Shape{1, 16, 4});
  const InferOutput found = infer_op("Einsum", 12, equation("bij,bjk->bki"), {left, right})[0];
  EXPECT_EQ(*found.type.shape, (Shape{Dim::symbol("batch"), 4, 8}));
  const InferOutput unknown = infer_op("Einsum", 12, equation("bij,bjk->bki"),
                                       {left, typed(DataType::Float32, std::nullopt)})[0];
  EXPECT_FALSE(unknown.type.shape.has_value());
}

TEST(Einsum, RefusesWhatDoesNotFit) {
  EXPECT_THAT(error_of([] { run_op("Einsum", 12, equation("ij,jk->ik"), {kMatrix, kMatrix}); }),
              HasSubstr("equation 'ij,jk->ik': expected length 3 or 1 of axis 0, like its index "
                        "elsewhere, found 2"));
  EXPECT_THAT(error_of([] { run_op("Einsum", 12, equation("ijk->i"), {kMatrix}); }),
              HasSubstr("expected a letter for each of the 2 axes of input 0, found 'ijk'"));
}

}  // namespace
}  // namespace tessera::ops
