// OneHotEncoder: for each element, a 1 at the position of its category.
// https://onnx.ai/onnx/operators/onnx_aionnxml_OneHotEncoder.html
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ops/ml/feature_rows.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr int64_t kNoCategory = -1;

const std::vector<std::string>* category_names(const Node& node) {
  const auto* const names = node.attributes.find_strings("cats_strings");
  return names == nullptr || names->empty() ? nullptr : names;
}

int64_t category_count(const Node& node) {
  const auto* const names = category_names(node);
  return names == nullptr ? std::ssize(int_list(node, "cats_int64s")) : std::ssize(*names);
}

void infer_one_hot_encoder(InferContext& context) {
  const bool has_names = category_names(context.node()) != nullptr;
  const bool has_numbers = !int_list(context.node(), "cats_int64s").empty();
  if (has_names == has_numbers) {
    context.fail(std::string("expected categories in one of the attributes 'cats_int64s' and "
                             "'cats_strings', found ") +
                 (has_names ? "both" : "none"));
  }
  const DataType type = context.element(0);
  if (type != DataType::Undefined && has_names != (type == DataType::String)) {
    context.fail_input(0, std::string("expected ") + (has_names ? "strings" : "numbers") +
                              ", as the categories are, found " + std::string(name(type)));
  }
  std::optional<Shape> shape = context.input(0).type.shape;
  if (shape) shape->push_back(Dim(category_count(context.node())));
  context.set_output(0, DataType::Float32, shape);
}

// The positions of categories. Of equal ones the last counts, as in ONNX Runtime.
template <class Key>
class Categories {
 public:
  template <class List>
  explicit Categories(const List& list) {
    int64_t position = 0;
    for (const auto& key : list) positions_[Key(key)] = position++;
  }
  int64_t find(const Key& key) const {
    const auto found = positions_.find(key);
    return found == positions_.end() ? kNoCategory : found->second;
  }

 private:
  std::unordered_map<Key, int64_t> positions_;
};

// Numbers are cut to integers; those that int64 does not hold have no category.
template <class T>
int64_t find_number(const Categories<int64_t>& categories, T number) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr double kLimit = 9223372036854775808.0;
    const double cut = std::trunc(static_cast<double>(number));
    if (!(cut >= -kLimit && cut < kLimit)) return kNoCategory;
    return categories.find(static_cast<int64_t>(cut));
  } else {
    return categories.find(static_cast<int64_t>(number));
  }
}

void run_one_hot_encoder(const ValueCall& call) {
  const Tensor& input = call.inputs[0];
  const int64_t count = category_count(call.node);
  const bool may_be_missing = call.node.attributes.get_int("zeros") != 0;
  std::vector<int64_t> dims = input.dims();
  dims.push_back(count);
  Tensor output(DataType::Float32, std::move(dims));
  const std::span<float> marks = output.mutable_as<float>();
  std::ranges::fill(marks, 0.0F);
  int64_t element = 0;
  const auto put = [&](int64_t position) {
    if (position == kNoCategory && !may_be_missing) {
      call.fail("expected a category for each element, found none for element " +
                std::to_string(element));
    }
    if (position != kNoCategory) marks[static_cast<size_t>(element * count + position)] = 1;
    ++element;
  };
  if (input.is_strings()) {
    const auto categories = call.prepared<Categories<std::string_view>>(
        [&] { return Categories<std::string_view>(*category_names(call.node)); });
    for (const std::string& word : input.as<std::string>()) put(categories->find(word));
  } else {
    const auto categories = call.prepared<Categories<int64_t>>(
        [&] { return Categories<int64_t>(int_list(call.node, "cats_int64s")); });
    visit_feature(input.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (const T number : input.as<T>()) put(find_number(*categories, number));
    });
  }
  call.outputs[0] = std::move(output);
}

}  // namespace

std::vector<Op> one_hot_encoder_ops() {
  return {{.name = "OneHotEncoder",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "tensor(float)"}},
           .type_variables = {{"T", kFeatureTypes | kStringType}},
           .attributes = {{"cats_int64s", AttributeKind::Ints},
                          {"cats_strings", AttributeKind::Strings},
                          {"zeros", AttributeKind::Int, int64_t{1}}},
           .infer = infer_one_hot_encoder,
           .flops = no_flops,
           .value_kernel = run_one_hot_encoder}};
}

}  // namespace tessera::ops
