// Convolutions of odd sizes, grouped, dilated, padded, with a following Relu.

#include <cstdint>
#include <string>
#include <vector>

#include "each_target.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

void set_padding(Dice& dice, const Sizes& pads, Attributes& attributes) {
  if (dice.one_in(4)) {
    const std::vector<std::string> words = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    attributes.set("auto_pad", dice.pick(words));
  } else {
    attributes.set("pads", pads);
  }
}

RandomGraph convolution(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t rank = dice.one_in(3) ? dice.pick(Sizes{1, 3}) : 2;
  const int64_t groups = dice.one_in(2) ? 1 : dice.whole(1, 6);
  const int64_t from = dice.one_in(3) ? 1 : dice.whole(1, 9);
  const int64_t to = dice.one_in(3) ? 1 : dice.whole(1, 9);
  Sizes input = {dice.whole(1, 2), groups * from};
  Sizes weights = {groups * to, from};
  Sizes strides;
  Sizes dilations;
  Sizes pads;
  const bool is_pointwise = dice.one_in(6);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t kernel = is_pointwise ? 1 : dice.whole(1, rank == 3 ? 3 : 5);
    weights.push_back(kernel);
    strides.push_back(is_pointwise ? 1 : dice.whole(1, 3));
    dilations.push_back(dice.one_in(3) ? dice.whole(1, 3) : 1);
    input.push_back((kernel - 1) * dilations.back() + dice.whole(1, rank == 3 ? 5 : 17));
  }
  for (int64_t side = 0; side < 2 * rank; ++side) {
    pads.push_back(is_pointwise ? 0 : dice.whole(0, dice.one_in(8) ? 7 : 2));
  }
  made.input("x", dice.tensor(input, -0.5F, 1));
  made.operand(dice, "w", dice.tensor(weights, -0.5F, 1));
  std::vector<std::string> inputs = {"x", "w"};
  if (dice.one_in(2)) {
    made.operand(dice, "b", dice.tensor({groups * to}));
    inputs.emplace_back("b");
  }
  Attributes attributes =
      attributes_of({{"group", groups}, {"strides", strides}, {"dilations", dilations}});
  set_padding(dice, pads, attributes);
  made.node("y", "Conv", inputs, attributes);
  const bool has_relu = dice.one_in(2);
  if (has_relu) made.node("z", "Relu", {"y"});
  return made.ending_in(has_relu ? "z" : "y");
}

// Sums over more inputs than are gathered at a time.
RandomGraph deep(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t channels = dice.whole(300, 700);
  made.input("x", dice.tensor({1, channels, 4, 5}, -0.5F, 1));
  const int64_t kernel = dice.one_in(3) ? 1 : 3;
  made.constant("w", dice.tensor({3, channels, kernel, kernel}, -0.5F, 1));
  made.input("b", dice.tensor({3}));
  made.node("y", "Conv", {"x", "w", "b"}, attributes_of({{"pads", {1, 1, 1, 1}}}));
  made.node("z", "Relu", {"y"});
  return made.ending_in("z");
}

// Adds the input "x", the weights "w", which are constant, and perhaps a bias; returns their names.
std::vector<std::string> add_operands(Dice& dice, RandomGraph& made, const Sizes& input,
                                      const Sizes& weights, int64_t out_channels) {
  made.input("x", dice.tensor(input, -0.5F, 1));
  made.constant("w", dice.tensor(weights, -0.5F, 1));
  std::vector<std::string> names = {"x", "w"};
  if (dice.one_in(2)) {
    made.operand(dice, "b", dice.tensor({out_channels}));
    names.emplace_back("b");
  }
  return names;
}

// 3 x 3 taps and `min_blocks` to `max_blocks` blocks of 16 channels, with nodes that can be fused.
RandomGraph blocks(Dice& dice, const ops::Registry& registry, int64_t min_blocks,
                   int64_t max_blocks, int64_t min_side = 10, int64_t max_side = 30) {
  RandomGraph made(registry, 13);
  const int64_t images = dice.whole(1, 2);
  const int64_t in_channels = 16 * dice.whole(min_blocks, max_blocks);
  const int64_t out_channels = 16 * dice.whole(min_blocks, max_blocks);
  const int64_t rows = dice.whole(min_side, max_side);
  const int64_t columns = dice.whole(min_side, max_side);
  Sizes pads;
  for (int side = 0; side < 4; ++side) pads.push_back(dice.whole(0, 2));
  const std::vector<std::string> inputs =
      add_operands(dice, made, {images, in_channels, rows, columns},
                   {out_channels, in_channels, 3, 3}, out_channels);
  made.node("y", "Conv", inputs, attributes_of({{"pads", pads}}));
  std::string last = "y";
  if (dice.one_in(2)) {
    made.input("r", dice.tensor({images, out_channels, rows + pads[0] + pads[2] - 2,
                                 columns + pads[1] + pads[3] - 2}));
    const bool is_first = dice.one_in(2);
    made.node("s", "Add", {is_first ? "y" : "r", is_first ? "r" : "y"});
    last = "s";
  }
  if (dice.one_in(2)) {
    made.node("z", "Relu", {last});
    last = "z";
  }
  return made.ending_in(last);
}

// Adds one of the groups of nodes that can be fused after "y", or none, and makes the last one the
// output.
void add_activation(Dice& dice, RandomGraph& made, int64_t version, const Sizes& sizes) {
  std::string last = "z";
  switch (dice.whole(0, 6)) {
    case 0:
      last = "y";
      break;
    case 1:
      made.node("z", "Relu", {"y"});
      break;
    case 2:
      made.input("r", dice.tensor(sizes));
      made.node("s", "Add", {"r", "y"});
      last = "s";
      if (dice.one_in(2)) break;
      last = "z";
      made.node("z", "Relu", {"s"});
      break;
    case 3:
      made.node("g", "Sigmoid", {"y"});
      made.node("z", "Mul", {"y", "g"});
      break;
    case 4:
      made.node("z", version < 14 ? "Relu" : "HardSwish", {"y"});
      break;
    default: {
      if (version < 11) {
        Attributes bounds = attributes_of({{"min", 0.25F}});
        if (dice.one_in(2)) bounds.set("max", 1.5F);
        made.node("z", "Clip", {"y"}, bounds);
        break;
      }
      // Bounds near 0 would hide how large the sums are, by which errors are judged.
      made.constant("low", dice.tensor({}, -1, -0.25));
      made.constant("high", dice.tensor({}, 0.25, 1));
      made.node("z", "Clip", {"y", "low", dice.one_in(2) ? "high" : ""});
    }
  }
  made.builder.output(last);
}

// One tap, any number of channels and strides, with the nodes that can be fused.
RandomGraph pointwise(Dice& dice, const ops::Registry& registry) {
  const int64_t version = dice.one_in(2) ? 14 : 10;  // of Clip: bounds as inputs or attributes
  RandomGraph made(registry, static_cast<int>(version));
  const int64_t images = dice.whole(1, 2);
  const int64_t in_channels = dice.one_in(20) ? dice.whole(1500, 1700) : dice.whole(2, 80);
  const int64_t out_channels = dice.whole(2, 200);
  const int64_t stride = dice.one_in(2) ? dice.whole(1, 3) : 1;
  const int64_t rows = dice.whole(1, 24);
  const int64_t columns = dice.whole(2, 24);
  const std::vector<std::string> inputs =
      add_operands(dice, made, {images, in_channels, rows, columns},
                   {out_channels, in_channels, 1, 1}, out_channels);
  made.node("y", "Conv", inputs, attributes_of({{"strides", {stride, stride}}}));
  add_activation(dice, made, version,
                 {images, out_channels, (rows - 1) / stride + 1, (columns - 1) / stride + 1});
  return made;
}

// Any taps, strides and dilations of more channels than are computed by definition; 1-D too.
RandomGraph patches(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const Sizes channels = {dice.whole(10, 70), dice.whole(2, 150)};
  const int64_t images = dice.whole(1, 2);
  Sizes input = {images, channels[0]};
  Sizes weights = {channels[1], channels[0]};
  Sizes output = {images, channels[1]};
  Sizes begins;
  Sizes ends;
  Sizes strides;
  Sizes dilations;
  const int axes = dice.one_in(4) ? 1 : 2;
  for (int axis = 0; axis < axes; ++axis) {
    const int64_t taps = dice.whole(1, 6);
    strides.push_back(dice.whole(1, 3));
    dilations.push_back(dice.one_in(3) ? dice.whole(2, 3) : 1);
    const int64_t extent = (taps - 1) * dilations.back() + 1;
    // Also windows in the padding as a whole.
    begins.push_back(dice.whole(0, extent + 2));
    ends.push_back(dice.whole(0, extent + 2));
    input.push_back(extent + dice.whole(0, axes == 1 ? 100 : 12));
    weights.push_back(taps);
    output.push_back((input.back() + begins.back() + ends.back() - extent) / strides.back() + 1);
  }
  const std::vector<std::string> inputs = add_operands(dice, made, input, weights, channels[1]);
  begins.insert(begins.end(), ends.begin(), ends.end());
  made.node("y", "Conv", inputs,
            attributes_of({{"pads", begins}, {"strides", strides}, {"dilations", dilations}}));
  add_activation(dice, made, 14, output);
  return made;
}

// ConvTranspose, with strides larger than the kernel, outputs that no input reaches, and 1-D.
RandomGraph transposed(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const Sizes channels = {dice.whole(1, 70), dice.whole(1, 90)};
  Sizes input = {dice.whole(1, 2), channels[0]};
  Sizes weights = {channels[0], channels[1]};
  Sizes begins;
  Sizes ends;
  Sizes strides;
  Sizes extras;
  const int axes = dice.one_in(4) ? 1 : 2;
  for (int axis = 0; axis < axes; ++axis) {
    const int64_t taps = dice.whole(1, 6);
    strides.push_back(dice.whole(1, 4));
    extras.push_back(dice.one_in(2) ? dice.whole(0, strides.back() - 1) : 0);
    input.push_back(dice.whole(1, axes == 1 ? 60 : 9));
    weights.push_back(taps);
    const int64_t room = ((input.back() - 1) * strides.back() + taps - 1) / 2;
    begins.push_back(std::min(room, dice.whole(0, taps - 1)));
    ends.push_back(std::min(room, dice.whole(0, taps - 1)));
  }
  const std::vector<std::string> inputs = add_operands(dice, made, input, weights, channels[1]);
  begins.insert(begins.end(), ends.begin(), ends.end());
  made.node("y", "ConvTranspose", inputs,
            attributes_of({{"pads", begins}, {"strides", strides}, {"output_padding", extras}}));
  return made.ending_in("y");
}

// One tap, with enough channels and pixels that products of quarters are offered.
RandomGraph large_pointwise(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const int64_t images = dice.whole(1, 2);
  const int64_t in_channels = dice.whole(256, 300);
  const int64_t out_channels = dice.whole(256, 400);
  const int64_t rows = dice.whole(7, 12);
  const int64_t columns = dice.whole(10, 12);
  const std::vector<std::string> inputs =
      add_operands(dice, made, {images, in_channels, rows, columns},
                   {out_channels, in_channels, 1, 1}, out_channels);
  made.node("y", "Conv", inputs);
  add_activation(dice, made, 14, {images, out_channels, rows, columns});
  return made;
}

// Each channel alone, with taps and strides for which there are loops and others, at the edges of
// small maps too.
RandomGraph depthwise(Dice& dice, const ops::Registry& registry) {
  const int64_t version = dice.one_in(2) ? 14 : 10;
  RandomGraph made(registry, static_cast<int>(version));
  const int64_t images = dice.whole(1, 2);
  const int64_t channels = dice.one_in(2) ? 16 * dice.whole(1, 9) : dice.whole(2, 70);
  const int64_t taps = dice.pick(Sizes{3, 3, 5, 7});
  const int64_t stride = dice.whole(1, 2);
  const int64_t rows = dice.whole(taps, 18);
  const int64_t columns = dice.whole(taps, 30);
  const std::vector<std::string> inputs = add_operands(
      dice, made, {images, channels, rows, columns}, {channels, 1, taps, taps}, channels);
  Sizes pads;
  const bool is_same = dice.one_in(2);
  for (int side = 0; side < 4; ++side) {
    pads.push_back(is_same ? taps / 2 : dice.whole(0, taps - 1));
  }
  made.node("y", "Conv", inputs,
            attributes_of({{"group", channels}, {"pads", pads}, {"strides", {stride, stride}}}));
  add_activation(dice, made, version,
                 {images, channels, (rows + pads[0] + pads[2] - taps) / stride + 1,
                  (columns + pads[1] + pads[3] - taps) / stride + 1});
  return made;
}

// A convolution of each channel alone, of maps that do not fit into the cache, between convolutions
// of one tap, or beside one of them; each may be followed by an activation. At the end a sum, also
// with the input of all.
RandomGraph mobile_block(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const int64_t outer = dice.whole(3, 24);
  const int64_t inner = dice.whole(30, 70);
  const int64_t which = dice.whole(0, 2);
  const bool is_expanded = which != 0;
  const bool is_projected = which != 1;
  const int64_t taps = dice.pick(Sizes{3, 3, 5, 7});
  const int64_t stride = dice.whole(1, 2);
  Sizes dims = {dice.whole(1, 2), is_expanded ? outer : inner, dice.whole(48, 64),
                dice.whole(48, 64)};
  made.input("x", dice.tensor(dims, -0.5F, 1));
  const Sizes first = dims;
  std::string last = "x";
  const auto activate = [&] {
    const std::string from = last;
    const int64_t kind = dice.whole(0, 3);
    if (kind == 0) return;
    last += "a";
    if (kind == 1) made.node(last, "Relu", {from});
    if (kind == 2) made.node(last, "HardSwish", {from});
    if (kind == 3) {
      made.node(last + "s", "Sigmoid", {from});
      made.node(last, "Mul", {from, last + "s"});
    }
  };
  const auto convolve = [&](const std::string& name, const Sizes& weights,
                            const Attributes& attributes) {
    made.constant("w" + name, dice.tensor(weights, -0.5F, 0.5F));
    std::vector<std::string> inputs = {last, "w" + name};
    if (dice.one_in(2)) {
      made.operand(dice, "b" + name, dice.tensor({weights[0]}));
      inputs.push_back("b" + name);
    }
    made.node(name, "Conv", inputs, {name}, attributes);
    last = name;
    dims[1] = weights[0];
  };
  if (is_expanded) {
    convolve("e", {inner, outer, 1, 1}, {});
    activate();
  }
  Attributes attributes;
  Sizes pads;
  const bool is_same = dice.one_in(2);
  for (int side = 0; side < 4; ++side) {
    pads.push_back(is_same ? taps / 2 : dice.whole(0, taps - 1));
  }
  attributes.set("group", inner);
  attributes.set("pads", pads);
  attributes.set("strides", Sizes{stride, stride});
  convolve("d", {inner, 1, taps, taps}, attributes);
  for (size_t axis = 0; axis < 2; ++axis) {
    dims[2 + axis] = (dims[2 + axis] + pads[axis] + pads[2 + axis] - taps) / stride + 1;
  }
  activate();
  if (is_projected) {
    convolve("p", {outer, inner, 1, 1}, {});
    if (dims == first) {
      made.node("t", "Add", {"x", last});
      last = "t";
    } else if (dice.one_in(2)) {
      made.input("r", dice.tensor(dims));
      made.node("t", "Add", {last, "r"});
      last = "t";
    }
    activate();
  }
  return made.ending_in(last);
}

// The windows of a Conv along its spatial axes.
struct Windows {
  Sizes begins;  // pads
  Sizes ends;
  Sizes strides;
  Sizes dilations;

  // Adds an axis, of which windows may lie in the padding as a whole.
  void add(Dice& dice, int64_t taps, int64_t dilation) {
    strides.push_back(dice.whole(1, 3));
    dilations.push_back(dilation);
    const int64_t extent = (taps - 1) * dilation + 1;
    begins.push_back(dice.one_in(2) ? extent / 2 : dice.whole(0, extent + 2));
    ends.push_back(dice.one_in(2) ? extent / 2 : dice.whole(0, extent + 2));
  }
  // The size of the output along the last axis.
  int64_t output(int64_t input, int64_t taps) const {
    const int64_t extent = (taps - 1) * dilations.back() + 1;
    return (input + begins.back() + ends.back() - extent) / strides.back() + 1;
  }
  Attributes attributes(int64_t groups) const {
    Sizes pads = begins;
    pads.insert(pads.end(), ends.begin(), ends.end());
    return attributes_of(
        {{"group", groups}, {"pads", pads}, {"strides", strides}, {"dilations", dilations}});
  }
};

// Planes, each by windows of its own, one or several: any taps, strides and dilations, 1-D too.
RandomGraph depthwise_planes(Dice& dice, const ops::Registry& registry) {
  const int64_t version = dice.one_in(2) ? 14 : 10;
  RandomGraph made(registry, static_cast<int>(version));
  const int64_t images = dice.whole(1, 2);
  const int64_t in_channels = dice.whole(2, 9);
  const int64_t out_channels = in_channels * (dice.one_in(4) ? dice.whole(2, 3) : 1);
  const bool is_line = dice.one_in(2);
  Sizes input = {images, in_channels};
  Sizes weights = {out_channels, 1};
  Sizes output = {images, out_channels};
  Windows windows;
  for (int axis = 0; axis < (is_line ? 1 : 2); ++axis) {
    const int64_t taps = is_line ? dice.whole(1, 33) : dice.whole(1, 7);
    windows.add(dice, taps, dice.one_in(3) ? dice.whole(2, is_line ? 40 : 4) : 1);
    const int64_t padding = windows.begins.back() + windows.ends.back();
    const int64_t least = (taps - 1) * windows.dilations.back() + 1 - padding;
    const int64_t longest = !is_line ? 70 : dice.one_in(3) ? 5000 : 300;
    input.push_back(std::max(least, dice.whole(1, longest)));
    weights.push_back(taps);
    output.push_back(windows.output(input.back(), taps));
  }
  const std::vector<std::string> inputs = add_operands(dice, made, input, weights, out_channels);
  made.node("y", "Conv", inputs, windows.attributes(in_channels));
  add_activation(dice, made, version, output);
  return made;
}

// Groups of few channels, among them those of which a vector has several, and few channels in one
// group; any taps, strides and dilations, 1-D too.
RandomGraph few_channels(Dice& dice, const ops::Registry& registry) {
  const int64_t version = dice.one_in(2) ? 14 : 10;
  RandomGraph made(registry, static_cast<int>(version));
  const bool has_groups = !dice.one_in(3);
  const int64_t in_group =
      has_groups ? dice.pick(Sizes{2, 4, 4, 8, 8, 16, 3, 24, 40}) : dice.whole(1, 16);
  const bool is_square = dice.one_in(2);
  const int64_t out_group = is_square && has_groups ? in_group : dice.whole(2, 40);
  const int64_t groups = !has_groups                            ? 1
                         : 16 % in_group == 0 && dice.one_in(2) ? 16 / in_group * dice.whole(1, 3)
                                                                : dice.whole(2, 5);
  const int64_t images = dice.whole(1, 2);
  const bool is_line = dice.one_in(5);
  Sizes input = {images, in_group * groups};
  Sizes weights = {out_group * groups, in_group};
  Sizes output = {images, out_group * groups};
  Windows windows;
  for (int axis = 0; axis < (is_line ? 1 : 2); ++axis) {
    const int64_t taps =
        has_groups ? dice.pick(Sizes{1, 3, 3, 5, 7, 4}) : dice.pick(Sizes{2, 3, 5, 7});
    const int64_t dilation = dice.one_in(4) ? 2 : 1;
    windows.add(dice, taps, dilation);
    input.push_back((taps - 1) * dilation + 1 + dice.whole(0, 24));
    weights.push_back(taps);
    output.push_back(windows.output(input.back(), taps));
  }
  const std::vector<std::string> inputs =
      add_operands(dice, made, input, weights, out_group * groups);
  made.node("y", "Conv", inputs, windows.attributes(groups));
  add_activation(dice, made, version, output);
  return made;
}

// Sizes whose product does not fit 64 bits, in a model of a few bytes.
RandomGraph far_reaching_windows(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const Sizes far = dice.pick(std::vector<Sizes>{{INT32_MAX, INT32_MAX - 15},
                                                 {INT32_MAX, INT32_MAX},
                                                 {INT32_MAX - 15, INT32_MAX},
                                                 {1, INT32_MAX},
                                                 {70'000, 70'000}});
  made.input("x", dice.tensor({1, 4, 4, 4}));
  made.constant("w", dice.tensor({4, 1, 2, 2}));
  Windows windows;
  windows.begins = far;
  windows.ends = {0, 0};
  windows.strides = {1, 1};
  windows.dilations = far;
  made.node("y", "Conv", {"x", "w"}, windows.attributes(4));
  return made.ending_in("y");
}

TEST(NativeConvolution, OddSizes) {
  expect_answers(check_each_target(151, 3000, convolution), 3000, 2);
}
TEST(NativeConvolution, WholeBlocks) {
  const Totals totals = check_each_target(153, 120, [](Dice& dice, const ops::Registry& registry) {
    return blocks(dice, registry, 1, 3);
  });
  expect_answers(totals, 120, 3);
}
TEST(NativeConvolution, Pointwise) {
  expect_answers(check_each_target(156, 400, pointwise), 400, 3);
}
TEST(NativeConvolution, Patches) { expect_answers(check_each_target(160, 300, patches), 300, 3); }
TEST(NativeConvolution, Transposed) {
  EXPECT_GE(check_each_target(161, 400, transposed).answered, 400);
}
// With a lower precision, sums are multiplied too, see matmul_test.cc.
TEST(NativeConvolution, LargePointwise) {
  const Totals totals = check_each_target(
      159, 40, large_pointwise,
      {.relative = 1e-4, .of_largest = 2e-5, .precision = TESSERA_PRECISION_BFLOAT16});
  EXPECT_GE(totals.answered, 40);
}
TEST(NativeConvolution, Depthwise) {
  expect_answers(check_each_target(157, 600, depthwise), 600, 3);
}
TEST(NativeConvolution, DepthwisePlanes) {
  expect_answers(check_each_target(162, 600, depthwise_planes), 600, 3);
}
TEST(NativeConvolution, WindowsThatReachFar) {
  EXPECT_GE(check_each_target(164, 25, far_reaching_windows).answered, 25);
}
TEST(NativeConvolution, MobileBlocks) {
  const Totals totals = check_each_target(163, 20, mobile_block);
  EXPECT_GE(totals.answered, 20);
  EXPECT_GE(totals.largest, 7U);
}
TEST(NativeConvolution, FewChannels) {
  expect_answers(check_each_target(158, 800, few_channels), 800, 3);
}
// Few tiles, whose weights threads divide among them.
TEST(NativeConvolution, SmallMaps) {
  const Totals totals = check_each_target(155, 20, [](Dice& dice, const ops::Registry& registry) {
    return blocks(dice, registry, 1, 13, 6, 9);
  });
  EXPECT_GE(totals.answered, 20);
}
// Weights that do not fit into the cache of a core.
TEST(NativeConvolution, ManyChannels) {
  const Totals totals = check_each_target(154, 10, [](Dice& dice, const ops::Registry& registry) {
    return blocks(dice, registry, 7, 9);
  });
  EXPECT_GE(totals.answered, 10);
}
TEST(NativeConvolution, DeepSums) { EXPECT_GE(check_each_target(152, 30, deep).answered, 30); }

}  // namespace
}  // namespace tessera
