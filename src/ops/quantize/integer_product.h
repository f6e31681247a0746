// Shared by products and convolutions of integers: they are computed on float64 numbers, in which
// sums of products of bytes are exact.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// fail()s unless input `zeros` is one number or one for each index of `axis` of a tensor of `shape`
// (nullopt: there is none). If `axis` counts from the end, it is that of a matrix, and there may be
// a tensor with one number for each of its rows or columns.
void check_per_axis(const InferContext& context, size_t zeros, const Shape* shape,
                    std::optional<int64_t> axis);

// The dimensions with which such an input broadcasts to a tensor of `rank`.
std::pmr::vector<int64_t> per_axis_dims(const TensorView& input, int64_t rank,
                                        std::optional<int64_t> axis,
                                        std::pmr::memory_resource& memory);

// The elements of an input of bytes, minus its zero points, which may be left out.
std::pmr::vector<double> centred(const KernelCall& call, size_t input, size_t zeros,
                                 std::optional<int64_t> axis);

TensorView view_of(std::span<const int64_t> dims, const std::pmr::vector<double>& elements);
MutableTensorView view_of(std::span<const int64_t> dims, std::pmr::vector<double>& elements);

// Sets the output of int32 to the sums; they wrap around.
void store_sums(const KernelCall& call, std::span<const double> sums);

// The scales of both factors and of the result, and its zero point, by input; the axes of the
// result along which the factors may have several scales.
struct Requantization {
  std::span<const int64_t> dims;  // of the result, as matrices if it is a product
  size_t left_scale;
  size_t right_scale;
  size_t scale;
  size_t zero_point;
  std::optional<int64_t> left_axis;
  std::optional<int64_t> right_axis;
};

// Multiplies `numbers`, a tensor of `dims`, by an input of scales.
void multiply_by_scales(const KernelCall& call, std::span<double> numbers,
                        std::span<const int64_t> dims, size_t scales, std::optional<int64_t> axis);

// Sets the output of bytes to the sums, times left scale * right scale / scale.
void store_requantized(const KernelCall& call, std::span<const double> sums,
                       const Requantization& form);

}  // namespace tessera::ops
