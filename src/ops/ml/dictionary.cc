// CastMap, DictVectorizer and ZipMap: maps from and to tensors.
// https://onnx.ai/onnx/operators/onnx_aionnxml_ZipMap.html
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ops/control_flow/bodies.h"
#include "ops/ml/classifier.h"
#include "ops/ml/feature_rows.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strings/lookup_table.h"
#include "ops/strings/number_text.h"

namespace tessera::ops {
namespace {

// The type of the values of input 0, a map whose keys are of `keys`; Undefined if it is unknown.
DataType map_value_type(const InferContext& context, TypeSet keys, TypeSet values) {
  const Type& type = context.input(0).type;
  if (type.kind == Type::Kind::Unknown) return DataType::Undefined;
  const bool is_fitting = type.kind == Type::Kind::Map && keys.contains(type.element) &&
                          type.contents.front().is_tensor() &&
                          values.contains(type.contents.front().element);
  if (!is_fitting) {
    context.fail_input(
        0, "expected a map from " + keys.text() + " to " + values.text() + ", found " + text(type));
  }
  return type.contents.front().element;
}

// A tensor of zeros, or of empty strings.
Tensor zeros(DataType type, std::vector<int64_t> dims) {
  Tensor tensor(type, std::move(dims));
  if (!tensor.is_strings() && tensor.bytes() > 0) {
    std::memset(tensor.mutable_data(), 0, static_cast<size_t>(tensor.bytes()));
  }
  return tensor;
}

// --- ZipMap --------------------------------------------------------------------------------------

constexpr const char* kZipKeys = "classlabels_int64s";

void infer_zip_map(InferContext& context) {
  check_labels(context, kZipKeys);
  const ClassLabels labels = labels_of(context.node(), kZipKeys);
  row_count(context);
  check_feature_count(context, labels.count(), "there are keys");
  const DataType key = labels.are_strings() ? DataType::String : DataType::Int64;
  set_output_type(context, 0,
                  Type::sequence(Type::map(key, Type::tensor(DataType::Float32, Shape{}))));
}

// The keys of a node. The last of equal ones counts, as in ONNX Runtime.
struct ZipKeys {
  Tensor keys;
  std::vector<int64_t> columns;  // of X, in the order of `keys`
};

ZipKeys zip_keys_of(const Node& node) {
  const ClassLabels labels = labels_of(node, kZipKeys);
  const Tensor all =
      tensor_of_list(node.attributes, labels.are_strings() ? "classlabels_strings" : kZipKeys);
  const auto are_equal = [&](int64_t left, int64_t right) {
    return labels.are_strings() ? labels.strings[static_cast<size_t>(left)] ==
                                      labels.strings[static_cast<size_t>(right)]
                                : labels.integers[static_cast<size_t>(left)] ==
                                      labels.integers[static_cast<size_t>(right)];
  };
  const auto is_less = [&](int64_t left, int64_t right) {
    if (are_equal(left, right)) return left < right;
    return labels.are_strings() ? labels.strings[static_cast<size_t>(left)] <
                                      labels.strings[static_cast<size_t>(right)]
                                : labels.integers[static_cast<size_t>(left)] <
                                      labels.integers[static_cast<size_t>(right)];
  };
  std::vector<int64_t> order(static_cast<size_t>(all.elements()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::sort(order, is_less);
  ZipKeys zip;
  for (size_t index = 0; index < order.size(); ++index) {
    if (index + 1 == order.size() || !are_equal(order[index], order[index + 1])) {
      zip.columns.push_back(order[index]);
    }
  }
  zip.keys = zeros(all.type(), {std::ssize(zip.columns)});
  for (size_t index = 0; index < zip.columns.size(); ++index) {
    copy_element(all, zip.columns[index], zip.keys, static_cast<int64_t>(index));
  }
  return zip;
}

void run_zip_map(const ValueCall& call) {
  const auto zip = call.prepared<ZipKeys>([&] { return zip_keys_of(call.node); });
  const Tensor& input = call.inputs[0];
  const FeatureRows rows = feature_rows(input.dims());
  const auto count = std::ssize(zip->columns);
  // All values in one tensor, of which each map has a row.
  Tensor values(DataType::Float32, {rows.rows, count});
  const std::span<float> to = values.mutable_as<float>();
  const std::span<const float> from = input.as<float>();
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t index = 0; index < count; ++index) {
      const int64_t column = zip->columns[static_cast<size_t>(index)];
      to[static_cast<size_t>(row * count + index)] =
          from[static_cast<size_t>(row * rows.features + column)];
    }
  }
  const auto owner = std::make_shared<Tensor>(values);
  std::vector<Tensor> maps;
  maps.reserve(static_cast<size_t>(rows.rows));
  for (int64_t row = 0; row < rows.rows; ++row) {
    Tensor of_row(DataType::Float32, {count}, owner, to.data() + row * count);
    maps.push_back(Tensor::map(zip->keys, std::move(of_row)));
  }
  call.outputs[0] = Tensor::sequence(std::move(maps));
}

// --- DictVectorizer ------------------------------------------------------------------------------

constexpr TypeSet kKeyTypes = {DataType::String, DataType::Int64};
constexpr TypeSet kMapValueTypes = {DataType::Int64, DataType::Float32, DataType::Float64,
                                    DataType::String};

Tensor vocabulary_of(const Node& node) {
  Tensor words = tensor_of_list(node.attributes, "string_vocabulary");
  if (!words.is_empty() && words.elements() > 0) return words;
  return tensor_of_list(node.attributes, "int64_vocabulary");
}

void infer_dict_vectorizer(InferContext& context) {
  const Tensor vocabulary = vocabulary_of(context.node());
  if (vocabulary.is_empty() || vocabulary.elements() == 0) {
    context.fail(
        "expected a vocabulary in one of the attributes 'int64_vocabulary' and "
        "'string_vocabulary', found none");
  }
  const DataType values = map_value_type(context, {vocabulary.type()}, kMapValueTypes);
  // One row, as in ONNX Runtime, for which models are exported; the standard says a list.
  context.set_output(0, values, Shape{Dim(1), Dim(vocabulary.elements())});
}

// Sets the element of `output` for each word of the vocabulary that is a key.
template <class Key>
void match_keys(const Tensor& keys, const Tensor& vocabulary, const ValueCall& call,
                Tensor& output) {
  using View = std::conditional_t<std::is_same_v<Key, std::string>, std::string_view, Key>;
  std::unordered_map<View, int64_t> places;
  int64_t position = 0;
  for (const Key& key : keys.as<Key>()) places.insert_or_assign(View(key), position++);
  position = 0;
  for (const Key& word : vocabulary.as<Key>()) {
    const auto found = places.find(View(word));
    if (found != places.end()) {
      copy_element(call.inputs[0].map_values(), found->second, output, position);
    }
    ++position;
  }
}

void run_dict_vectorizer(const ValueCall& call) {
  const auto vocabulary = call.prepared<Tensor>([&] { return vocabulary_of(call.node); });
  const Tensor& keys = call.inputs[0].map_keys();
  Tensor output = zeros(call.inputs[0].map_values().type(), {1, vocabulary->elements()});
  if (vocabulary->is_strings()) {
    match_keys<std::string>(keys, *vocabulary, call, output);
  } else {
    match_keys<int64_t>(keys, *vocabulary, call, output);
  }
  call.outputs[0] = std::move(output);
}

// --- CastMap -------------------------------------------------------------------------------------

constexpr std::string_view kMapForms[] = {"DENSE", "SPARSE"};
constexpr std::string_view kMapCasts[] = {"TO_FLOAT", "TO_STRING", "TO_INT64"};

DataType cast_type_of(const Node& node) {
  const std::string& word = node.attributes.get_string("cast_to");
  if (word == "TO_STRING") return DataType::String;
  return word == "TO_INT64" ? DataType::Int64 : DataType::Float32;
}

bool is_dense_map(const Node& node) { return node.attributes.get_string("map_form") == "DENSE"; }

void infer_cast_map(InferContext& context) {
  check_word(context, "map_form", kMapForms);
  check_word(context, "cast_to", kMapCasts);
  map_value_type(context, kInt64Type, {DataType::String, DataType::Float32});
  const int64_t length = context.node().attributes.get_int("max_map");
  const bool is_dense = is_dense_map(context.node());
  if (!is_dense && (length < 0 || length > std::numeric_limits<int32_t>::max())) {
    context.fail("attribute 'max_map': expected a number from 0 to 2147483647, found " +
                 std::to_string(length));
  }
  context.set_output(0, cast_type_of(context.node()),
                     Shape{Dim(1), is_dense ? unknown_dim(context, 0, 1) : Dim(length)});
}

void run_cast_map(const ValueCall& call) {
  const std::span<const int64_t> keys = call.inputs[0].map_keys().as<int64_t>();
  const Tensor& given = call.inputs[0].map_values();
  const DataType type = cast_type_of(call.node);
  Tensor values = given;
  if (given.is_strings() != (type == DataType::String)) {
    values = converted_text(call, given, type);
  } else if (type == DataType::Int64) {
    values = Tensor(type, given.dims());
    for (size_t index = 0; index < keys.size(); ++index) {
      const double number = given.as<float>()[index];
      if (!(std::abs(number) < 9223372036854775808.0)) {
        call.fail("expected a value that int64 holds, found " + std::to_string(number));
      }
      values.mutable_as<int64_t>()[index] = static_cast<int64_t>(number);
    }
  }
  const bool is_dense = is_dense_map(call.node);
  const int64_t length = is_dense ? std::ssize(keys) : call.node.attributes.get_int("max_map");
  Tensor output = zeros(type, {1, length});
  if (!is_dense && type == DataType::String) {
    for (std::string& missing : output.mutable_as<std::string>()) missing = "0.f";
  }
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, {}, [&](int64_t at) { return keys[static_cast<size_t>(at)]; });
  for (size_t index = 0; index < order.size(); ++index) {
    const int64_t key = keys[static_cast<size_t>(order[index])];
    if (!is_dense && (key < 0 || key >= length)) {
      call.fail("expected keys in [0, " + std::to_string(length) + "), as max_map says, found " +
                std::to_string(key));
    }
    copy_element(values, order[index], output, is_dense ? static_cast<int64_t>(index) : key);
  }
  call.outputs[0] = std::move(output);
}

}  // namespace

std::vector<Op> dictionary_ops() {
  return {{.name = "CastMap",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}},
           .attributes = {{"cast_to", AttributeKind::String, std::string("TO_FLOAT")},
                          {"map_form", AttributeKind::String, std::string("DENSE")},
                          {"max_map", AttributeKind::Int, int64_t{1}}},
           .infer = infer_cast_map,
           .flops = no_flops,
           .value_kernel = run_cast_map},
          {.name = "DictVectorizer",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}},
           .attributes = {{"int64_vocabulary", AttributeKind::Ints},
                          {"string_vocabulary", AttributeKind::Strings}},
           .infer = infer_dict_vectorizer,
           .flops = no_flops,
           .value_kernel = run_dict_vectorizer},
          {.name = "ZipMap",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "tensor(float)"}},
           .outputs = {{"Z", "T"}},
           .type_variables = {{"tensor(float)", {DataType::Float32}}},
           .attributes = {{kZipKeys, AttributeKind::Ints},
                          {"classlabels_strings", AttributeKind::Strings}},
           .infer = infer_zip_map,
           .flops = no_flops,
           .value_kernel = run_zip_map}};
}

}  // namespace tessera::ops
