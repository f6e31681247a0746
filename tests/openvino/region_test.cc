// Whole graphs and their parts as regions: networks on images and on sequences, with random ops and
// odd shapes.
#include "base/tensor/tensors_test.h"
#include "candidate_check.h"

namespace tessera {
namespace {

// A network to which one random op at a time is appended; `x` is the newest value.
class Growing {
 public:
  Growing(Dice& dice, const ops::Registry& registry, int opset)
      : made_(registry, opset), dice_(dice) {}

  void start(std::vector<int64_t> dims) {
    dims_ = std::move(dims);
    made_.input(name(), dice_.tensor(dims_));
  }

  std::string name() const { return "v" + std::to_string(count_); }

  // Adds a node whose first input is the newest value, followed by `others`.
  void add(const std::string& op, const std::vector<std::string>& others = {},
           const Attributes& attributes = {}) {
    std::vector<std::string> inputs = {name()};
    inputs.insert(inputs.end(), others.begin(), others.end());
    ++count_;
    made_.builder.node("n" + std::to_string(count_), op, inputs, {name()}, attributes);
  }

  std::string constant(std::vector<int64_t> dims, float low = -0.5F, float high = 0.5F) {
    const std::string called = "c" + std::to_string(++constants_);
    made_.constant(called, dice_.tensor(std::move(dims), low, high));
    return called;
  }

  std::string integers(const std::vector<int64_t>& values) {
    const std::string called = "c" + std::to_string(++constants_);
    made_.constant(called, ints({static_cast<int64_t>(values.size())}, values));
    return called;
  }

  void output(const std::string& value) { made_.builder.output(value); }

  std::vector<int64_t>& dims() { return dims_; }
  Dice& dice() { return dice_; }
  RandomGraph finish() {
    made_.builder.output(name());
    return std::move(made_);
  }

 private:
  RandomGraph made_;
  Dice& dice_;
  std::vector<int64_t> dims_;
  int count_ = 0;
  int constants_ = 0;
};

void add_convolution(Growing& net) {
  Dice& dice = net.dice();
  const int64_t kernel = dice.pick(std::vector<int64_t>{1, 1, 3, 3, 2, 5});
  const int64_t channels = dice.pick(std::vector<int64_t>{1, 3, 8, 13, 16, 33});
  std::vector<int64_t>& dims = net.dims();
  const int64_t from = dims[1];
  const bool is_by_channel = dice.one_in(4);
  const int64_t to = is_by_channel ? from : channels;
  const Attributes attributes = attributes_of({{"pads", std::vector<int64_t>(4, kernel / 2)},
                                               {"group", is_by_channel ? from : int64_t{1}}});
  const std::string weight =
      net.constant({to, is_by_channel ? 1 : from, kernel, kernel}, -0.2F, 0.2F);
  std::vector<std::string> others = {weight};
  if (dice.one_in(2)) others.push_back(net.constant({to}));
  net.add("Conv", others, attributes);
  dims[1] = to;
  for (size_t axis = 2; axis < 4; ++axis) dims[axis] += 2 * (kernel / 2) - kernel + 1;
}

void add_pooling(Growing& net) {
  Attributes attributes = attributes_of({{"kernel_shape", {2, 3}}, {"pads", {1, 1, 1, 1}}});
  const bool is_largest = net.dice().one_in(2);
  if (!is_largest) attributes.set("count_include_pad", int64_t{net.dice().one_in(2)});
  net.add(is_largest ? "MaxPool" : "AveragePool", {}, attributes);
  net.dims()[2] += 1;
}

void add_normalization(Growing& net) {
  const int64_t channels = net.dims()[1];
  const std::string scale = net.constant({channels});
  const std::string bias = net.constant({channels});
  if (net.dice().one_in(3)) return net.add("InstanceNormalization", {scale, bias});
  const std::string mean = net.constant({channels});
  net.add("BatchNormalization", {scale, bias, mean, net.constant({channels}, 0.5F, 2)});
}

void add_simple(Growing& net, const std::vector<std::string>& ops) {
  net.add(net.dice().pick(ops));
}

RandomGraph picture_network(Dice& dice, const ops::Registry& registry) {
  Growing net(dice, registry, 14);
  net.start({dice.whole(1, 2), dice.pick(std::vector<int64_t>{1, 3, 8, 17}), dice.whole(3, 11),
             dice.whole(3, 11)});
  const int64_t steps = dice.whole(3, 14);
  for (int64_t step = 0; step < steps; ++step) {
    const std::string before = net.name();
    switch (dice.whole(0, 6)) {
      case 0:
      case 1:
        add_convolution(net);
        break;
      case 2:
        add_pooling(net);
        break;
      case 3:
        add_normalization(net);
        break;
      case 4:
        add_simple(net, {"Relu", "Sigmoid", "Tanh", "HardSwish", "Elu", "LeakyRelu", "Softplus"});
        break;
      case 5:
        // A shortcut, as in residual networks.
        add_simple(net, {"Relu", "Abs", "Neg"});
        net.add(dice.one_in(2) ? "Add" : "Mul", {before});
        break;
      default:
        add_simple(net, {"Sigmoid", "Exp"});
        net.add("Concat", {before}, [] { return attributes_of({{"axis", 1}}); }());
        net.dims()[1] *= 2;
        // Repeated exponentials would overflow float32.
        net.add("Tanh");
    }
    if (dice.one_in(9)) net.output(net.name());
  }
  net.add("Abs");
  return net.finish();
}

void add_product(Growing& net) {
  const int64_t width = net.dice().pick(std::vector<int64_t>{5, 16, 31, 64});
  net.add("MatMul", {net.constant({net.dims()[2], width}, -0.3F, 0.3F)});
  net.dims()[2] = width;
  if (net.dice().one_in(2)) net.add("Add", {net.constant({width})});
}

void add_layer_normalization(Growing& net) {
  const int64_t width = net.dims()[2];
  const std::string scale = net.constant({width}, 0.5F, 1.5F);
  net.add("LayerNormalization", {scale, net.constant({width})});
}

void add_attention(Growing& net) {
  const std::string value = net.name();
  const Attributes turn = attributes_of({{"perm", {0, 2, 1}}});
  net.add("Transpose", {}, turn);
  // Attention: every row with every other row, then the values.
  net.add("MatMul", {value});
  net.add("Softmax");
  net.add("Transpose", {}, turn);
  net.add("MatMul", {net.constant({net.dims()[2], 7})});
  net.dims() = {net.dims()[0], net.dims()[2], 7};
}

RandomGraph sequence_network(Dice& dice, const ops::Registry& registry) {
  Growing net(dice, registry, 20);
  net.start({dice.whole(1, 3), dice.whole(1, 9), dice.pick(std::vector<int64_t>{4, 7, 16, 33})});
  const int64_t steps = dice.whole(3, 12);
  for (int64_t step = 0; step < steps; ++step) {
    const std::string before = net.name();
    switch (dice.whole(0, 5)) {
      case 0:
        add_product(net);
        break;
      case 1:
        add_layer_normalization(net);
        break;
      case 2:
        add_attention(net);
        break;
      case 3:
        add_simple(net, {"Softsign", "Tanh", "Softmax", "Sigmoid", "HardSwish"});
        break;
      case 4: {
        const std::vector<int64_t> dims = net.dims();
        net.add("Reshape", {net.integers({dims[0] * dims[1], dims[2]})});
        add_simple(net, {"Tanh", "Relu"});
        net.add("Reshape", {net.integers(dims)});
        break;
      }
      default:
        add_simple(net, {"Tanh", "Neg"});
        net.add(dice.one_in(2) ? "Add" : "Sub", {before});
    }
  }
  net.add("Abs");
  return net.finish();
}

// Sums of many products and functions of them: a region rounds differently from separate nodes.
const Tolerance kOfNetworks = {.relative = 2e-4, .of_largest = 1e-4};

TEST(OpenvinoRegions, OverPictures) {
  const Totals totals = check_cases("openvino", 71, 60, picture_network, kOfNetworks);
  EXPECT_EQ(totals.answered, 60);
  EXPECT_GE(totals.largest, 10U);
  // Some graphs are also offered in halves.
  EXPECT_GE(totals.candidates, 80);
}

TEST(OpenvinoRegions, OverSequences) {
  const Totals totals = check_cases("openvino", 72, 60, sequence_network, kOfNetworks);
  EXPECT_EQ(totals.answered, 60);
  EXPECT_GE(totals.candidates, 80);
}

RandomGraph interrupted(Dice& dice, const ops::Registry& registry) {
  Growing net(dice, registry, 14);
  net.start({1, 8, dice.whole(3, 9), dice.whole(3, 9)});
  const auto some = [&] {
    for (int step = 0; step < 3; ++step) add_convolution(net);
    add_simple(net, {"Relu", "Sigmoid"});
  };
  some();
  const std::string before = net.name();
  // Two paths to the following nodes, one of them through an op that no region supports.
  net.add("Asinh");
  net.add("Add", {before});
  some();
  return net.finish();
}

TEST(OpenvinoRegions, PartsAroundWhatItDoesNotCompute) {
  const Totals totals = check_cases("openvino", 73, 10, interrupted, kOfNetworks);
  EXPECT_EQ(totals.answered, 10);
  EXPECT_GE(totals.candidates, 20);
  EXPECT_EQ(totals.largest, 5U);
  ASSERT_EQ(totals.refusals.size(), 1U);
  EXPECT_EQ(totals.refusals.begin()->first, "Asinh: OpenVINO regions do not contain this op");
}

}  // namespace
}  // namespace tessera
