// Products and convolutions of bytes, of odd sizes, with zero points on both sides: every element
// must equal that of the reference.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"
#include "random_nodes.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

int64_t odd_size(Dice& dice) {
  const Sizes sizes = {1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 33, 48, 64, 65, 100, 130};
  return dice.pick(sizes);
}

DataType byte_type(Dice& dice) { return dice.one_in(2) ? DataType::Int8 : DataType::UInt8; }

Tensor bytes(Dice& dice, DataType type, const Sizes& dims) {
  Tensor made = any_elements(dice, type, dims);
  // Extreme elements have the largest products.
  if (dice.one_in(6)) {
    const std::span<char> all(static_cast<char*>(made.mutable_data()),
                              static_cast<size_t>(made.bytes()));
    const bool is_signed = type == DataType::Int8;
    for (char& byte : all) {
      const int extreme = dice.one_in(2) ? (is_signed ? -128 : 0) : (is_signed ? 127 : 255);
      byte = static_cast<char>(static_cast<uint8_t>(extreme));
    }
  } else if (dice.one_in(4)) {
    // As quantisation with a reduced range makes them.
    for (int64_t index = 0; index < made.bytes(); ++index) {
      auto* const byte = static_cast<int8_t*>(made.mutable_data()) + index;
      *byte = static_cast<int8_t>(*byte / 2);
    }
  }
  return made;
}

// Whether scales and zero points are constants, as in most models, is drawn for each.
struct QuantizedGraph {
  Dice& dice;
  RandomGraph made;
  std::vector<std::string> inputs = {};

  QuantizedGraph(Dice& given, const ops::Registry& registry, int opset)
      : dice(given), made(registry, opset) {}

  QuantizedGraph& left_out() {
    inputs.emplace_back();
    return *this;
  }
  QuantizedGraph& add(const std::string& name, Tensor tensor) {
    made.operand(dice, name, std::move(tensor));
    inputs.push_back(name);
    return *this;
  }
  QuantizedGraph& add_fed(const std::string& name, Tensor tensor) {
    made.input(name, std::move(tensor));
    inputs.push_back(name);
    return *this;
  }
  QuantizedGraph& add_constant(const std::string& name, Tensor tensor) {
    made.constant(name, std::move(tensor));
    inputs.push_back(name);
    return *this;
  }
  // One scale, or one for each column.
  QuantizedGraph& scale(const std::string& name, int64_t columns = 0) {
    const Sizes dims = columns > 0 && dice.one_in(2) ? Sizes{columns} : Sizes{};
    return add(name, dice.tensor(dims, 0.001F, 0.02F));
  }
  QuantizedGraph& zero(const std::string& name, DataType type, int64_t columns = 0) {
    const Sizes dims = columns > 0 && dice.one_in(2) ? Sizes{columns} : Sizes{};
    return add(name, any_elements(dice, type, dims));
  }
  QuantizedGraph& zero_or_none(const std::string& name, DataType type, int64_t columns = 0) {
    return dice.one_in(3) ? left_out() : zero(name, type, columns);
  }
  RandomGraph ending(const std::string& op, Attributes attributes = {}) {
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    made.node("y", op, inputs, std::move(attributes));
    return made.ending_in("y");
  }
};

struct ProductSizes {
  int64_t columns = 0;  // 0: the right side is a vector
  Sizes left;
  Sizes right;
};

ProductSizes product_sizes(Dice& dice) {
  const int64_t depth = dice.one_in(40)   ? 0
                        : dice.one_in(12) ? dice.whole(500, 3000)
                                          : odd_size(dice);
  const int64_t batch_axes = dice.one_in(2) ? 0 : dice.whole(1, 3);
  const MatMulShapes shapes =
      random_mat_mul_shapes(dice, odd_size(dice), depth, odd_size(dice), batch_axes, 3);
  return {.columns = shapes.right.size() > 1 ? shapes.right.back() : 0,
          .left = shapes.left,
          .right = shapes.right};
}

RandomGraph integer_product(Dice& dice, const ops::Registry& registry) {
  const ProductSizes sizes = product_sizes(dice);
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  QuantizedGraph graph(dice, registry, 13);
  graph.add_fed("a", bytes(dice, left, sizes.left)).add("b", bytes(dice, right, sizes.right));
  graph.zero_or_none("az", left).zero_or_none("bz", right, sizes.columns);
  return graph.ending("MatMulInteger");
}

RandomGraph quantized_product(Dice& dice, const ops::Registry& registry) {
  const ProductSizes sizes = product_sizes(dice);
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  QuantizedGraph graph(dice, registry, 13);
  graph.add_fed("a", bytes(dice, left, sizes.left)).scale("as").zero("az", left);
  graph.add("b", bytes(dice, right, sizes.right)).scale("bs", sizes.columns);
  graph.zero("bz", right, sizes.columns);
  graph.scale("ys").zero("yz", byte_type(dice));
  return graph.ending("QLinearMatMul");
}

RandomGraph product_to_float(Dice& dice, const ops::Registry& registry) {
  const ProductSizes sizes = product_sizes(dice);
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  QuantizedGraph graph(dice, registry, 13);
  graph.add_fed("a", bytes(dice, left, sizes.left)).add("b", bytes(dice, right, sizes.right));
  graph.scale("as").scale("bs", sizes.columns).zero_or_none("az", left);
  graph.zero_or_none("bz", right, sizes.columns);
  if (dice.one_in(2) && sizes.columns > 0) graph.add("bias", dice.tensor({sizes.columns}));
  return graph.ending("com.microsoft.MatMulIntegerToFloat");
}

RandomGraph dynamic_product(Dice& dice, const ops::Registry& registry) {
  const ProductSizes sizes = product_sizes(dice);
  const DataType right = byte_type(dice);
  QuantizedGraph graph(dice, registry, 13);
  graph.add_fed("a", dice.tensor(sizes.left)).add("b", bytes(dice, right, sizes.right));
  graph.scale("bs", sizes.columns).zero_or_none("bz", right, sizes.columns);
  if (dice.one_in(2) && sizes.columns > 0) graph.add("bias", dice.tensor({sizes.columns}));
  return graph.ending("com.microsoft.DynamicQuantizeMatMul");
}

RandomGraph quantized_gemm(Dice& dice, const ops::Registry& registry) {
  const int64_t rows = odd_size(dice);
  const int64_t depth = odd_size(dice);
  const int64_t columns = odd_size(dice);
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  const bool is_left_turned = dice.one_in(3);
  const bool is_right_turned = dice.one_in(2);
  QuantizedGraph graph(dice, registry, 13);
  graph.add_fed("a", bytes(dice, left, is_left_turned ? Sizes{depth, rows} : Sizes{rows, depth}));
  graph.scale("as").zero("az", left);
  graph.add("b",
            bytes(dice, right, is_right_turned ? Sizes{columns, depth} : Sizes{depth, columns}));
  graph.scale("bs", columns).zero("bz", right, columns);
  if (dice.one_in(2)) {
    graph.add("c", whole_numbers(dice, DataType::Int32, {columns}, 10000));
  } else {
    graph.left_out();
  }
  if (dice.one_in(2)) graph.scale("ys").zero("yz", byte_type(dice));
  Attributes attributes = attributes_of({{"transA", is_left_turned}, {"transB", is_right_turned}});
  attributes.set("alpha", dice.one_in(2) ? 1.0F : dice.number(0.25F, 2));
  return graph.ending("com.microsoft.QGemm", attributes);
}

RandomGraph dynamic_bytes(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  Sizes dims = any_dims(dice, dice.whole(0, 3), 40);
  if (dice.one_in(10)) dims = {dice.whole(20000, 90000)};
  made.input("x", dice.one_in(4) ? dice.tensor(dims, 0.5F, 1) : dice.tensor(dims));
  made.node("node", "DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"});
  return made.ending_in("y", "scale", "zero");
}

// --- Convolutions --------------------------------------------------------------------------------

struct ConvolutionSizes {
  Sizes input;
  Sizes weights;
  Attributes attributes;
};

ConvolutionSizes convolution_sizes(Dice& dice, bool is_depthwise) {
  const int64_t rank = dice.one_in(4) ? 1 : 2;
  const int64_t groups = is_depthwise ? dice.whole(2, 70) : dice.one_in(2) ? 1 : dice.whole(1, 4);
  const int64_t from = is_depthwise ? 1 : dice.one_in(3) ? dice.whole(1, 70) : dice.whole(1, 9);
  const int64_t to = is_depthwise ? 1 : dice.one_in(3) ? dice.whole(1, 70) : dice.whole(1, 9);
  ConvolutionSizes sizes = {
      .input = {dice.whole(1, 2), groups * from}, .weights = {groups * to, from}, .attributes = {}};
  Sizes strides;
  Sizes dilations;
  Sizes pads;
  const bool is_pointwise = !is_depthwise && dice.one_in(5);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t kernel = is_pointwise ? 1 : dice.whole(1, 4);
    sizes.weights.push_back(kernel);
    strides.push_back(is_pointwise ? 1 : dice.whole(1, 3));
    dilations.push_back(dice.one_in(3) ? dice.whole(1, 3) : 1);
    sizes.input.push_back((kernel - 1) * dilations.back() + dice.whole(1, 12));
  }
  for (int64_t side = 0; side < 2 * rank; ++side) {
    pads.push_back(is_pointwise ? 0 : dice.whole(0, dice.one_in(8) ? 6 : 2));
  }
  sizes.attributes =
      attributes_of({{"group", groups}, {"strides", strides}, {"dilations", dilations}});
  if (dice.one_in(2)) {
    sizes.attributes.set("kernel_shape", Sizes(sizes.weights.begin() + 2, sizes.weights.end()));
  }
  if (dice.one_in(4)) {
    const std::vector<std::string> words = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    sizes.attributes.set("auto_pad", dice.pick(words));
  } else {
    sizes.attributes.set("pads", pads);
  }
  return sizes;
}

RandomGraph integer_convolution(Dice& dice, const ops::Registry& registry) {
  const ConvolutionSizes sizes = convolution_sizes(dice, dice.one_in(3));
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  QuantizedGraph graph(dice, registry, 13);
  graph.add_fed("x", bytes(dice, left, sizes.input));
  graph.add_constant("w", bytes(dice, right, sizes.weights));
  graph.zero_or_none("xz", left).zero_or_none("wz", right, sizes.weights[0]);
  return graph.ending("ConvInteger", sizes.attributes);
}

RandomGraph quantized_convolution(Dice& dice, const ops::Registry& registry) {
  const ConvolutionSizes sizes = convolution_sizes(dice, dice.one_in(3));
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  QuantizedGraph graph(dice, registry, 13);
  const bool is_channels_last = dice.one_in(4);
  Sizes input = sizes.input;
  if (is_channels_last) std::rotate(input.begin() + 1, input.begin() + 2, input.end());
  graph.add_fed("x", bytes(dice, left, input)).scale("xs").zero("xz", left);
  graph.add_constant("w", bytes(dice, right, sizes.weights));
  graph.scale("ws", sizes.weights[0]).zero("wz", right, sizes.weights[0]);
  graph.scale("ys").zero("yz", byte_type(dice));
  if (dice.one_in(2)) {
    graph.add("b", whole_numbers(dice, DataType::Int32, {sizes.weights[0]}, 10000));
  }
  if (!is_channels_last) return graph.ending("QLinearConv", sizes.attributes);
  Attributes attributes = sizes.attributes;
  attributes.set("channels_last", int64_t{1});
  return graph.ending("com.microsoft.QLinearConv", attributes);
}

// --- Regions -------------------------------------------------------------------------------------

// A DequantizeLinear of bytes `name`; its result is `name` + "_real".
std::string dequantized(Dice& dice, RandomGraph& made, const std::string& name, DataType type,
                        int64_t columns, int64_t axis) {
  const bool is_by_column = columns > 0 && dice.one_in(2);
  const Sizes dims = is_by_column ? Sizes{columns} : Sizes{};
  made.constant(name + "_scale", dice.tensor(dims, 0.001F, 0.02F));
  std::vector<std::string> inputs = {name, name + "_scale"};
  if (dice.one_in(2) || type == DataType::UInt8) {
    made.constant(name + "_zero", any_elements(dice, type, dims));
    inputs.push_back(name + "_zero");
  }
  Attributes attributes;
  if (is_by_column) attributes.set("axis", axis);
  made.node(name + "_real", "DequantizeLinear", inputs, attributes);
  return name + "_real";
}

// Appends an activation, a QuantizeLinear, both or none, to "y".
RandomGraph region_ending(Dice& dice, RandomGraph& made) {
  std::string last = "y";
  if (dice.one_in(3)) {
    made.node("relu", "Relu", {last});
    last = "relu";
  } else if (dice.one_in(3)) {
    made.constant("low", dice.tensor({}, -0.5F, 0)).constant("high", dice.tensor({}, 0.1F, 1));
    made.node("clip", "Clip", {last, "low", "high"});
    last = "clip";
  }
  if (dice.one_in(4)) return made.ending_in(last);
  const DataType type = byte_type(dice);
  made.constant("result_scale", dice.tensor({}, 0.01F, 0.05F));
  made.constant("result_zero", any_elements(dice, type, {}));
  made.node("q", "QuantizeLinear", {last, "result_scale", "result_zero"});
  return made.ending_in("q");
}

// A bias as quantisation writes it, with a scale of its own, or of real numbers.
void add_region_bias(Dice& dice, RandomGraph& made, int64_t columns,
                     std::vector<std::string>& inputs) {
  if (dice.one_in(3)) return;
  if (dice.one_in(3)) {
    made.constant("bias", dice.tensor({columns}));
    inputs.emplace_back("bias");
    return;
  }
  made.constant("bias", whole_numbers(dice, DataType::Int32, {columns}, 3000));
  const bool has_one = dice.one_in(2);
  made.constant("bias_scale", dice.tensor(has_one ? Sizes{} : Sizes{columns}, 1e-5F, 1e-3F));
  Attributes attributes;
  if (!has_one) attributes.set("axis", int64_t{0});
  made.node("bias_real", "DequantizeLinear", {"bias", "bias_scale"}, attributes);
  inputs.emplace_back("bias_real");
}

RandomGraph product_region(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  if (dice.one_in(2)) {
    ProductSizes sizes = product_sizes(dice);
    const auto axis = static_cast<int64_t>(sizes.right.size()) - 1;
    made.input("a", bytes(dice, left, sizes.left));
    made.operand(dice, "b", bytes(dice, right, sizes.right));
    made.node("y", "MatMul",
              {dequantized(dice, made, "a", left, 0, 0),
               dequantized(dice, made, "b", right, axis > 0 ? sizes.columns : 0, axis)});
    return region_ending(dice, made);
  }
  const int64_t rows = odd_size(dice);
  const int64_t depth = odd_size(dice);
  const int64_t columns = odd_size(dice);
  const bool is_turned = dice.one_in(2);
  made.input("a", bytes(dice, left, {rows, depth}));
  made.constant("b", bytes(dice, right, is_turned ? Sizes{columns, depth} : Sizes{depth, columns}));
  std::vector<std::string> inputs = {
      dequantized(dice, made, "a", left, 0, 0),
      dequantized(dice, made, "b", right, columns, is_turned ? 0 : 1)};
  add_region_bias(dice, made, columns, inputs);
  made.node("y", "Gemm", inputs, attributes_of({{"transB", is_turned}}));
  return region_ending(dice, made);
}

RandomGraph convolution_region(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const ConvolutionSizes sizes = convolution_sizes(dice, dice.one_in(3));
  const DataType left = byte_type(dice);
  const DataType right = byte_type(dice);
  made.input("a", bytes(dice, left, sizes.input));
  made.constant("b", bytes(dice, right, sizes.weights));
  std::vector<std::string> inputs = {dequantized(dice, made, "a", left, 0, 0),
                                     dequantized(dice, made, "b", right, sizes.weights[0], 0)};
  add_region_bias(dice, made, sizes.weights[0], inputs);
  made.node("y", "Conv", inputs, sizes.attributes);
  return region_ending(dice, made);
}

// As quantize_dynamic() of onnxruntime writes it.
RandomGraph dynamic_region(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const bool is_convolution = dice.one_in(2);
  const ProductSizes product = product_sizes(dice);
  const ConvolutionSizes convolution = convolution_sizes(dice, dice.one_in(3));
  const DataType right = byte_type(dice);
  made.input("x", dice.tensor(is_convolution ? convolution.input : product.left));
  made.constant("w", bytes(dice, right, is_convolution ? convolution.weights : product.right));
  const int64_t columns = is_convolution ? convolution.weights[0] : product.columns;
  made.constant("w_zero", any_elements(dice, right, {}));
  made.node("quantized", "DynamicQuantizeLinear", {"x"}, {"q", "q_scale", "q_zero"});
  made.node("sums", is_convolution ? "ConvInteger" : "MatMulInteger",
            {"q", "w", "q_zero", "w_zero"}, is_convolution ? convolution.attributes : Attributes());
  made.node("real", "Cast", {"sums"}, attributes_of({{"to", 1}}));
  Sizes by_column = {columns};
  if (is_convolution) {
    by_column = Sizes(convolution.input.size() - 1, 1);
    by_column[0] = columns;
  }
  const bool is_one = columns == 0 || dice.one_in(2);
  made.constant("w_scale", dice.tensor(is_one ? Sizes{} : by_column, 0.001F, 0.02F));
  made.node("scale", "Mul", {"q_scale", "w_scale"});
  made.node("y", "Mul",
            dice.one_in(2) ? std::vector<std::string>{"real", "scale"}
                           : std::vector<std::string>{"scale", "real"});
  if (columns == 0 || dice.one_in(3)) return made.ending_in("y");
  made.constant("bias", dice.tensor(by_column));
  made.node("z", "Add", {"y", "bias"});
  return made.ending_in("z");
}

TEST(NativeQuantized, IntegerProduct) {
  EXPECT_GE(check_each_target(401, 900, integer_product).answered, 900);
}
TEST(NativeQuantized, QuantizedProduct) {
  EXPECT_GE(check_each_target(402, 900, quantized_product).answered, 900);
}
TEST(NativeQuantized, ProductToFloat) {
  EXPECT_GE(check_each_target(403, 600, product_to_float).answered, 600);
}
TEST(NativeQuantized, DynamicProduct) {
  EXPECT_GE(check_each_target(404, 600, dynamic_product).answered, 600);
}
TEST(NativeQuantized, Gemm) {
  EXPECT_GE(check_each_target(405, 600, quantized_gemm).answered, 600);
}
TEST(NativeQuantized, DynamicBytes) {
  EXPECT_GE(check_each_target(406, 300, dynamic_bytes).answered, 300);
}
TEST(NativeQuantized, IntegerConvolution) {
  EXPECT_GE(check_each_target(407, 900, integer_convolution).answered, 900);
}
TEST(NativeQuantized, QuantizedConvolution) {
  EXPECT_GE(check_each_target(408, 900, quantized_convolution).answered, 900);
}

// The reference rounds each real number to float32, so a number near the middle between two
// integers may become either; and sums of rounded numbers have errors.
const Tolerance kRegionTolerance = {.relative = 1e-5, .of_largest = 5e-5, .quanta = 1};

TEST(NativeQuantized, ProductRegion) {
  const Totals totals = check_each_target(409, 450, product_region, kRegionTolerance);
  EXPECT_GE(totals.answered, 450);
  EXPECT_EQ(totals.largest, 6U) << "with a bias, an activation and a QuantizeLinear";
}
TEST(NativeQuantized, ConvolutionRegion) {
  const Totals totals = check_each_target(410, 450, convolution_region, kRegionTolerance);
  EXPECT_GE(totals.answered, 450);
  EXPECT_EQ(totals.largest, 6U) << "with a bias, an activation and a QuantizeLinear";
}
TEST(NativeQuantized, DynamicRegion) {
  const Totals totals = check_each_target(411, 300, dynamic_region, kRegionTolerance);
  EXPECT_GE(totals.answered, 300);
  EXPECT_EQ(totals.largest, 4U) << "with a scale and a bias";
}

}  // namespace
}  // namespace tessera
