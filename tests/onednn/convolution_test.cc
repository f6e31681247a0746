// Convolutions and deconvolutions of odd sizes, alone and with following nodes.
#include <algorithm>

#include "base/tensor/tensors_test.h"
#include "candidate_check.h"
#include "infer/infer.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

// The sizes of a case along its spatial axes.
struct Axes {
  Sizes input;
  Sizes kernel;
  Sizes strides;
  Sizes dilations;
};

Axes random_axes(Dice& dice, int64_t rank) {
  const int64_t largest = rank == 1 ? 40 : rank == 2 ? 19 : 9;
  Axes axes;
  const bool is_pointwise = dice.one_in(5);
  const bool is_dilated = dice.one_in(4);
  for (int64_t axis = 0; axis < rank; ++axis) {
    axes.kernel.push_back(is_pointwise ? 1 : dice.whole(1, rank == 3 ? 3 : 5));
    axes.strides.push_back(dice.one_in(2) ? 1 : dice.whole(1, 3));
    axes.dilations.push_back(is_dilated ? dice.whole(1, 3) : 1);
    const int64_t extent = (axes.kernel.back() - 1) * axes.dilations.back() + 1;
    axes.input.push_back(extent + dice.whole(0, largest));
  }
  return axes;
}

// Numbers of channels of a group: few, odd, and whole blocks.
int64_t random_channels(Dice& dice) {
  return dice.pick(Sizes{1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 24, 32, 33, 48});
}

void set_geometry(Dice& dice, const Axes& axes, Attributes& attributes) {
  const auto rank = static_cast<int64_t>(axes.kernel.size());
  attributes.set("strides", axes.strides);
  attributes.set("dilations", axes.dilations);
  if (dice.one_in(2)) attributes.set("kernel_shape", axes.kernel);
  if (dice.one_in(4)) {
    const std::vector<std::string> words = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    attributes.set("auto_pad", dice.pick(words));
  } else if (dice.one_in(2)) {
    Sizes pads;
    for (int64_t side = 0; side < 2 * rank; ++side) {
      pads.push_back(dice.whole(0, axes.kernel[static_cast<size_t>(side % rank)] - 1));
    }
    attributes.set("pads", pads);
  }
}

Sizes with_spatial(Sizes leading, const Sizes& spatial) {
  leading.insert(leading.end(), spatial.begin(), spatial.end());
  return leading;
}

std::string random_activation(Dice& dice, RandomGraph& made, const std::string& last,
                              const std::string& name) {
  const std::vector<std::string> plain = {"Relu", "Sigmoid", "Tanh", "Gelu", "HardSwish"};
  const int64_t kind = dice.whole(0, 10);
  if (kind < 5) {
    made.node(name, plain[static_cast<size_t>(kind)], {last});
  } else if (kind == 5) {
    made.node(name, "LeakyRelu", {last}, attributes_of({{"alpha", dice.number(0.01F, 0.3F)}}));
  } else if (kind == 6) {
    made.node(name, "Elu", {last}, attributes_of({{"alpha", dice.number(0.5F, 1.5F)}}));
  } else if (kind == 7) {
    made.constant(name + "_low", Tensor(DataType::Float32, {}));
    made.constant(name + "_high", dice.tensor({}, 1, 6));
    made.node(name, "Clip", {last, name + "_low", name + "_high"});
  } else if (kind == 8) {
    made.node(name + "_gate", "Sigmoid", {last}).node(name, "Mul", {last, name + "_gate"});
  } else if (kind == 9) {
    made.node(name + "_gate", "HardSigmoid", {last},
              attributes_of({{"alpha", 1.0F / 6}, {"beta", 0.5F}}));
    made.node(name, "Mul", {name + "_gate", last});
  } else {
    made.constant(name + "_zero", Tensor(DataType::Float32, {}));
    made.constant(name + "_three", floats({}, {3})).constant(name + "_six", floats({}, {6}));
    made.node(name + "_sum", "Add", {last, name + "_three"})
        .node(name + "_clip", "Clip", {name + "_sum", name + "_zero", name + "_six"})
        .node(name + "_mul", "Mul", {last, name + "_clip"})
        .node(name, "Div", {name + "_mul", name + "_six"});
  }
  return name;
}

// Appends sums, activations and per-channel arithmetic to `last`, whose sizes are `dims`.
std::string append_convolution_tail(Dice& dice, RandomGraph& made, std::string last,
                                    const Sizes& dims) {
  const int64_t kind = dice.whole(0, 7);
  const auto sum = [&](const std::string& name) {
    made.input(name + "_other", dice.tensor(dims));
    const bool is_left = dice.one_in(2);
    made.node(name, "Add",
              is_left ? std::vector{name + "_other", last} : std::vector{last, name + "_other"},
              {name});
    return name;
  };
  if (kind == 1 || kind == 2) return random_activation(dice, made, last, "act");
  if (kind == 3) return sum("sum");
  if (kind == 4 || kind == 5) {
    last = sum("sum");
    return random_activation(dice, made, last, "act");
  }
  if (kind == 6) {
    last = random_activation(dice, made, last, "act");
    return sum("sum");
  }
  if (kind == 7) {
    Sizes channels(dims.size(), 1);
    channels[1] = dims[1];
    made.operand(dice, "scale", dice.tensor(channels, 0.5F, 2));
    made.operand(dice, "shift", dice.tensor(channels));
    made.node("scaled", "Mul", {last, "scale"});
    made.node("shifted", "Add", {"scaled", "shift"});
    return random_activation(dice, made, "shifted", "act");
  }
  return last;
}

// Sizes of the convolution's result, by the type rule.
Sizes result_dims(const RandomGraph& made, const ops::Registry& registry) {
  const Graph typed = infer_types(made.builder.graph(), registry, Log());
  Sizes dims;
  for (const Dim& dim : *value_of(typed, "conv").type.shape) dims.push_back(dim.value());
  return dims;
}

RandomGraph finish(Dice& dice, RandomGraph made, const ops::Registry& registry) {
  const Sizes dims = result_dims(made, registry);
  return made.ending_in(append_convolution_tail(dice, made, "conv", dims));
}

RandomGraph convolution(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t rank = dice.one_in(4) ? dice.pick(Sizes{1, 3}) : 2;
  const Axes axes = random_axes(dice, rank);
  const bool is_depthwise = dice.one_in(4);
  const int64_t groups = is_depthwise     ? random_channels(dice)
                         : dice.one_in(4) ? dice.whole(2, 4)
                                          : 1;
  const int64_t inputs = is_depthwise ? 1 : random_channels(dice);
  const int64_t outputs = is_depthwise ? (dice.one_in(4) ? 2 : 1) : random_channels(dice);
  const int64_t batch = dice.one_in(3) ? 3 : 1;
  made.input("x", dice.tensor(with_spatial({batch, groups * inputs}, axes.input)));
  Tensor weights = dice.tensor(with_spatial({groups * outputs, inputs}, axes.kernel));
  if (dice.one_in(8)) {
    made.input("w", std::move(weights));
  } else {
    made.constant("w", std::move(weights));
  }
  std::vector<std::string> names = {"x", "w"};
  if (dice.one_in(2)) {
    made.constant("b", dice.tensor({groups * outputs}));
    names.emplace_back("b");
  }
  Attributes attributes = attributes_of({{"group", groups}});
  set_geometry(dice, axes, attributes);
  made.node("conv", "Conv", names, attributes);
  return finish(dice, std::move(made), registry);
}

RandomGraph deconvolution(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t rank = dice.one_in(4) ? dice.pick(Sizes{1, 3}) : 2;
  Axes axes = random_axes(dice, rank);
  for (int64_t& length : axes.input) length = dice.whole(1, rank == 3 ? 5 : 9);
  const int64_t groups = dice.one_in(4) ? dice.whole(2, 4) : 1;
  const int64_t inputs = random_channels(dice);
  const int64_t outputs = random_channels(dice);
  made.input("x", dice.tensor(with_spatial({dice.whole(1, 2), groups * inputs}, axes.input)));
  made.constant("w", dice.tensor(with_spatial({groups * inputs, outputs}, axes.kernel)));
  std::vector<std::string> names = {"x", "w"};
  if (dice.one_in(2)) {
    made.constant("b", dice.tensor({groups * outputs}));
    names.emplace_back("b");
  }
  Attributes attributes =
      attributes_of({{"group", groups}, {"strides", axes.strides}, {"dilations", axes.dilations}});
  Sizes padding;
  for (const int64_t stride : axes.strides) padding.push_back(dice.whole(0, stride - 1));
  if (dice.one_in(2)) attributes.set("output_padding", padding);
  if (dice.one_in(4)) {
    const std::vector<std::string> words = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    attributes.set("auto_pad", dice.pick(words));
  } else if (dice.one_in(2)) {
    // Pads so little that the output does not become empty.
    Sizes pads(static_cast<size_t>(2 * rank), 0);
    for (size_t axis = 0; axis < axes.kernel.size(); ++axis) {
      const int64_t reach = (axes.input[axis] - 1) * axes.strides[axis] +
                            (axes.kernel[axis] - 1) * axes.dilations[axis];
      pads[axis] = dice.whole(0, std::min<int64_t>(reach, axes.kernel[axis]) / 2);
      pads[axis + axes.kernel.size()] =
          dice.whole(0, std::min<int64_t>(reach, axes.kernel[axis]) / 2);
    }
    attributes.set("pads", pads);
  }
  made.node("conv", "ConvTranspose", names, attributes);
  return finish(dice, std::move(made), registry);
}

constexpr Tolerance kTolerance = {.relative = 2e-5, .of_largest = 1e-5};

TEST(OnednnConvolutions, Convolution) {
  const Totals totals = check_cases("onednn", 11, 700, convolution, kTolerance);
  EXPECT_EQ(totals.answered, 700);
  EXPECT_GE(totals.largest, 4U);
}

TEST(OnednnConvolutions, Deconvolution) {
  const Totals totals = check_cases("onednn", 12, 300, deconvolution, kTolerance);
  EXPECT_EQ(totals.answered, 300);
}

}  // namespace
}  // namespace tessera
