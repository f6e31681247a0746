// QuantizeLinear and DequantizeLinear, of ONNX and of com.microsoft: real numbers as integers with
// scales and zero points.
// https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
#include <string>

#include "ops/convert_element.h"
#include "ops/onnx_types.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

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
  const std::optional<DataType> named = named_type(context, "output_dtype", kQuantizedTypes);
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

template <class X, class S, class Y>
void quantize(const KernelCall& call) {
  const X* const input = call.inputs[0].as<X>().data();
  const S* const scales = call.inputs[1].as<S>().data();
  const Y* const zeros = call.has_input(2) ? call.inputs[2].as<Y>().data() : nullptr;
  Y* const output = call.outputs[0].as<Y>().data();
  const DataType precision = precision_of(call.node, call.inputs[1].type);
  const ScaleLoop loop = scales_of(call);
  const auto run = [&](int64_t begin, int64_t count, int64_t scale, int64_t step) {
    for (int64_t index = 0; index < count; ++index) {
      const int64_t at = scale + index * step;
      const float quotient = static_cast<float>(to_double(input[begin + index])) /
                             static_cast<float>(to_double(scales[at]));
      output[begin + index] =
          quantized<Y>(rounded_to(precision, quotient), zeros == nullptr ? Y{0} : zeros[at]);
    }
  };
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain,
                         [&](int64_t begin, int64_t end) { loop.for_each_run(begin, end, run); });
}

template <class Visit>
void visit_scale(DataType type, const Visit& visit) {
  if (type == DataType::Int32) return visit(TypeTag<int32_t>{});
  visit_floating(type, visit);
}

void run_quantize(const KernelCall& call) {
  visit_scale(call.inputs[0].type, [&](auto input) {
    using X = typename decltype(input)::type;
    visit_scale(call.inputs[1].type, [&](auto scale) {
      using S = typename decltype(scale)::type;
      visit_integer(call.outputs[0].type, [&](auto output) {
        using Y = typename decltype(output)::type;
        if constexpr (sizeof(Y) <= 2) quantize<X, S, Y>(call);
      });
    });
  });
}

void infer_dequantize(InferContext& context) {
  check_scales(context);
  const std::optional<DataType> named = named_type(context, "output_dtype", kScaleTypes);
  context.set_output(0, named.value_or(context.element(1)), context.input(0).type.shape);
}

template <class X, class S, class Y>
void dequantize(const KernelCall& call) {
  const X* const input = call.inputs[0].as<X>().data();
  const S* const scales = call.inputs[1].as<S>().data();
  const X* const zeros = call.has_input(2) ? call.inputs[2].as<X>().data() : nullptr;
  Y* const output = call.outputs[0].as<Y>().data();
  const ScaleLoop loop = scales_of(call);
  const auto run = [&](int64_t begin, int64_t count, int64_t scale, int64_t step) {
    for (int64_t index = 0; index < count; ++index) {
      const int64_t at = scale + index * step;
      const int64_t zero = zeros == nullptr ? 0 : zeros[at];
      const auto steps = static_cast<double>(input[begin + index] - zero);
      output[begin + index] = from_double<Y>(steps * to_double(scales[at]));
    }
  };
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain,
                         [&](int64_t begin, int64_t end) { loop.for_each_run(begin, end, run); });
}

void run_dequantize(const KernelCall& call) {
  visit_integer(call.inputs[0].type, [&](auto input) {
    using X = typename decltype(input)::type;
    if constexpr (sizeof(X) <= 2 || std::is_same_v<X, int32_t>) {
      visit_floating(call.inputs[1].type, [&](auto scale) {
        using S = typename decltype(scale)::type;
        visit_floating(call.outputs[0].type, [&](auto output) {
          dequantize<X, S, typename decltype(output)::type>(call);
        });
      });
    }
  });
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
      .type_variables = {{"T1", kRealTypes}, {"TS", kRealTypes}, {"T2", kQuantizedTypes}},
      .attributes = attributes_of_quantization(),
      .infer = infer_quantize,
      .kernel = run_quantize};
  quantize.attributes.push_back({"output_dtype", AttributeKind::Int, int64_t{0}, 21});
  quantize.attributes.push_back({"precision", AttributeKind::Int, int64_t{0}, kFirstFreeScale});
  // Of 8-bit floats only.
  quantize.attributes.push_back({"saturate", AttributeKind::Int, int64_t{1}, 19});
  Op dequantize = {
      .name = "DequantizeLinear",
      .versions = {10, 13, 19, 21, 23, 24, 25, 28},
      .inputs = {{"x", "T1"}, {"x_scale", "T2"}, {"x_zero_point", "T1", Arity::Optional}},
      .outputs = {{"y", "T3"}},
      .type_variables = {{"T1", kQuantizedTypes | TypeSet{DataType::Int32}},
                         {"T2", kScaleTypes},
                         {"T3", kScaleTypes}},
      .attributes = attributes_of_quantization(),
      .infer = infer_dequantize,
      .kernel = run_dequantize};
  dequantize.attributes.push_back({"output_dtype", AttributeKind::Int, int64_t{0}, 23});
  Op quantize_of_microsoft = quantize;
  quantize_of_microsoft.inputs[1].type_variable = "T1";
  quantize_of_microsoft.type_variables = {{"T1", kMicrosoftReals}, {"T2", kQuantizedTypes}};
  Op dequantize_of_microsoft = dequantize;
  dequantize_of_microsoft.outputs[0].type_variable = "T2";
  dequantize_of_microsoft.type_variables[1].types = kMicrosoftReals;
  for (Op* const op : {&quantize_of_microsoft, &dequantize_of_microsoft}) {
    op->domain = "com.microsoft";
    op->versions = {1};
    op->attributes = {{"axis", AttributeKind::Int, std::nullopt}};
  }
  return {quantize, dequantize, quantize_of_microsoft, dequantize_of_microsoft};
}

}  // namespace tessera::ops
