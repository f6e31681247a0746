// ONNX's experiments of operator sets 1 to 9, which converters from Core ML and PyTorch wrote. ONNX
// has removed them from its history; their meaning here is that of ONNX Runtime, and for
// ConstantFill that of ONNX 1.0.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "import/onnx/upgrade/upgrade.h"
#include "import/onnx/wire/element_types.h"
#include "onnx.pb.h"
#include "ops/convert_elements.h"

namespace tessera::onnx_import {
namespace {

using ops::AttributeSchema;
using ops::Op;

constexpr int kFirstNumpyOpset = 7;  // before, arithmetic broadcasts only if an attribute says so
constexpr int kChannelAxis = 1;

// --- Definitions ---------------------------------------------------------------------------------

Op define_unary(std::vector<AttributeSchema> attributes) {
  return {.inputs = {{"input", "T"}},
          .outputs = {{"output", "T"}},
          .attributes = std::move(attributes)};
}

Op define_affine(const OldOp& /*old*/, const Op& /*successor*/) {
  return define_unary(
      {{"alpha", AttributeKind::Float, 1.0F}, {"beta", AttributeKind::Float, 0.0F}});
}

Op define_constant_fill(const OldOp& /*old*/, const Op& /*successor*/) {
  Op op = define_unary({{"value", AttributeKind::Float, 0.0F},
                        {"dtype", AttributeKind::Int, int64_t{onnx::TensorProto::FLOAT}},
                        optional_attribute("shape", AttributeKind::Ints),
                        optional_attribute("extra_shape", AttributeKind::Ints),
                        {"input_as_shape", AttributeKind::Int, int64_t{0}}});
  op.inputs.front().arity = ops::Arity::Optional;
  return op;
}

Op define_crop(const OldOp& /*old*/, const Op& /*successor*/) {
  return define_unary({required_attribute("border", AttributeKind::Ints),
                       optional_attribute("scale", AttributeKind::Ints)});
}

Op define_dynamic_slice(const OldOp& /*old*/, const Op& /*successor*/) {
  Op op = define_unary({});
  op.inputs = {
      {"data", "T"}, {"starts", "Tind"}, {"ends", "Tind"}, {"axes", "Tind", ops::Arity::Optional}};
  return op;
}

Op define_image_scaler(const OldOp& /*old*/, const Op& /*successor*/) {
  return define_unary(
      {required_attribute("bias", AttributeKind::Floats), {"scale", AttributeKind::Float, 1.0F}});
}

Op define_mean_variance(const OldOp& /*old*/, const Op& /*successor*/) {
  return define_unary({{"across_channels", AttributeKind::Int, int64_t{0}},
                       {"normalize_variance", AttributeKind::Int, int64_t{1}}});
}

// ParametricSoftplus and ScaledTanh.
Op define_scaled(const OldOp& /*old*/, const Op& /*successor*/) {
  return define_unary({required_attribute("alpha", AttributeKind::Float),
                       required_attribute("beta", AttributeKind::Float)});
}

Op define_scale(const OldOp& /*old*/, const Op& /*successor*/) {
  return define_unary({{"scale", AttributeKind::Float, 1.0F}});
}

Op define_thresholded_relu(const OldOp& /*old*/, const Op& /*successor*/) {
  return define_unary({{"alpha", AttributeKind::Float, 1.0F}});
}

// --- Arithmetic with constants -------------------------------------------------------------------

// A constant of the element type of the node's input, if that is floating-point, as it must be.
ValueId add_numbers(Conversion& conversion, const std::string& suffix, std::vector<int64_t> dims,
                    const std::vector<float>& numbers) {
  DataType type = conversion.insertions().element_of(conversion.node().inputs[0]);
  if (!is_floating(type)) type = DataType::Float32;
  Tensor tensor(type, std::move(dims));
  ops::convert_elements(DataType::Float32, numbers.data(), tensor.type(), tensor.mutable_data(),
                        tensor.elements());
  return conversion.add_constant(suffix, std::move(tensor));
}

ValueId add_number(Conversion& conversion, const std::string& suffix, float number) {
  return add_numbers(conversion, suffix, {}, {number});
}

// The attributes of arithmetic with a smaller second input.
Attributes broadcasting(const Conversion& conversion) {
  Attributes attributes;
  if (conversion.opset() < kFirstNumpyOpset) attributes.set("broadcast", int64_t{1});
  return attributes;
}

// The node's input, multiplied by a number.
ValueId add_product(Conversion& conversion, float factor) {
  const ValueId number = add_number(conversion, "factor", factor);
  return conversion.add_node("product", "Mul", {conversion.node().inputs[0], number},
                             broadcasting(conversion));
}

// The node becomes `op` of these two values.
void become_arithmetic(Conversion& conversion, const std::string& op, ValueId left, ValueId right) {
  conversion.node().inputs = {left, right};
  conversion.node().attributes = broadcasting(conversion);
  conversion.become(op);
}

// --- Conversions ---------------------------------------------------------------------------------

// alpha * x + beta
void convert_affine(Conversion& conversion) {
  const float beta = conversion.node().attributes.get_float("beta");
  const ValueId product = add_product(conversion, conversion.node().attributes.get_float("alpha"));
  become_arithmetic(conversion, "Add", product, add_number(conversion, "beta", beta));
}

// scale * x
void convert_scale(Conversion& conversion) {
  const float scale = conversion.node().attributes.get_float("scale");
  become_arithmetic(conversion, "Mul", conversion.node().inputs[0],
                    add_number(conversion, "scale", scale));
}

// alpha * function(beta * x)
void convert_scaled(Conversion& conversion, const std::string& function) {
  const float alpha = conversion.node().attributes.get_float("alpha");
  const float beta = conversion.node().attributes.get_float("beta");
  const ValueId value =
      conversion.add_node("function", function, {add_product(conversion, beta)}, {});
  become_arithmetic(conversion, "Mul", value, add_number(conversion, "alpha", alpha));
}

void convert_parametric_softplus(Conversion& conversion) { convert_scaled(conversion, "Softplus"); }

void convert_scaled_tanh(Conversion& conversion) { convert_scaled(conversion, "Tanh"); }

// scale * x + the bias of the channel
void convert_image_scaler(Conversion& conversion) {
  const auto bias = *conversion.node().attributes.find_floats("bias");
  const ValueId product = add_product(conversion, conversion.node().attributes.get_float("scale"));
  const auto channels = static_cast<int64_t>(bias.size());
  if (conversion.opset() < kFirstNumpyOpset) {
    become_arithmetic(conversion, "Add", product,
                      add_numbers(conversion, "bias", {channels}, bias));
    conversion.node().attributes.set("axis", int64_t{kChannelAxis});
    return;
  }
  become_arithmetic(conversion, "Add", product,
                    add_numbers(conversion, "bias", {channels, 1, 1}, bias));
}

std::string numbers_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

// `border` is left, top, right, bottom; `scale`, if given, is the height and width of the result,
// instead of right and bottom.
void convert_crop(Conversion& conversion) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  Attributes& attributes = conversion.node().attributes;
  const std::vector<int64_t> border = *attributes.find_ints("border");
  const std::vector<int64_t>* scale = attributes.find_ints("scale");
  const auto is_size = [](int64_t size) { return size >= 0 && size <= kEnd / 2; };
  if (border.size() != 4 || !std::ranges::all_of(border, is_size)) {
    conversion.fail("expected 4 sizes in 'border' (left, top, right, bottom), found " +
                    numbers_text(border));
  }
  std::vector<int64_t> ends = {border[3] > 0 ? -border[3] : kEnd,
                               border[2] > 0 ? -border[2] : kEnd};
  if (scale != nullptr) {
    if (scale->size() != 2 || !std::ranges::all_of(*scale, is_size)) {
      conversion.fail("expected a height and a width in 'scale', found " + numbers_text(*scale));
    }
    ends = {border[1] + (*scale)[0], border[0] + (*scale)[1]};
  }
  attributes = {};
  attributes.set("axes", std::vector<int64_t>{2, 3});
  attributes.set("starts", std::vector<int64_t>{border[1], border[0]});
  attributes.set("ends", std::move(ends));
  conversion.become("Slice");
}

void convert_dynamic_slice(Conversion& conversion) {
  constexpr int kFirstInputsOpset = 10;
  conversion.become("Slice", kFirstInputsOpset);
}

void convert_thresholded_relu(Conversion& conversion) {
  constexpr int kFirstOpset = 10;
  conversion.become("ThresholdedRelu", kFirstOpset);
}

// Without the variance, the mean is only subtracted.
void convert_mean_variance(Conversion& conversion) {
  constexpr int kFirstOpset = 9;
  Node& node = conversion.node();
  std::vector<int64_t> axes = {0, 2, 3};
  if (node.attributes.get_int("across_channels") != 0) axes = {0, 1, 2, 3};
  const bool has_variance = node.attributes.get_int("normalize_variance") != 0;
  Attributes attributes;
  attributes.set("axes", std::move(axes));
  node.attributes = {};
  if (has_variance) {
    node.attributes = std::move(attributes);
    return conversion.become("MeanVarianceNormalization", kFirstOpset);
  }
  const ValueId input = node.inputs[0];
  node.inputs.push_back(conversion.add_node("mean", "ReduceMean", {input}, std::move(attributes)));
  conversion.become("Sub", kFirstNumpyOpset);
}

// The shape that ConstantFill fills: its attribute, the elements of its input, or the input's own;
// with further sizes behind.
ValueId add_shape(Conversion& conversion) {
  const Node& node = conversion.node();
  const auto add_sizes = [&](const char* attribute) {
    const std::vector<int64_t>* sizes = node.attributes.find_ints(attribute);
    const std::vector<int64_t> given = sizes == nullptr ? std::vector<int64_t>{} : *sizes;
    const std::vector<int64_t> dims = {static_cast<int64_t>(given.size())};
    return conversion.add_constant(attribute, Tensor::from<int64_t>(DataType::Int64, dims, given));
  };
  if (node.inputs.empty()) return add_sizes("shape");
  const ValueId input = node.inputs[0];
  Attributes to_int64;
  to_int64.set("to", int64_t{onnx::TensorProto::INT64});
  const bool is_shape = node.attributes.get_int("input_as_shape") != 0;
  const ValueId shape = is_shape ? conversion.add_node("sizes", "Cast", {input}, to_int64)
                                 : conversion.add_node("sizes", "Shape", {input}, {});
  if (!node.attributes.has("extra_shape")) return shape;
  Attributes along_first;
  along_first.set("axis", int64_t{0});
  return conversion.add_node("all_sizes", "Concat", {shape, add_sizes("extra_shape")}, along_first);
}

void convert_constant_fill(Conversion& conversion) {
  constexpr int kFirstOpset = 9;
  Node& node = conversion.node();
  const int64_t type = node.attributes.get_int("dtype");
  const std::optional<DataType> element = data_type_of(static_cast<int>(type));
  if (!element || *element == DataType::String) {
    conversion.fail_unsupported("elements of " + onnx_type_name(static_cast<int>(type)) +
                                " are not supported");
  }
  const float number = node.attributes.get_float("value");
  Tensor value(*element, {1});
  ops::convert_elements(DataType::Float32, &number, *element, value.mutable_data(), 1);
  node.inputs = {add_shape(conversion)};
  node.attributes = {};
  node.attributes.set("value", std::move(value));
  conversion.become("ConstantOfShape", kFirstOpset);
}

// --- The table -----------------------------------------------------------------------------------

constexpr OldOp kExperiments[] = {
    {"Affine", 1, 10, "Add", define_affine, convert_affine, true},
    {"ConstantFill", 1, 10, "ConstantOfShape", define_constant_fill, convert_constant_fill, true},
    {"Crop", 1, 10, "Slice", define_crop, convert_crop, true},
    {"DynamicSlice", 1, 10, "Slice", define_dynamic_slice, convert_dynamic_slice, true},
    {"ImageScaler", 1, 10, "Add", define_image_scaler, convert_image_scaler, true},
    {"MeanVarianceNormalization", 1, 9, "MeanVarianceNormalization", define_mean_variance,
     convert_mean_variance, true},
    {"ParametricSoftplus", 1, 10, "Softplus", define_scaled, convert_parametric_softplus, true},
    {"Scale", 1, 10, "Mul", define_scale, convert_scale, true},
    {"ScaledTanh", 1, 10, "Tanh", define_scaled, convert_scaled_tanh, true},
    {"ThresholdedRelu", 1, 10, "ThresholdedRelu", define_thresholded_relu, convert_thresholded_relu,
     true},
};

}  // namespace

std::span<const OldOp> experiments() { return kExperiments; }

}  // namespace tessera::onnx_import
