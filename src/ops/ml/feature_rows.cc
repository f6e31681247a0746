#include "ops/ml/feature_rows.h"

#include <algorithm>

#include "ops/shape_rules.h"

namespace tessera::ops {

Dim row_count(const InferContext& context) {
  const Shape* const shape = context.shape(0);
  if (shape == nullptr) return unknown_dim(context, 0, 0);
  if (shape->size() != 1 && shape->size() != 2) {
    context.fail_input(0, "expected rows of features, of rank 2, or one row, of rank 1, found " +
                              text(context.input(0).type));
  }
  return shape->size() == 1 ? Dim(1) : shape->front();
}

std::optional<int64_t> feature_count(const InferContext& context) {
  const Shape* const shape = context.shape(0);
  if (shape == nullptr || shape->empty() || !shape->back().is_known()) return std::nullopt;
  return shape->back().value();
}

void check_feature_count(const InferContext& context, int64_t expected, const std::string& what) {
  const std::optional<int64_t> found = feature_count(context);
  if (!found || *found == expected) return;
  context.fail_input(0, "expected rows of " + std::to_string(expected) + " features, as " + what +
                            ", found " + std::to_string(*found));
}

std::span<const float> float_list(const Node& node, std::string_view attribute) {
  const std::vector<float>* const list = node.attributes.find_floats(attribute);
  return list == nullptr ? std::span<const float>() : std::span<const float>(*list);
}

std::span<const int64_t> int_list(const Node& node, std::string_view attribute) {
  const std::vector<int64_t>* const list = node.attributes.find_ints(attribute);
  return list == nullptr ? std::span<const int64_t>() : std::span<const int64_t>(*list);
}

void check_word(const InferContext& context, std::string_view attribute,
                std::span<const std::string_view> words) {
  const std::string& found = context.node().attributes.get_string(attribute);
  if (std::ranges::find(words, std::string_view(found)) != words.end()) return;
  std::string all;
  for (const std::string_view word : words) {
    if (!all.empty()) all += word == words.back() ? " or " : ", ";
    all += word;
  }
  context.fail("attribute '" + std::string(attribute) + "': expected " + all + ", found '" + found +
               "'");
}

void gather_lanes(const TensorView& input, const FeatureRows& rows, int64_t first,
                  std::span<Lanes> lanes) {
  visit_feature(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const elements = static_cast<const T*>(input.data);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const int64_t row = std::min(first + lane, rows.rows - 1);
      const T* const source = elements + row * rows.features;
      for (size_t feature = 0; feature < lanes.size(); ++feature) {
        lanes[feature][static_cast<size_t>(lane)] = static_cast<double>(source[feature]);
      }
    }
  });
}

Lanes products(std::span<const Lanes> lanes, const float* weights) {
  Lanes sums = {};
  for (size_t feature = 0; feature < lanes.size(); ++feature) {
    const double weight = weights[feature];
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += lanes[feature][lane] * weight;
  }
  return sums;
}

}  // namespace tessera::ops
