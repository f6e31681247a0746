// Feature maps whose channels are the last axis, for ops with the attribute 'channels_last': they
// are computed on float64 numbers whose channels are axis 1.
#pragma once

#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

bool is_channels_last(const Node& node);

// The shape with the last axis moved to axis 1, or back; shapes of less than three axes as they
// are.
Shape channels_moved_first(Shape shape);
Shape channels_moved_last(Shape shape);
std::pmr::vector<int64_t> channels_moved_first(std::span<const int64_t> dims,
                                               std::pmr::memory_resource& memory);

// The elements of such a feature map, of `dims` [batch, channels, ...], from the last axis to axis
// 1, or back.
std::pmr::vector<double> elements_moved_first(std::span<const double> elements,
                                              std::span<const int64_t> dims,
                                              std::pmr::memory_resource& memory);
std::pmr::vector<double> elements_moved_last(std::span<const double> elements,
                                             std::span<const int64_t> dims,
                                             std::pmr::memory_resource& memory);

}  // namespace tessera::ops
