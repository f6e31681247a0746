// Imputer: replaces missing values. https://onnx.ai/onnx/operators/onnx_aionnxml_Imputer.html
#include <cmath>
#include <limits>
#include <string>

#include "ops/ml/feature_rows.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// The number of values that replace others; floats for inputs of floats, else integers.
int64_t imputed_count(const Node& node, bool are_floats) {
  return are_floats ? std::ssize(float_list(node, "imputed_value_floats"))
                    : std::ssize(int_list(node, "imputed_value_int64s"));
}

void infer_imputer(InferContext& context) {
  const std::optional<Shape>& shape = context.input(0).type.shape;
  const DataType type = context.element(0);
  context.set_output(0, type, shape);
  if (type == DataType::Undefined) return;
  const bool are_floats = is_floating(type);
  const int64_t count = imputed_count(context.node(), are_floats);
  const std::string attribute =
      std::string("attribute 'imputed_value_") + (are_floats ? "floats" : "int64s") + "': ";
  if (count == 0) {
    context.fail(attribute + "expected values for an input of " + std::string(name(type)) +
                 ", found none");
  }
  if (shape && shape->empty()) context.fail_input(0, "expected rows of features, found a scalar");
  if (shape && shape->back().is_known() && count != 1 && count != shape->back().value()) {
    context.fail(attribute + "expected 1 value or " + std::to_string(shape->back().value()) +
                 ", one for each feature, found " + std::to_string(count));
  }
  for (const int64_t value : int_list(context.node(), "imputed_value_int64s")) {
    if (type == DataType::Int32 && value != static_cast<int32_t>(value)) {
      context.fail(attribute + "expected values of int32, found " + std::to_string(value));
    }
  }
}

template <class T, class V>
void impute(const KernelCall& call, std::span<const V> values, V replaced) {
  const T* const input = call.inputs[0].as<T>().data();
  T* const output = call.outputs[0].as<T>().data();
  const auto count = static_cast<int64_t>(values.size());
  const auto is_missing = [&](T element) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(replaced)) return std::isnan(element);
      return element == static_cast<T>(replaced);
    } else {
      return static_cast<int64_t>(element) == replaced;
    }
  };
  call.pool.parallel_for(call.inputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
    int64_t feature = begin % count;
    for (int64_t index = begin; index < end; ++index) {
      output[index] = is_missing(input[index])
                          ? static_cast<T>(values[static_cast<size_t>(feature)])
                          : input[index];
      if (++feature == count) feature = 0;
    }
  });
}

void run_imputer(const KernelCall& call) {
  const Node& node = call.node;
  visit_feature(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      impute<T, float>(call, float_list(node, "imputed_value_floats"),
                       node.attributes.get_float("replaced_value_float"));
    } else {
      impute<T, int64_t>(call, int_list(node, "imputed_value_int64s"),
                         node.attributes.get_int("replaced_value_int64"));
    }
  });
}

}  // namespace

std::vector<Op> imputer_ops() {
  return {{.name = "Imputer",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFeatureTypes}},
           .attributes = {{"imputed_value_floats", AttributeKind::Floats},
                          {"imputed_value_int64s", AttributeKind::Ints},
                          {"replaced_value_float", AttributeKind::Float, 0.0F},
                          {"replaced_value_int64", AttributeKind::Int, int64_t{0}}},
           .infer = infer_imputer,
           .kernel = run_imputer}};
}

}  // namespace tessera::ops
