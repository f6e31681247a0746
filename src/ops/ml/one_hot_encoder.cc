// OneHotEncoder: for each element, a 1 at the position of its category.
// https://onnx.ai/onnx/operators/onnx_aionnxml_OneHotEncoder.html
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ops/ml/feature_rows.h"
#include "ops/number_index.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

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
struct NumberCategories {
  explicit NumberCategories(std::span<const int64_t> list) {
    for (size_t position = list.size(); position-- > 0;) {
      index.add(static_cast<uint64_t>(list[position]), static_cast<int64_t>(position));
    }
  }
  int64_t find(int64_t number) const { return index.find(static_cast<uint64_t>(number)); }

  // Numbers are cut to integers; those that int64 does not hold have no category.
  int64_t find(double number) const {
    constexpr double kLimit = 9223372036854775808.0;
    const double cut = std::trunc(number);
    return cut >= -kLimit && cut < kLimit ? find(static_cast<int64_t>(cut)) : NumberIndex::kNone;
  }
  int64_t find(float number) const { return find(static_cast<double>(number)); }
  int64_t find(int32_t number) const { return find(int64_t{number}); }

  NumberIndex index;
};

struct WordCategories {
  explicit WordCategories(const std::vector<std::string>& list) {
    for (const std::string& word : list) positions[word] = next++;
  }
  int64_t find(const std::string& word) const {
    const auto found = positions.find(word);
    return found == positions.end() ? NumberIndex::kNone : found->second;
  }

  std::unordered_map<std::string_view, int64_t> positions;
  int64_t next = 0;
};

// Marks the category of each element in a row of `count` numbers.
template <class T, class Categories>
void mark_categories(const ValueCall& call, std::span<const T> elements,
                     const Categories& categories, std::span<float> marks, size_t count) {
  const bool may_be_missing = call.node.attributes.get_int("zeros") != 0;
  const auto run = [&](int64_t begin, int64_t end) {
    std::ranges::fill(
        marks.subspan(static_cast<size_t>(begin) * count, static_cast<size_t>(end - begin) * count),
        0.0F);
    for (auto element = static_cast<size_t>(begin); element < static_cast<size_t>(end); ++element) {
      const int64_t position = categories.find(elements[element]);
      if (position != NumberIndex::kNone) {
        marks[element * count + static_cast<size_t>(position)] = 1;
      } else if (!may_be_missing) {
        call.fail("expected a category for each element, found none for element " +
                  std::to_string(element));
      }
    }
  };
  const auto all = static_cast<int64_t>(elements.size());
  const auto grain = std::max<int64_t>(1, kElementGrain / static_cast<int64_t>(count));
  // One thread finds the first element without category.
  if (call.pool == nullptr || !may_be_missing) return run(0, all);
  call.pool->parallel_for(all, grain, run);
}

void run_one_hot_encoder(const ValueCall& call) {
  const Tensor& input = call.inputs[0];
  const int64_t count = category_count(call.node);
  std::vector<int64_t> dims = input.dims();
  dims.push_back(count);
  Tensor output(DataType::Float32, std::move(dims));
  const std::span<float> marks = output.mutable_as<float>();
  if (input.is_strings()) {
    const auto categories =
        call.prepared<WordCategories>([&] { return WordCategories(*category_names(call.node)); });
    mark_categories(call, input.as<std::string>(), *categories, marks, static_cast<size_t>(count));
  } else {
    const auto categories = call.prepared<NumberCategories>(
        [&] { return NumberCategories(int_list(call.node, "cats_int64s")); });
    visit_feature(input.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      mark_categories(call, input.as<T>(), *categories, marks, static_cast<size_t>(count));
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
