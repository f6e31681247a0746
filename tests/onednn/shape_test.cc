// Ops that change shapes: reductions, resizing and concatenation, in every layout.
#include "candidate_check.h"

#include "base/tensor/tensors_test.h"
#include "random_nodes.h"

namespace tessera {
namespace {

const std::vector<int64_t> kChannels = {1, 3, 8, 13, 16, 17, 24, 32, 35};

std::vector<int64_t> picture(Dice& dice, int64_t min_axes, int64_t max_axes) {
  std::vector<int64_t> dims = {dice.whole(1, 3), dice.pick(kChannels)};
  const int64_t axes = dice.whole(min_axes, max_axes);
  for (int64_t axis = 0; axis < axes; ++axis) dims.push_back(dice.whole(1, 9));
  return dims;
}

RandomGraph reduction(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"ReduceL1", "ReduceMean", "ReduceSum",
                                                "ReduceSumSquare"};
  const bool is_old = dice.one_in(2);
  RandomGraph made(registry, is_old ? 12 : 18);
  const std::vector<int64_t> dims = picture(dice, 0, 3);
  const auto rank = static_cast<int64_t>(dims.size());
  made.input("x", dice.tensor(dims, 0.6F, 1.6F));
  std::vector<int64_t> axes;
  const bool is_pixels = dice.one_in(3);
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (is_pixels ? axis >= 2 : dice.one_in(2)) axes.push_back(dice.one_in(2) ? axis : axis - rank);
  }
  Attributes attributes = attributes_of({{"keepdims", int64_t{dice.one_in(2)}}});
  std::vector<std::string> inputs = {"x"};
  if (is_old) {
    if (!axes.empty()) attributes.set("axes", axes);
  } else {
    made.constant("axes", ints(axes));
    inputs.emplace_back("axes");
  }
  made.node("y", dice.pick(kOps), inputs, attributes);
  return made.ending_in("y");
}

RandomGraph resize(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 19);
  const std::vector<int64_t> dims = picture(dice, 1, 3);
  made.input("x", dice.tensor(dims));
  Attributes attributes;
  const std::vector<std::string> modes = {"half_pixel", "pytorch_half_pixel", "asymmetric",
                                          "align_corners", "half_pixel_symmetric"};
  const std::vector<std::string> roundings = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                              "ceil"};
  attributes.set("mode", std::string(dice.one_in(2) ? "nearest" : "linear"));
  attributes.set("coordinate_transformation_mode", dice.pick(modes));
  attributes.set("nearest_mode", dice.pick(roundings));
  std::vector<std::string> inputs = {"x", "", "scales"};
  if (dice.one_in(2)) {
    std::vector<float> scales = {1, 1};
    const std::vector<float> known = {1, 2, 3, 0.5F, 1.5F, 2.7F};
    for (size_t axis = 2; axis < dims.size(); ++axis) {
      // No axis may become empty.
      scales.push_back(dims[axis] == 1 ? 2 : dice.pick(known));
    }
    made.constant("scales", floats({static_cast<int64_t>(scales.size())}, scales));
  } else {
    std::vector<int64_t> sizes = {dims[0], dims[1]};
    for (size_t axis = 2; axis < dims.size(); ++axis) sizes.push_back(dice.whole(1, 17));
    made.constant("sizes", ints(sizes));
    inputs = {"x", "", "", "sizes"};
  }
  made.node("y", "Resize", inputs, attributes);
  return made.ending_in("y");
}

RandomGraph upsample(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 9);
  const std::vector<int64_t> dims = picture(dice, 2, 2);
  made.input("x", dice.tensor(dims));
  const std::vector<float> scales = {1, 1, static_cast<float>(dice.whole(1, 4)),
                                     static_cast<float>(dice.whole(1, 4))};
  made.constant("scales", floats({4}, scales));
  made.node("y", "Upsample", {"x", "scales"});
  return made.ending_in("y");
}

RandomGraph concat(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  std::vector<int64_t> dims = picture(dice, 0, 3);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = dice.one_in(2) ? 1 : dice.whole(0, rank - 1);
  std::vector<std::string> inputs;
  const int64_t count = dice.whole(1, 5);
  for (int64_t index = 0; index < count; ++index) {
    dims[static_cast<size_t>(axis)] = axis == 1 ? dice.pick(kChannels) : dice.whole(1, 6);
    inputs.push_back("x" + std::to_string(index));
    made.operand(dice, inputs.back(), dice.tensor(dims));
  }
  if (dice.one_in(6)) inputs.push_back(inputs.front());
  made.node("y", "Concat", inputs, attributes_of({{"axis", dice.one_in(2) ? axis : axis - rank}}));
  return made.ending_in("y");
}

RandomGraph transpose(Dice& dice, const ops::Registry& registry) {
  return random_transpose(dice, registry, dice.tensor(picture(dice, 0, 3)));
}

RandomGraph shuffle(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> parts = {1, 2, 3, 4, 8, 16};
  const int64_t batch = dice.whole(1, 2);
  const int64_t groups = dice.pick(parts);
  const int64_t channels = dice.pick(parts);
  const int64_t height = dice.whole(1, 5);
  const int64_t width = dice.whole(1, 5);
  made.input("x", dice.tensor({batch, groups * channels, height, width}));
  made.constant("parted", ints({batch, groups, channels, height, width}));
  made.constant("whole", ints({batch, groups * channels, height, width}));
  const Attributes attributes = attributes_of({{"perm", {0, 2, 1, 3, 4}}});
  made.node("a", "Reshape", {"x", "parted"});
  made.node("b", "Transpose", {"a"}, attributes);
  made.node("y", "Reshape", {"b", "whole"});
  return made.ending_in("y");
}

TEST(OnednnShapes, Transpose) { EXPECT_EQ(check_cases("onednn", 35, 80, transpose).answered, 80); }
TEST(OnednnShapes, Shuffle) { EXPECT_EQ(check_cases("onednn", 36, 40, shuffle).largest, 3U); }

TEST(OnednnShapes, Reductions) {
  // Others are of more elements than oneDNN adds up exactly enough, or than its reference code is
  // offered for.
  EXPECT_GE(check_cases("onednn", 31, 240, reduction).answered, 80);
}
// Long sums lose digits, and some reductions leave the range of float32 on the way.
TEST(OnednnShapes, InexactReductionsAreRefused) {
  const auto answered = [](const std::string& op, int64_t length) {
    return check_cases("onednn", 37, 1,
                       [&](Dice& dice, const ops::Registry& registry) {
                         RandomGraph made(registry, 12);
                         made.input("x", dice.tensor({2, length}));
                         made.node("y", op, {"x"}, attributes_of({{"axes", {1}}}));
                         return made.ending_in("y");
                       })
        .answered;
  };
  for (const char* op : {"ReduceMean", "ReduceSum"}) {
    EXPECT_EQ(answered(op, 32), 1) << op;
    EXPECT_EQ(answered(op, 33), 0) << op;
  }
  for (const char* op : {"ReduceL1", "ReduceSumSquare"}) {
    EXPECT_EQ(answered(op, 16), 1) << op;
    EXPECT_EQ(answered(op, 17), 0) << op;
  }
  for (const char* op : {"ReduceL2", "ReduceProd"}) EXPECT_EQ(answered(op, 2), 0) << op;
}
TEST(OnednnShapes, Resize) { EXPECT_GE(check_cases("onednn", 32, 300, resize).answered, 60); }
TEST(OnednnShapes, Upsample) { EXPECT_EQ(check_cases("onednn", 33, 40, upsample).answered, 40); }
TEST(OnednnShapes, Concat) { EXPECT_EQ(check_cases("onednn", 34, 150, concat).answered, 150); }

}  // namespace
}  // namespace tessera
