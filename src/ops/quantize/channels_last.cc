#include "ops/quantize/channels_last.h"

#include <algorithm>

namespace tessera::ops {
namespace {

// Below it, no axis lies between the batch and the channels.
constexpr size_t kMinMovedRank = 3;

// `count` matrices [rows, columns], each transposed.
std::pmr::vector<double> transposed(std::span<const double> elements, int64_t count, int64_t rows,
                                    int64_t columns, std::pmr::memory_resource& memory) {
  std::pmr::vector<double> result(elements.size(), &memory);
  for (int64_t which = 0; which < count; ++which) {
    const double* const source = elements.data() + which * rows * columns;
    double* const target = result.data() + which * rows * columns;
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        target[column * rows + row] = source[row * columns + column];
      }
    }
  }
  return result;
}

}  // namespace

bool is_channels_last(const Node& node) {
  const int64_t* const given = node.attributes.find_int("channels_last");
  return given != nullptr && *given != 0;
}

Shape channels_moved_first(Shape shape) {
  if (shape.size() >= kMinMovedRank) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

Shape channels_moved_last(Shape shape) {
  if (shape.size() >= kMinMovedRank) std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  return shape;
}

std::pmr::vector<int64_t> channels_moved_first(std::span<const int64_t> dims,
                                               std::pmr::memory_resource& memory) {
  std::pmr::vector<int64_t> result(dims.begin(), dims.end(), &memory);
  if (result.size() >= kMinMovedRank) {
    std::rotate(result.begin() + 1, result.end() - 1, result.end());
  }
  return result;
}

std::pmr::vector<double> elements_moved_first(std::span<const double> elements,
                                              std::span<const int64_t> dims,
                                              std::pmr::memory_resource& memory) {
  return transposed(elements, dims[0], element_count(dims.subspan(2)), dims[1], memory);
}

std::pmr::vector<double> elements_moved_last(std::span<const double> elements,
                                             std::span<const int64_t> dims,
                                             std::pmr::memory_resource& memory) {
  return transposed(elements, dims[0], dims[1], element_count(dims.subspan(2)), memory);
}

}  // namespace tessera::ops
