// QuantizeLinear and DequantizeLinear, of ONNX and of com.microsoft: real numbers as integers or
// small floats with scales and zero points.
// https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
#include <array>
#include <string>

#include "base/tensor/small_types.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/onnx_types.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

TypeVariable quantized_types(const char* name) {
  return {name, kQuantizedTypes, small_quantized_types()};
}

TypeVariable scale_types(const char* name, TypeSet types) {
  return {name, types, {{24, kPowerType}}};
}

// The element type that an attribute names; nullopt if it is left out or 0.
std::optional<DataType> named_type(const InferContext& context, const std::string& attribute,
                                   TypeSet types) {
  const int64_t* const number = context.node().attributes.find_int(attribute);
  if (number == nullptr || *number == 0) return std::nullopt;
  const OnnxType* const found = find_onnx_type(*number);
  const std::string where = "attribute '" + attribute + "': ";
  if (found == nullptr) {
    context.fail(where + "expected the number of an element type, found " +
                 std::to_string(*number));
  }
  if (found->type == DataType::Undefined) {
    context.fail_unsupported(where + "elements of " + std::string(found->name) +
                             " have no kernels");
  }
  if (!types.contains(found->type)) {
    context.fail(where + "expected " + types.text() + ", found " + std::string(found->name));
  }
  return found->type;
}

void infer_quantize(InferContext& context) {
  check_scales(context);
  const TypeSet types = quantized_types("T2").types_in(context.version());
  const std::optional<DataType> named = named_type(context, "output_dtype", types);
  named_type(context, "precision", kScaleTypes);
  DataType type = named.value_or(DataType::UInt8);
  if (context.has_input(2)) {
    type = context.element(2);
    if (named && type != DataType::Undefined && *named != type) {
      context.fail_input(2, "expected " + std::string(name(*named)) +
                                ", as attribute 'output_dtype' says, found " +
                                std::string(name(type)));
    }
  }
  context.set_output(0, type, context.input(0).type.shape);
}

// The type of the quotient: that of the scale, if the node names none. com.microsoft names none,
// because before it had float16, quotients were float32.
DataType precision_of(const Node& node, DataType scale) {
  if (!node.domain.empty()) return DataType::Float32;
  const int64_t* const number = node.attributes.find_int("precision");
  const DataType type = number == nullptr || *number == 0 ? scale : find_onnx_type(*number)->type;
  return is_floating(type) ? type : DataType::Float32;
}

float rounded_to(DataType precision, float quotient) {
  if (precision == DataType::Float16) return static_cast<float>(Float16(quotient));
  if (precision == DataType::BFloat16) return static_cast<float>(BFloat16(quotient));
  return quotient;
}

// Sets each element of the output to store(quotient, zero point).
template <class X, class Y, class Store>
void quantize(const KernelCall& call, const Store& store) {
  const X* const input = call.inputs[0].as<X>().data();
  const std::pmr::vector<double> scales = numbers_of(call.inputs[1], call.scratch);
  const bool has_zeros = call.has_input(2);
  const std::pmr::vector<double> zeros =
      numbers_of(has_zeros ? call.inputs[2] : TensorView{}, call.scratch);
  auto* const output = static_cast<Y*>(call.outputs[0].data);
  const DataType precision = precision_of(call.node, call.inputs[1].type);
  const ScaleLoop loop = scales_of(call);
  const auto run = [&](int64_t begin, int64_t count, int64_t scale, int64_t step) {
    for (int64_t index = 0; index < count; ++index) {
      const auto at = static_cast<size_t>(scale + index * step);
      const float quotient =
          static_cast<float>(to_double(input[begin + index])) / static_cast<float>(scales[at]);
      output[begin + index] = store(rounded_to(precision, quotient), has_zeros ? zeros[at] : 0.0);
    }
  };
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain,
                         [&](int64_t begin, int64_t end) { loop.for_each_run(begin, end, run); });
}

template <class X>
void quantize(const KernelCall& call) {
  const DataType type = call.outputs[0].type;
  if (is_small_float(type)) {
    const int64_t* const saturate = call.node.attributes.find_int("saturate");
    const SmallFloatRounding rounding = {.saturates = saturate == nullptr || *saturate != 0};
    // A zero of the other sign would make a negative zero positive.
    return quantize<X, uint8_t>(call, [&](double quotient, double zero) {
      return small_float_bits(type, zero == 0 ? quotient : quotient + zero, rounding);
    });
  }
  if (is_small(type)) {
    const IntegerRange range = range_of(type);
    return quantize<X, int8_t>(call, [&](double quotient, double zero) {
      return static_cast<int8_t>(quantized_in(range, quotient, static_cast<int>(zero)));
    });
  }
  visit_integer(type, [&](auto output) {
    using Y = typename decltype(output)::type;
    if constexpr (sizeof(Y) <= 2) {
      quantize<X, Y>(call, [](double quotient, double zero) {
        return quantized<Y>(quotient, static_cast<Y>(zero));
      });
    }
  });
}

void run_quantize(const KernelCall& call) {
  const DataType type = call.inputs[0].type;
  if (type == DataType::Int32) return quantize<int32_t>(call);
  visit_floating(type, [&](auto input) { quantize<typename decltype(input)::type>(call); });
}

void infer_dequantize(InferContext& context) {
  check_scales(context);
  const std::optional<DataType> named = named_type(context, "output_dtype", kScaleTypes);
  if (!named && context.element(1) == DataType::Float8E8M0) {
    context.fail_input(1,
                       "expected attribute 'output_dtype' beside scales of float8e8m0, which "
                       "cannot be the type of the output, found none");
  }
  context.set_output(0, named.value_or(context.element(1)), context.input(0).type.shape);
}

// Sets each element of the output from number(index), that of the input.
template <class Y, class Number>
void dequantize(const KernelCall& call, const Number& number) {
  const std::pmr::vector<double> scales = numbers_of(call.inputs[1], call.scratch);
  const bool has_zeros = call.has_input(2);
  const std::pmr::vector<double> zeros =
      numbers_of(has_zeros ? call.inputs[2] : TensorView{}, call.scratch);
  Y* const output = call.outputs[0].as<Y>().data();
  const ScaleLoop loop = scales_of(call);
  const auto run = [&](int64_t begin, int64_t count, int64_t scale, int64_t step) {
    for (int64_t index = 0; index < count; ++index) {
      const auto at = static_cast<size_t>(scale + index * step);
      const double steps = number(begin + index) - (has_zeros ? zeros[at] : 0.0);
      output[begin + index] = from_double<Y>(steps * scales[at]);
    }
  };
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain,
                         [&](int64_t begin, int64_t end) { loop.for_each_run(begin, end, run); });
}

template <class Y>
void dequantize(const KernelCall& call) {
  const DataType type = call.inputs[0].type;
  if (is_small(type)) {
    const auto* const bytes = static_cast<const uint8_t*>(call.inputs[0].data);
    if (!is_small_float(type)) {
      return dequantize<Y>(call, [&](int64_t index) {
        return static_cast<double>(small_integer(type, bytes[index]));
      });
    }
    const std::array<float, 256>& values = small_float_values(type);
    return dequantize<Y>(call, [&](int64_t index) { return double{values[bytes[index]]}; });
  }
  visit_integer(type, [&](auto input) {
    using X = typename decltype(input)::type;
    if constexpr (sizeof(X) <= 2 || std::is_same_v<X, int32_t>) {
      const X* const integers = call.inputs[0].as<X>().data();
      dequantize<Y>(call, [&](int64_t index) { return static_cast<double>(integers[index]); });
    }
  });
}

void run_dequantize(const KernelCall& call) {
  visit_floating(call.outputs[0].type,
                 [&](auto output) { dequantize<typename decltype(output)::type>(call); });
}

std::vector<AttributeSchema> attributes_of_quantization() {
  return {{"axis", AttributeKind::Int, int64_t{1}, 13},
          {"block_size", AttributeKind::Int, int64_t{0}, 21}};
}

}  // namespace

std::vector<Op> quantize_linear_ops() {
  constexpr TypeSet kRealTypes = kScaleTypes | TypeSet{DataType::Int32};
  constexpr TypeSet kMicrosoftReals = {DataType::Float16, DataType::Float32};
  constexpr int kFirstFreeScale = 23;  // before, the scale has the type of the real numbers
  Op quantize = {
      .name = "QuantizeLinear",
      .versions = {10, 13, 19, 21, 23, 24, 25, 28},
      .inputs = {{"x", "T1"}, {"y_scale", "TS"}, {"y_zero_point", "T2", Arity::Optional}},
      .outputs = {{"y", "T2"}},
      .type_variables = {{"T1", kRealTypes}, scale_types("TS", kRealTypes), quantized_types("T2")},
      .attributes = attributes_of_quantization(),
      .infer = infer_quantize,
      .kernel = run_quantize};
  quantize.attributes.push_back({"output_dtype", AttributeKind::Int, int64_t{0}, 21});
  quantize.attributes.push_back({"precision", AttributeKind::Int, int64_t{0}, kFirstFreeScale});
  // Of 8-bit floats only; a float4e2m1 always saturates.
  quantize.attributes.push_back({"saturate", AttributeKind::Int, int64_t{1}, 19});
  Op dequantize = {
      .name = "DequantizeLinear",
      .versions = {10, 13, 19, 21, 23, 24, 25, 28},
      .inputs = {{"x", "T1"}, {"x_scale", "T2"}, {"x_zero_point", "T1", Arity::Optional}},
      .outputs = {{"y", "T3"}},
      .type_variables = {{"T1", kQuantizedTypes | TypeSet{DataType::Int32},
                          small_quantized_types()},
                         scale_types("T2", kScaleTypes),
                         {"T3", kScaleTypes}},
      .attributes = attributes_of_quantization(),
      .infer = infer_dequantize,
      .kernel = run_dequantize};
  dequantize.attributes.push_back({"output_dtype", AttributeKind::Int, int64_t{0}, 23});
  Op quantize_of_microsoft = quantize;
  quantize_of_microsoft.inputs[1].type_variable = "T1";
  const std::vector<AddedTypes> small_types_of_microsoft = {{1, kInt4Types}};
  quantize_of_microsoft.type_variables = {{"T1", kMicrosoftReals},
                                          {"T2", kQuantizedTypes, small_types_of_microsoft}};
  Op dequantize_of_microsoft = dequantize;
  dequantize_of_microsoft.outputs[0].type_variable = "T2";
  dequantize_of_microsoft.type_variables[0].added = small_types_of_microsoft;
  dequantize_of_microsoft.type_variables[1].types = kMicrosoftReals;
  for (Op* const op : {&quantize_of_microsoft, &dequantize_of_microsoft}) {
    op->domain = kMicrosoftDomain;
    op->versions = {1};
    op->attributes = {{"axis", AttributeKind::Int, std::nullopt}};
  }
  return {quantize, dequantize, quantize_of_microsoft, dequantize_of_microsoft};
}

}  // namespace tessera::ops
