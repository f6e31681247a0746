#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

std::vector<int64_t> centre_cropped(const Tensor& input, const std::vector<int64_t>& sizes,
                                    Attributes attributes = {}) {
  return integers(run_op("CenterCropPad", 18, std::move(attributes), {input, ints(sizes)})[0]);
}

TEST(CenterCropPad, RoundsTheStartDown) {
  const Tensor line = ints({1, 2, 3, 4, 5});
  EXPECT_THAT(centre_cropped(line, {3}), ElementsAre(2, 3, 4));
  EXPECT_THAT(centre_cropped(line, {2}), ElementsAre(2, 3));
  EXPECT_THAT(centre_cropped(line, {7}), ElementsAre(0, 1, 2, 3, 4, 5, 0));
  EXPECT_THAT(centre_cropped(line, {8}), ElementsAre(0, 1, 2, 3, 4, 5, 0, 0));
  EXPECT_THAT(centre_cropped(line, {5}), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(centre_cropped(line, {0}), IsEmpty());
}

TEST(CenterCropPad, CropsSomeAxesAndPadsOthers) {
  const Tensor plane = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(centre_cropped(plane, {4, 1}), ElementsAre(0, 2, 5, 0));
  const Attributes last = attributes_of({{"axes", list({-1})}});
  EXPECT_THAT(centre_cropped(plane, {1}, last), ElementsAre(2, 5));
  const Attributes turned = attributes_of({{"axes", list({1, 0})}});
  EXPECT_THAT(centre_cropped(plane, {1, 4}, turned), ElementsAre(0, 2, 5, 0));
}

TEST(CenterCropPad, MovesAllTypes) {
  const Tensor flags = bools({2}, {1, 1});
  EXPECT_THAT(bytes(run_op("CenterCropPad", 18, {}, {flags, ints({3})})[0]), ElementsAre(1, 1, 0));
  const Tensor sizes = Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{1});
  EXPECT_THAT(values(run_op("CenterCropPad", 18, {}, {floats({kNan, 2, 3}), sizes})[0]),
              ElementsAre(2));
  EXPECT_THAT(centre_cropped(ints({0}, {}), {2}), ElementsAre(0, 0));
}

TEST(CenterCropPad, InfersSymbols) {
  const auto inferred = infer_op(
      "CenterCropPad", 18, attributes_of({{"axes", list({2})}}),
      {typed(DataType::Float32, Shape{Dim::symbol("n"), 3, 9}), followed({Dim::symbol("w")})});
  EXPECT_EQ(shape_text(inferred), "float32 nx3xw");
}

TEST(CenterCropPad, RefusesWrongModels) {
  const Tensor plane = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto refused = [&](const std::vector<int64_t>& sizes, Attributes attributes) {
    return refusal("CenterCropPad", 18, std::move(attributes), {plane, ints(sizes)});
  };
  EXPECT_THAT(refused({1}, {}), HasSubstr("each of 2 axes, found 1"));
  EXPECT_THAT(refused({1, -1}, {}), HasSubstr("at least 0, found 1x-1"));
  EXPECT_THAT(refused({1}, attributes_of({{"axes", list({2})}})), HasSubstr("[-2, 2)"));
  EXPECT_THAT(refused({1, 1}, attributes_of({{"axes", list({1, -1})}})), HasSubstr("twice"));
}

}  // namespace
}  // namespace tessera::ops
