#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

std::vector<float> padded(const char* mode, const std::vector<int64_t>& pads) {
  const auto outputs = run_op("Pad", 19, attributes_of({{"mode", std::string(mode)}}),
                              {floats({3}, {1, 2, 3}), ints(pads), floats({}, {9})});
  return values(outputs[0]);
}

TEST(Pad, EveryMode) {
  struct Case {
    const char* mode;
    std::vector<int64_t> pads;
    std::vector<float> expected;
  };
  const Case cases[] = {{"constant", {1, 2}, {9, 1, 2, 3, 9, 9}},
                        {"constant", {-1, 1}, {2, 3, 9}},
                        {"constant", {-5, 4}, {9, 9}},
                        {"edge", {2, 1}, {1, 1, 1, 2, 3, 3}},
                        {"edge", {-1, 1}, {2, 3, 3}},
                        {"reflect", {2, 2}, {3, 2, 1, 2, 3, 2, 1}},
                        {"reflect", {5, 0}, {2, 1, 2, 3, 2, 1, 2, 3}},
                        {"wrap", {2, 4}, {2, 3, 1, 2, 3, 1, 2, 3, 1}},
                        {"wrap", {-1, 2}, {2, 3, 2, 3}}};
  for (const Case& item : cases) {
    EXPECT_EQ(padded(item.mode, item.pads), item.expected) << item.mode;
  }
}

TEST(Pad, PadsSomeAxesOnly) {
  const auto outputs =
      run_op("Pad", 18, {}, {floats({1, 2}, {1, 2}), ints({1, 0}), Tensor(), ints({-1})});
  EXPECT_THAT(outputs[0].dims(), ElementsAre(1, 3));
  EXPECT_THAT(values(outputs[0]), ElementsAre(0, 1, 2));
}

TEST(Pad, TakesAttributesBeforeVersion11) {
  const auto given = attributes_of({{"pads", {0, 1}}, {"value", 2.5F}});
  EXPECT_THAT(values(run_op("Pad", 10, given, {floats({1}, {1})})[0]), ElementsAre(1, 2.5F));
}

TEST(Pad, TakesFractionsOnlyBeforeVersion11) {
  const auto given = attributes_of({{"pads", {0, 1}}});
  EXPECT_THAT(refusal("Pad", 10, given, {ints({1})}), HasSubstr("found int64"));
  EXPECT_EQ(run_op("Pad", 11, {}, {ints({1}), ints({0, 1})})[0].elements(), 2);
}

TEST(Pad, LeavesAScalarAsItIs) {
  const Tensor none(DataType::Int64, {0});
  EXPECT_THAT(values(run_op("Pad", 18, {}, {floats({}, {7}), none})[0]), ElementsAre(7));
}

TEST(Pad, RefusesBadPads) {
  const int64_t largest = std::numeric_limits<int64_t>::max();
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  const Tensor input = floats({3}, {1, 2, 3});
  const auto message = [&](const std::vector<int64_t>& pads, const char* mode = "constant") {
    return refusal("Pad", 18, attributes_of({{"mode", std::string(mode)}}), {input, ints(pads)});
  };
  EXPECT_THAT(message({largest, 1}), HasSubstr("fits 64 bits"));
  EXPECT_THAT(message({largest, 0}), HasSubstr("fits 64 bits"));
  EXPECT_THAT(message({smallest, 0}), HasSubstr("fits 64 bits"));
  EXPECT_THAT(message({smallest, largest}), HasSubstr("fits 64 bits"));
  EXPECT_THAT(message({-2, -2}), HasSubstr("at least 0, found 3"));
  EXPECT_THAT(message({1}), HasSubstr("expected 2 pads for 1 axes, found 1"));
  EXPECT_THAT(message({-3, 1}, "edge"), HasSubstr("elements to repeat"));
  EXPECT_THAT(message({1, 1}, "wrap"), HasSubstr("found 'wrap'"));
}

TEST(Pad, AddsToSymbols) {
  const Dim n = Dim::symbol("n");
  const auto outputs =
      infer_op("Pad", 13, {}, {typed(DataType::Float32, Shape{n}), followed({1, 2})});
  EXPECT_EQ(*outputs[0].type.shape, Shape{add(n, 3)});
}

}  // namespace
}  // namespace tessera::ops
