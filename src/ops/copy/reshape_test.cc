#include "ops/movement_test.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

std::vector<int64_t> reshaped(const std::vector<int64_t>& dims, const std::vector<int64_t>& wanted,
                              int64_t allowzero = 0) {
  const Tensor input(DataType::Float32, dims);
  return run_op("Reshape", 14, attributes_of({{"allowzero", allowzero}}), {input, ints(wanted)})[0]
      .dims();
}

TEST(Reshape, CopiesZerosAndSolvesMinusOne) {
  EXPECT_THAT(reshaped({2, 3, 4}, {0, -1}), ElementsAre(2, 12));
  EXPECT_THAT(reshaped({2, 3, 4}, {4, 0, -1}), ElementsAre(4, 3, 2));
  EXPECT_THAT(reshaped({1}, {}), ElementsAre());
  EXPECT_THAT(reshaped({0, 4}, {-1, 2}), ElementsAre(0, 2));
  EXPECT_THAT(reshaped({0, 4}, {2, 0}, 1), ElementsAre(2, 0));
}

TEST(Reshape, SolvesMinusOneBesideZerosAsIfTheyWereOnes) {
  for (const int64_t allowzero : {0, 1}) {
    EXPECT_THAT(reshaped({0, 4, 32}, {0, 4, -1, 8}, allowzero), ElementsAre(0, 4, 4, 8));
    EXPECT_THAT(reshaped({0, 3}, {0, -1}, allowzero), ElementsAre(0, 3));
    EXPECT_THAT(reshaped({0}, {0, -1}, allowzero), ElementsAre(0, 1));
    EXPECT_THAT(reshaped({0, 3}, {2, -1}, allowzero), ElementsAre(2, 0));
  }
  EXPECT_THAT(reshaped({4, 0, 8}, {0, -1}, 0), ElementsAre(4, 0));
  EXPECT_THAT(reshaped({4, 0, 8}, {0, -1}, 1), ElementsAre(0, 32));
}

TEST(Reshape, RefusesWhatHasAnotherNumberOfElements) {
  struct Case {
    std::vector<int64_t> dims;
    std::vector<int64_t> wanted;
    int64_t allowzero;
    const char* expected;
  };
  const Case cases[] = {
      {{6}, {4}, 0, "as many elements as 6, found 4"},
      {{6}, {4, -1}, 0, "evenly"},
      {{6}, {-1, -1}, 0, "at most one dimension of -1"},
      {{6}, {-2}, 0, "at least -1, found -2"},
      {{6}, {kSmallest}, 0, "at least -1"},
      {{6}, {6, 0}, 0, "expected dimension 1 of the input"},
      {{2, 3}, {0, -1}, 1, "as many elements as 2x3, found 0 beside -1"},
      {{0, 6}, {0, 4, -1}, 1, "evenly"},
      {{6}, {kLargest, kLargest}, 0, "exceeds 64 bits"},
  };
  for (const Case& item : cases) {
    EXPECT_THAT(refusal("Reshape", 14, attributes_of({{"allowzero", item.allowzero}}),
                        {Tensor(DataType::Float32, item.dims), ints(item.wanted)}),
                HasSubstr(item.expected));
  }
  EXPECT_THAT(refusal("Reshape", 13, {}, {floats({1}, {1}), ints({1, 1}, {1})}),
              HasSubstr("expected a list"));
  EXPECT_THAT(refusal("Reshape", 13, {}, {floats({1}, {1}), ints(std::vector<int64_t>(2000, 1))}),
              HasSubstr("at most 1024 dimensions"));
}

Shape symbolic(const Shape& input, const std::vector<Dim>& wanted) {
  return *infer_op("Reshape", 13, {}, {typed(DataType::Float32, input), followed(wanted)})[0]
              .type.shape;
}

TEST(Reshape, CancelsSymbols) {
  const Dim n = Dim::symbol("n");
  const Dim m = Dim::symbol("m");
  EXPECT_EQ(symbolic({n, 3, 4}, {n, -1}), (Shape{n, 12}));
  EXPECT_EQ(symbolic({n, 3, 4}, {0, -1}), (Shape{n, 12}));
  EXPECT_EQ(symbolic({n, m, 4}, {-1, 2}), (Shape{product({m, n, 2}), 2}));
  EXPECT_EQ(symbolic({n, m}, {-1}), symbolic({m, n}, {-1}));
  // Symbols are not divided one by one, but equal inputs must give equal results.
  EXPECT_EQ(symbolic({n, 3}, {m, -1}), symbolic({n, 3}, {m, -1}));
  EXPECT_FALSE(is_known(symbolic({n, 3}, {2, -1})));
}

TEST(Reshape, UnknownShapesLeaveTheRank) {
  const auto outputs =
      infer_op("Reshape", 13, {}, {typed(DataType::Float32, std::nullopt), followed({0, -1, 5})});
  EXPECT_EQ(shape_text(outputs), "float32 ?node.0.0x?node.0.1x5");
  const auto ranked =
      infer_op("Reshape", 13, {}, {typed(DataType::Float32, Shape{6}), unknown_list(2)});
  EXPECT_EQ(shape_text(ranked), "float32 ?node.0.0x?node.0.1");
  // An implausible declared length must not be allocated.
  const auto absurd =
      infer_op("Reshape", 13, {}, {typed(DataType::Float32, Shape{6}), unknown_list(kLargest)});
  EXPECT_EQ(shape_text(absurd), "float32 ?");
}

TEST(Reshape, FollowsElements) {
  const auto outputs =
      infer_op("Reshape", 13, {}, {followed({Dim::symbol("n"), 2}), followed({1, 2})});
  EXPECT_EQ(*outputs[0].elements, (std::vector<Dim>{Dim::symbol("n"), 2}));
}

}  // namespace
}  // namespace tessera::ops
