// LabelEncoder: each element replaced by the value of its key.
// https://onnx.ai/onnx/operators/onnx_aionnxml_LabelEncoder.html
#include <array>
#include <string>
#include <utility>

#include "ops/op.h"
#include "ops/strings/lookup_table.h"

namespace tessera::ops {
namespace {

constexpr int kFirstKeyVersion = 2;     // has keys and values; before, classes_strings
constexpr int kFirstTensorVersion = 4;  // these may be tensors, too

// The keys or values of a node, of whichever attribute it has; is_empty() if it has none. `count`
// is the number of attributes that it has.
struct List {
  Tensor elements;
  int count = 0;
};

List list_of(const Attributes& attributes, const std::string& prefix) {
  List list;
  for (const char* kind : {"_floats", "_int64s", "_strings"}) {
    Tensor found = tensor_of_list(attributes, prefix + kind);
    if (found.is_empty()) continue;
    list = {std::move(found), list.count + 1};
  }
  if (const Tensor* found = attributes.find_tensor(prefix + "_tensor")) {
    list = {*found, list.count + 1};
  }
  return list;
}

// What an element without a key becomes.
Tensor default_of(const Attributes& attributes, DataType type) {
  if (const Tensor* given = attributes.find_tensor("default_tensor")) return given->reshaped({});
  const auto number = [&](auto value) {
    return Tensor::from<decltype(value)>(type, {}, std::array{value});
  };
  switch (type) {
    case DataType::String:
      return Tensor::strings({}, {attributes.get_string("default_string")});
    case DataType::Float32:
      return number(attributes.get_float("default_float"));
    case DataType::Float64:
      return number(static_cast<double>(attributes.get_float("default_float")));
    case DataType::Int16:
      return number(static_cast<int16_t>(attributes.get_int("default_int64")));
    case DataType::Int32:
      return number(static_cast<int32_t>(attributes.get_int("default_int64")));
    default:
      return number(attributes.get_int("default_int64"));
  }
}

// Version 1: a class, and its position in the list of all.
std::pair<Tensor, Tensor> classes_of(const Node& node, DataType from) {
  Tensor classes = tensor_of_list(node.attributes, "classes_strings");
  Tensor positions(DataType::Int64, {classes.elements()});
  int64_t next = 0;
  for (int64_t& position : positions.mutable_as<int64_t>()) position = next++;
  if (classes.is_empty()) classes = Tensor::strings({0}, {});
  if (from == DataType::String) return {classes, positions};
  return {positions, classes};
}

void check_lists(const InferContext& context, const List& keys, const List& values) {
  const auto check_one = [&](const List& list, const std::string& name) {
    if (list.count == 1 && list.elements.rank() == 1) return;
    context.fail("expected one list of " + name + ", found " +
                 (list.count == 1 ? name + " of shape " + dims_text(list.elements.dims())
                                  : std::to_string(list.count)));
  };
  check_one(keys, "keys");
  check_one(values, "values");
  if (keys.elements.elements() != values.elements.elements()) {
    context.fail("expected as many keys as values, found " +
                 std::to_string(keys.elements.elements()) + " and " +
                 std::to_string(values.elements.elements()));
  }
  const DataType given = context.element(0);
  const DataType expected = keys.elements.type();
  if (given != expected && given != DataType::Undefined) {
    context.fail_input(0, "expected " + std::string(name(expected)) + ", as the keys are, found " +
                              std::string(name(given)));
  }
  const Tensor* missing = context.node().attributes.find_tensor("default_tensor");
  if (missing != nullptr &&
      (missing->type() != values.elements.type() || missing->elements() != 1)) {
    context.fail("attribute 'default_tensor': expected one element of " +
                 std::string(name(values.elements.type())) + ", found " +
                 std::string(name(missing->type())) + " " + dims_text(missing->dims()));
  }
}

void infer_label(InferContext& context) {
  const Shape* shape = context.shape(0);
  const auto set = [&](DataType type) {
    context.set_output(0, type, shape == nullptr ? std::nullopt : std::optional<Shape>(*shape));
  };
  const DataType from = context.element(0);
  if (context.version() < kFirstKeyVersion) {
    if (from == DataType::Undefined) return set(from);
    return set(from == DataType::String ? DataType::Int64 : DataType::String);
  }
  const List values = list_of(context.node().attributes, "values");
  check_lists(context, list_of(context.node().attributes, "keys"), values);
  set(values.elements.type());
}

LookUpTable labels_of(const Node& node, DataType from) {
  auto [keys, values] = node.version < kFirstKeyVersion
                            ? classes_of(node, from)
                            : std::pair(list_of(node.attributes, "keys").elements,
                                        list_of(node.attributes, "values").elements);
  Tensor missing = default_of(node.attributes, values.type());
  return {std::move(keys), std::move(values), std::move(missing)};
}

void run_label(const ValueCall& call) {
  const Tensor& input = call.inputs[0];
  const auto labels =
      call.prepared<LookUpTable>([&] { return labels_of(call.node, input.type()); });
  call.outputs[0] = labels->look_up(input);
}

}  // namespace

std::vector<Op> label_encoder_ops() {
  constexpr TypeSet kLabelTypes = {DataType::String, DataType::Int16,   DataType::Int32,
                                   DataType::Int64,  DataType::Float32, DataType::Float64};
  Op op = {
      .name = "LabelEncoder",
      .domain = "ai.onnx.ml",
      .versions = {1, kFirstKeyVersion, kFirstTensorVersion},
      .inputs = {{"X", "T1"}},
      .outputs = {{"Y", "T2"}},
      .type_variables = {{"T1", kLabelTypes}, {"T2", kLabelTypes}},
      .attributes = {{"classes_strings", AttributeKind::Strings, std::nullopt, 1,
                      kFirstKeyVersion - 1},
                     {"default_float", AttributeKind::Float, -0.0F, kFirstKeyVersion},
                     {"default_int64", AttributeKind::Int, int64_t{-1}},
                     {"default_string", AttributeKind::String, std::string("_Unused")},
                     {"default_tensor", AttributeKind::Tensor, std::nullopt, kFirstTensorVersion}},
      .infer = infer_label,
      .value_kernel = run_label};
  for (const std::string list : {"keys", "values"}) {
    op.attributes.push_back(
        {list + "_floats", AttributeKind::Floats, std::nullopt, kFirstKeyVersion});
    op.attributes.push_back(
        {list + "_int64s", AttributeKind::Ints, std::nullopt, kFirstKeyVersion});
    op.attributes.push_back(
        {list + "_strings", AttributeKind::Strings, std::nullopt, kFirstKeyVersion});
    op.attributes.push_back(
        {list + "_tensor", AttributeKind::Tensor, std::nullopt, kFirstTensorVersion});
  }
  return {op};
}

}  // namespace tessera::ops
