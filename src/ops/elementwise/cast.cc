// Cast and CastLike. convert_elements.h defines each conversion.
#include <string>

#include "ops/convert_elements.h"
#include "ops/onnx_types.h"
#include "ops/shape_arithmetic.h"
#include "ops/strings/number_text.h"

namespace tessera::ops {
namespace {

TypeVariable cast_types(const char* name) {
  return {name, kAllTypesAndStrings, small_types_since(19)};
}

std::optional<PowerRounding> power_rounding(const Node& node) {
  const std::string* const mode = node.attributes.find_string("round_mode");
  if (mode == nullptr || *mode == "up") return PowerRounding::Up;
  if (*mode == "down") return PowerRounding::Down;
  if (*mode == "nearest") return PowerRounding::Nearest;
  return std::nullopt;
}

SmallFloatRounding small_float_rounding(const Node& node) {
  const int64_t* const saturate = node.attributes.find_int("saturate");
  return {.saturates = saturate == nullptr || *saturate != 0,
          .power = power_rounding(node).value_or(PowerRounding::Up)};
}

void infer_conversion(InferContext& context, DataType target) {
  const Node& node = context.node();
  if (target == DataType::Float8E8M0 && !power_rounding(node)) {
    context.fail("attribute 'round_mode': expected up, down or nearest, found '" +
                 node.attributes.get_string("round_mode") + "'");
  }
  context.set_output(0, target, context.input(0).type.shape);
  const bool has_wide_integers =
      target != DataType::String && !is_small(target) && context.element(0) != DataType::String;
  if (!has_wide_integers) return;
  const auto element = [&](const std::vector<Dim>& arguments) -> std::optional<Dim> {
    if (target != DataType::Bool) return arguments[0];
    if (!arguments[0].is_known()) return std::nullopt;
    return Dim(arguments[0].value() != 0 ? 1 : 0);
  };
  set_elementwise_elements(context, element, 1);
}

void infer_cast(InferContext& context) {
  const int64_t number = context.node().attributes.get_int("to");
  const OnnxType* found = find_onnx_type(number);
  if (found == nullptr) {
    context.fail("attribute 'to': expected the number of an element type, found " +
                 std::to_string(number));
  }
  if (found->type == DataType::Undefined) {
    context.fail_unsupported("attribute 'to': elements of " + std::string(found->name) +
                             " have no kernels");
  }
  const TypeSet types = cast_types("T2").types_in(context.version());
  if (!types.contains(found->type)) {
    context.fail("attribute 'to': expected " + types.text() + ", found " + found->name);
  }
  infer_conversion(context, found->type);
}

void infer_cast_like(InferContext& context) { infer_conversion(context, context.element(1)); }

void run_cast(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  const auto* source = static_cast<const std::byte*>(input.data);
  auto* target = static_cast<std::byte*>(output.data);
  const int64_t source_bytes = element_bytes(input.type);
  const int64_t target_bytes = element_bytes(output.type);
  const SmallFloatRounding rounding = small_float_rounding(call.node);
  call.pool.parallel_for(output.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    convert_elements(input.type, source + begin * source_bytes, output.type,
                     target + begin * target_bytes, end - begin, rounding);
  });
}

void run_cast_of_text(const ValueCall& call) {
  const DataType target = call.inputs.size() > 1
                              ? call.inputs[1].type()
                              : find_onnx_type(call.node.attributes.get_int("to"))->type;
  call.outputs[0] = converted_text(call, call.inputs[0], target, small_float_rounding(call.node));
}

std::vector<AttributeSchema> attributes_of_small_floats() {
  return {{"saturate", AttributeKind::Int, int64_t{1}, 19},
          {"round_mode", AttributeKind::String, std::string("up"), 24}};
}

}  // namespace

std::vector<Op> cast_ops() {
  Op cast = {.name = "Cast",
             .versions = {6, 9, 13, 19, 21, 23, 24, 25, 28},
             .inputs = {{"input", "T1"}},
             .outputs = {{"output", "T2"}},
             .type_variables = {cast_types("T1"), cast_types("T2")},
             .attributes = attributes_of_small_floats(),
             .traits = kElementwise,
             .infer = infer_cast,
             .kernel = run_cast,
             .value_kernel = run_cast_of_text};
  cast.attributes.push_back({"to", AttributeKind::Int, std::nullopt, 6, kAnyVersion, true});
  Op cast_like = {.name = "CastLike",
                  .versions = {15, 19, 21, 23, 24, 25},
                  .inputs = {{"input", "T1"}, {"target_type", "T2"}},
                  .outputs = {{"output", "T2"}},
                  .type_variables = {cast_types("T1"), cast_types("T2")},
                  .attributes = attributes_of_small_floats(),
                  .traits = kElementwise,
                  .infer = infer_cast_like,
                  .kernel = run_cast,
                  .value_kernel = run_cast_of_text};
  return {cast, cast_like};
}

}  // namespace tessera::ops
