// Constant: a tensor from one of several attributes.
#include <array>
#include <cstring>
#include <string>

#include "ops/evaluate.h"

namespace tessera::ops {
namespace {

TypeVariable constant_types() { return {"T", kAllTypesAndStrings, small_types_since(19)}; }

// The tensor that the attributes of `node` define; is_empty() if there is none.
Tensor constant_of(const Node& node) {
  const Attributes& attributes = node.attributes;
  if (const Tensor* value = attributes.find_tensor("value")) return *value;
  if (const float* value = attributes.find_float("value_float")) {
    return Tensor::from<float>(DataType::Float32, {}, {value, 1});
  }
  if (const int64_t* value = attributes.find_int("value_int")) {
    return Tensor::from<int64_t>(DataType::Int64, {}, {value, 1});
  }
  if (const std::vector<float>* values = attributes.find_floats("value_floats")) {
    return Tensor::from<float>(DataType::Float32, {static_cast<int64_t>(values->size())}, *values);
  }
  if (const std::vector<int64_t>* values = attributes.find_ints("value_ints")) {
    return Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(values->size())}, *values);
  }
  if (const std::string* value = attributes.find_string("value_string")) {
    return Tensor::strings({}, {*value});
  }
  if (const std::vector<std::string>* values = attributes.find_strings("value_strings")) {
    return Tensor::strings({static_cast<int64_t>(values->size())}, *values);
  }
  return {};
}

void infer_constant(InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  if (attributes.has("sparse_value")) {
    context.fail_unsupported("attribute 'sparse_value' is not supported");
  }
  const std::array<const char*, 7> kinds = {"value",        "value_float", "value_floats",
                                            "value_int",    "value_ints",  "value_string",
                                            "value_strings"};
  int given = 0;
  for (const char* kind : kinds) given += attributes.has(kind) ? 1 : 0;
  if (given != 1) {
    context.fail(
        "expected exactly one of the attributes value, value_float, value_floats, value_int, "
        "value_ints, value_string, value_strings, found " +
        std::to_string(given));
  }
  const Tensor tensor = constant_of(context.node());
  const TypeSet types = constant_types().types_in(context.version());
  if (!types.contains(tensor.type())) {
    context.fail("attribute 'value': expected elements of " + types.text() + ", found " +
                 std::string(name(tensor.type())));
  }
  InferInput known = infer_input(tensor);
  context.set_output(0, tensor.type(), std::move(known.type.shape));
  context.set_elements(0, std::move(known.elements));
}

// A pointer to the elements of that tensor.
const void* elements_of(const Attributes& attributes) {
  if (const Tensor* value = attributes.find_tensor("value")) return value->data();
  if (const float* value = attributes.find_float("value_float")) return value;
  if (const int64_t* value = attributes.find_int("value_int")) return value;
  if (const auto* values = attributes.find_floats("value_floats")) return values->data();
  if (const auto* values = attributes.find_ints("value_ints")) return values->data();
  return nullptr;
}

void run_constant(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  const int64_t bytes = output.elements * element_bytes(output.type);
  if (bytes > 0) {
    std::memcpy(output.data, elements_of(call.node.attributes), static_cast<size_t>(bytes));
  }
}

void run_constant_of_strings(const ValueCall& call) {
  call.outputs[0] = *call.prepared<Tensor>([&] { return constant_of(call.node); });
}

}  // namespace

std::vector<Op> constant_ops() {
  constexpr int kFirstSparseVersion =
      11;  // from this version on, `value` is one of several attributes
  constexpr int kFirstNumberVersion = 12;
  Op op = {.name = "Constant",
           .versions = {1, 9, 11, 12, 13, 19, 21, 23, 24, 25},
           .outputs = {{"output", "T"}},
           .type_variables = {constant_types()},
           .infer = infer_constant,
           .flops = no_flops,
           .kernel = run_constant,
           .value_kernel = run_constant_of_strings};
  op.attributes = {{"value", AttributeKind::Tensor, std::nullopt, 1, kFirstSparseVersion - 1, true},
                   {"value", AttributeKind::Tensor, std::nullopt, kFirstSparseVersion},
                   // Import either refuses sparse tensors or expands them, so they need no
                   // attribute kind of their own.
                   {"sparse_value", AttributeKind::Tensor, std::nullopt, kFirstSparseVersion},
                   {"value_float", AttributeKind::Float, std::nullopt, kFirstNumberVersion},
                   {"value_floats", AttributeKind::Floats, std::nullopt, kFirstNumberVersion},
                   {"value_int", AttributeKind::Int, std::nullopt, kFirstNumberVersion},
                   {"value_ints", AttributeKind::Ints, std::nullopt, kFirstNumberVersion},
                   {"value_string", AttributeKind::String, std::nullopt, kFirstNumberVersion},
                   {"value_strings", AttributeKind::Strings, std::nullopt, kFirstNumberVersion}};
  return {op};
}

}  // namespace tessera::ops
