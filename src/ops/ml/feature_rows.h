// The input of most ops of ai.onnx.ml: rows of features, of one of four element types.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {

inline constexpr TypeSet kFeatureTypes = {DataType::Float32, DataType::Float64, DataType::Int64,
                                          DataType::Int32};

// Same as visit_numeric(), for kFeatureTypes.
template <class Visit>
void visit_feature(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::Float32:
      return visit(TypeTag<float>{});
    case DataType::Float64:
      return visit(TypeTag<double>{});
    case DataType::Int64:
      return visit(TypeTag<int64_t>{});
    case DataType::Int32:
      return visit(TypeTag<int32_t>{});
    default:
      TESSERA_CHECK(false, "the schema admits four types");
  }
}

struct FeatureRows {
  int64_t rows = 0;
  int64_t features = 0;  // of each row
};

// A tensor of rank 1 is one row.
inline FeatureRows feature_rows(std::span<const int64_t> dims) {
  if (dims.size() == 1) return {1, dims[0]};
  return {dims[0], dims[1]};
}

// The number of rows of input 0. fail_input()s if its rank is known and is neither 1 nor 2.
Dim row_count(const InferContext& context);
// The number of its features; nullopt if it is unknown.
std::optional<int64_t> feature_count(const InferContext& context);
// fail_input()s if the number of features is known and is not `expected`, as `what` says.
void check_feature_count(const InferContext& context, int64_t expected, const std::string& what);

// The numbers of an attribute that is a list; none if the node leaves it out.
std::span<const float> float_list(const Node& node, std::string_view attribute);
std::span<const int64_t> int_list(const Node& node, std::string_view attribute);

// fail()s unless the attribute is one of `words`.
void check_word(const InferContext& context, std::string_view attribute,
                std::span<const std::string_view> words);

// Rows that are computed together, feature by feature, so that loops over them are vectorised.
inline constexpr int64_t kLanes = 8;
using Lanes = std::array<double, kLanes>;

// Copies up to kLanes rows from `first` on to `lanes`, which has an entry for each feature. Lanes
// beyond the last row repeat it.
void gather_lanes(const TensorView& input, const FeatureRows& rows, int64_t first,
                  std::span<Lanes> lanes);

// The product of each lane with `weights`, which has an entry for each feature.
Lanes products(std::span<const Lanes> lanes, const float* weights);

}  // namespace tessera::ops
