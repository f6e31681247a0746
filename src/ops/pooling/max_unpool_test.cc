#include "ops/float_types_test.h"

namespace tessera::ops {
namespace {

Attributes unpooling(std::vector<int64_t> kernel, std::vector<int64_t> strides) {
  return attributes_of({{"kernel_shape", std::move(kernel)}, {"strides", std::move(strides)}});
}

const Tensor kPooled = floats({1, 1, 2, 2}, {5, 6, 7, 8});

TEST(MaxUnpool, PutsElementsBackAmongZeros) {
  const auto outputs = run_op("MaxUnpool", 9, unpooling({2, 2}, {2, 2}),
                              {kPooled, ints({1, 1, 2, 2}, {0, 3, 12, 10})});
  EXPECT_EQ(outputs[0].dims(), (std::vector<int64_t>{1, 1, 4, 4}));
  EXPECT_THAT(values(outputs[0]), ElementsAre(5, 0, 0, 6, 0, 0, 0, 0, 0, 0, 8, 0, 7, 0, 0, 0));
}

// As in ONNX's example with output_shape.
TEST(MaxUnpool, IndicesBelongToTheTensorThatTheWindowImplies) {
  const auto outputs = run_op(
      "MaxUnpool", 11, unpooling({2, 2}, {2, 2}),
      {floats({1, 1, 2, 2}, {1, 2, 3, 4}), ints({1, 1, 2, 2}, {5, 7, 13, 15}), ints({1, 1, 5, 5})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(0, 0, 0, 0, 0,  //
                                              0, 1, 0, 2, 0,  //
                                              0, 0, 0, 0, 0,  //
                                              0, 3, 0, 4, 0,  //
                                              0, 0, 0, 0, 0));
}

TEST(MaxUnpool, CountsPaddingAndChannels) {
  Attributes attributes = unpooling({3}, {2});
  attributes.set("pads", list({1, 0}));
  // (2 - 1) * 2 + 3 - 1 elements of each of 2 channels; the last one of equal indices counts.
  const auto outputs = run_op("MaxUnpool", 22, attributes,
                              {floats({1, 2, 2}, {1, 2, 3, 4}), ints({1, 2, 2}, {7, 2, 4, 4})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(0, 0, 2, 0, 4, 0, 0, 1));
  // Strides are 1 by default.
  EXPECT_EQ(run_op("MaxUnpool", 9, attributes_of({{"kernel_shape", list({3})}}),
                   {floats({1, 1, 2}, {1, 2}), ints({1, 1, 2}, {0, 1})})[0]
                .elements(),
            4);
}

TEST(MaxUnpool, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    const auto outputs =
        run_op("MaxUnpool", 22, unpooling({2}, {2}),
               {cast_onnx(floats({1, 1, 2}, {5, 6}), type), ints({1, 1, 2}, {1, 2})});
    EXPECT_THAT(as_floats(outputs[0]), ElementsAre(0, 5, 6, 0));
  }
}

TEST(MaxUnpool, InfersSymbols) {
  const Dim height = Dim::symbol("h");
  const auto inferred = infer_op(
      "MaxUnpool", 11, unpooling({2, 2}, {2, 2}),
      {typed(DataType::Float32, Shape{1, 8, height, 3}), typed(DataType::Int64, std::nullopt)});
  EXPECT_EQ(shape_text(inferred), "float32 1x8x(h*2)x6");
  const auto given = infer_op("MaxUnpool", 11, unpooling({2, 2}, {2, 2}),
                              {typed(DataType::Float32, Shape{1, 8, height, 3}),
                               typed(DataType::Int64, std::nullopt), followed({1, 8, 9, 7})});
  EXPECT_EQ(shape_text(given), "float32 1x8x9x7");
}

TEST(MaxUnpool, RefusesWrongModels) {
  const auto refused = [](const Attributes& attributes, std::vector<Tensor> inputs) {
    return refusal("MaxUnpool", 11, attributes, std::move(inputs));
  };
  const Tensor indices = ints({1, 1, 2, 2}, {0, 1, 2, 3});
  const Attributes fine = unpooling({2, 2}, {2, 2});
  EXPECT_THAT(refused(fine, {kPooled, ints({1, 1, 2, 2}, {0, 1, 2, 16})}),
              HasSubstr("in [0, 16), found 16"));
  EXPECT_THAT(refused(fine, {kPooled, ints({1, 1, 2, 2}, {0, 1, 2, -1})}), HasSubstr("found -1"));
  EXPECT_THAT(refused(fine, {kPooled, ints({1, 1, 4}, {0, 1, 2, 3})}),
              HasSubstr("expected shape [1x1x2x2]"));
  EXPECT_THAT(refused(unpooling({2}, {2, 2}), {kPooled, indices}), HasSubstr("expected 2 numbers"));
  EXPECT_THAT(refused(fine, {kPooled, indices, ints({1, 1, 4, 3})}),
              HasSubstr("of 1x1x4x4 and at least its other sizes, found 1x1x4x3"));
  EXPECT_THAT(refused(fine, {kPooled, indices, ints({1, 2, 4, 4})}), HasSubstr("found 1x2x4x4"));
  EXPECT_THAT(refused(fine, {kPooled, indices, ints({4, 4})}), HasSubstr("expected 4 sizes"));
  Attributes padded = fine;
  padded.set("pads", list({3, 0, 3, 0}));
  EXPECT_THAT(refused(padded, {kPooled, indices}), HasSubstr("found a length of -2"));
}

}  // namespace
}  // namespace tessera::ops
