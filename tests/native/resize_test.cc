// Padding and resizing: tables of sources, in every layout.

#include <string>
#include <vector>

#include "any_tensor.h"
#include "base/tensor/tensors_test.h"
#include "each_target.h"

namespace tessera {
namespace {

RandomGraph pad(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, dice.one_in(3) ? 13 : 21);
  std::vector<int64_t> dims = any_dims(dice, dice.whole(1, 5), 12);
  const DataType type = dice.one_in(2) ? DataType::Float32 : any_type(dice);
  const std::string mode = dice.pick<std::string>({"constant", "constant", "reflect", "edge"});
  if (mode != "constant") {
    for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  }
  std::vector<int64_t> begins;
  std::vector<int64_t> ends;
  for (const int64_t dim : dims) {
    const bool is_left = dice.one_in(3);
    begins.push_back(is_left ? 0 : dice.whole(-std::min<int64_t>(dim / 3, 2), 5));
    ends.push_back(is_left ? 0 : dice.whole(-std::min<int64_t>(dim / 3, 2), 5));
  }
  std::vector<int64_t> pads = begins;
  pads.insert(pads.end(), ends.begin(), ends.end());
  made.input("x", any_elements(dice, type, dims));
  made.constant("pads", integer_list(pads));
  std::vector<std::string> inputs = {"x", "pads"};
  if (dice.one_in(2)) {
    made.operand(dice, "value", any_elements(dice, type, {}));
    inputs.emplace_back("value");
  }
  made.node("y", "Pad", inputs, attributes_of({{"mode", mode}}));
  return made.ending_in("y");
}

RandomGraph wrap(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 21);
  const std::vector<int64_t> dims = {dice.whole(1, 3), dice.whole(1, 20), dice.whole(1, 9),
                                     dice.whole(1, 40)};
  made.input("x", any_elements(dice, DataType::Float32, dims));
  made.constant("pads", integer_list({dice.whole(0, 50), dice.whole(-1, 50), dice.whole(0, 9),
                                      dice.whole(0, 50)}));
  made.constant("axes", integer_list({dice.one_in(2) ? 3 : -1, 2}));
  made.node("y", "Pad", {"x", "pads", "", "axes"},
            attributes_of({{"mode", std::string(dice.one_in(2) ? "wrap" : "reflect")}}));
  return made.ending_in("y");
}

// Elements of float32 are ordinary numbers, because they are computed with.
Tensor picture(Dice& dice, DataType type, const std::vector<int64_t>& dims) {
  if (type != DataType::Float32) return any_elements(dice, type, dims);
  Tensor made = dice.tensor(dims);
  if (dice.one_in(8) && made.elements() > 0) {
    made.mutable_as<float>()[0] = std::numeric_limits<float>::infinity();
  }
  return made;
}

RandomGraph resize(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 19);
  std::vector<int64_t> dims = {dice.whole(1, 3), dice.whole(1, 35)};
  const int64_t axes = dice.whole(0, 3);
  for (int64_t axis = 0; axis < axes; ++axis) dims.push_back(dice.whole(1, 9));
  if (dice.one_in(5)) dims = {dice.whole(1, 40)};
  Attributes attributes;
  const std::string mode = dice.pick<std::string>({"nearest", "linear", "cubic"});
  const std::string coordinates =
      dice.pick<std::string>({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                              "asymmetric", "align_corners", "tf_crop_and_resize"});
  const bool is_crop = coordinates == "tf_crop_and_resize";
  const DataType type =
      mode == "nearest" && !is_crop && dice.one_in(2) ? any_type(dice) : DataType::Float32;
  attributes.set("mode", mode);
  attributes.set("coordinate_transformation_mode", coordinates);
  attributes.set("nearest_mode", dice.pick<std::string>(
                                     {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  if (dice.one_in(3)) attributes.set("antialias", int64_t{1});
  if (dice.one_in(3)) attributes.set("exclude_outside", int64_t{1});
  if (dice.one_in(3)) attributes.set("cubic_coeff_a", -0.5F);
  attributes.set("extrapolation_value", 1.5F);
  std::vector<std::string> inputs = {"x", "", "", ""};
  if (is_crop) {
    std::vector<float> roi;
    for (size_t axis = 0; axis < dims.size(); ++axis) roi.push_back(dice.number(-0.2F, 0.4F));
    for (size_t axis = 0; axis < dims.size(); ++axis) roi.push_back(dice.number(0.5F, 1.2F));
    made.constant("roi", floats(roi));
    inputs[1] = "roi";
  }
  const bool is_all = dice.one_in(12);
  if (dice.one_in(2)) {
    std::vector<float> scales;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      // No axis may become empty.
      const bool is_left = axis < 2 && dims.size() > 2 && !is_all;
      const float scale = dice.pick<float>({1, 2, 3, 0.5F, 1.5F, 2.7F, 0.3F});
      scales.push_back(is_left ? 1 : dims[axis] < 4 ? std::max(scale, 1.0F) : scale);
    }
    made.constant("scales", floats(scales));
    inputs[2] = "scales";
    inputs.pop_back();
  } else {
    std::vector<int64_t> sizes;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool is_left = axis < 2 && dims.size() > 2 && !is_all;
      sizes.push_back(is_left ? dims[axis] : dice.whole(1, 33));
    }
    made.constant("sizes", integer_list(sizes));
    inputs[3] = "sizes";
    if (dice.one_in(4) && !is_crop) {
      attributes.set("keep_aspect_ratio_policy",
                     std::string(dims.size() > 2 || dice.one_in(2) ? "not_larger" : "not_smaller"));
    }
  }
  made.input("x", picture(dice, type, dims));
  made.node("y", "Resize", inputs, attributes);
  return made.ending_in("y");
}

RandomGraph old_resize(Dice& dice, const ops::Registry& registry) {
  const int opset = dice.pick<int>({7, 9, 10, 11});
  RandomGraph made(registry, opset);
  const std::vector<int64_t> dims = {dice.whole(1, 2), dice.whole(1, 20), dice.whole(2, 9),
                                     dice.whole(2, 30)};
  made.input("x", picture(dice, DataType::Float32, dims));
  const std::vector<float> scales = {1, 1, dice.pick<float>({1, 2, 3.4F}),
                                     dice.pick<float>({1, 2, 4, 1.7F})};
  Attributes attributes =
      attributes_of({{"mode", std::string(dice.one_in(2) ? "nearest" : "linear")}});
  std::vector<std::string> inputs = {"x"};
  if (opset == 7) {
    attributes.set("scales", scales);
  } else {
    made.constant("scales", floats(scales));
    if (opset == 11) {
      attributes.set("coordinate_transformation_mode", std::string("tf_half_pixel_for_nn"));
      inputs.emplace_back("");
    }
    inputs.emplace_back("scales");
  }
  made.node("y", opset < 10 ? "Upsample" : "Resize", inputs, attributes);
  return made.ending_in("y");
}

TEST(NativeResize, Pad) { EXPECT_GE(check_each_target(21, 1200, pad).answered, 1200); }
TEST(NativeResize, Wrap) { EXPECT_GE(check_each_target(22, 300, wrap).answered, 300); }
TEST(NativeResize, Resize) { EXPECT_GE(check_each_target(23, 1200, resize).answered, 1200); }
TEST(NativeResize, Older) { EXPECT_GE(check_each_target(24, 400, old_resize).answered, 400); }

}  // namespace
}  // namespace tessera
