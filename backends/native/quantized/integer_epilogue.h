// What the epilogue of a product of bytes needs for each column, from scales, zero points and
// biases that are inputs, or constants of a kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "quantized/integer_kernels.h"
#include "quantized/integer_product.h"
#include "tessera/backend.h"

namespace tessera::native {

// What the inputs of a node are to a product or a convolution of bytes.
enum IntegerRole : uint8_t {
  kLeft,
  kRight,
  kLeftScale,
  kLeftZero,
  kRightScale,
  kRightZero,
  kIntegerBias,  // by column, with the scale of the products
  kRealBias,     // float32, by column
  kScale,        // of the result
  kZero,
  kIntegerRoles
};

// By role: an input of a node or a port of a candidate; -1: none.
struct IntegerRoles {
  std::array<int32_t, kIntegerRoles> at = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

  bool has(IntegerRole role) const { return at[role] >= 0; }
  size_t of(IntegerRole role) const { return static_cast<size_t>(at[role]); }
};

// What a kernel knows when it is built, in place of inputs; by column, or one for all.
struct IntegerConstants {
  int32_t left_zero = 0;
  std::vector<int32_t> right_zeros;
  std::vector<float> factors;
  std::vector<int32_t> bias;   // empty: none
  std::vector<float> offsets;  // empty: none
  int32_t zero = 0;
};

// The computation for some sizes.
struct SizedProduct {
  IntegerProduct product;
  RightSource right;
};

// What of a kernel does not depend on sizes.
struct IntegerWork {
  IntegerLoops loops;
  IntegerRoles ports;
  bool is_packed = false;          // the right side, by right_pack()
  bool has_centred_right = false;  // packed minus its zero point
  // Whether each matrix has columns of its own among scales and biases, as groups of a convolution.
  bool has_columns_by_matrix = false;
  bool is_dynamic = false;  // the left side is float32, and quantised first
  bool is_left_signed = false;
  bool is_right_signed = false;
  SumsTo to = SumsTo::Integers;
  float alpha = 1;
  // Whether bytes are rounded as if products of scales were float64 (QGemm), not float32.
  bool has_wide_scales = false;
  bool is_result_signed = false;
  // Limits of results: of real numbers, and of bytes.
  float low = 0;
  float high = 0;
  int32_t lowest = 0;
  int32_t highest = 0;
  std::shared_ptr<const IntegerConstants> constants;  // null: they are inputs
  std::function<SizedProduct(std::span<const plugin::Buffer> inputs,
                             std::span<const plugin::Buffer> outputs)>
      sized;

  bool has_right_zeros() const;
  bool has_offsets() const;
  int32_t left_zero(std::span<const plugin::Buffer> inputs) const;
  // Times alpha.
  float left_scale(std::span<const plugin::Buffer> inputs) const;
};

// The memory for the arrays of an epilogue.
int64_t epilogue_bytes(const RightPanels& panels);

// The epilogue for the first column, with arrays for the columns of all matrices. `left_zero` is
// IntegerLoops::left_zero(), `left_scale` includes alpha.
IntegerEpilogue prepare_epilogue(const IntegerWork& work, std::span<const plugin::Buffer> inputs,
                                 const RightPanels& panels, const void* packed, int32_t left_zero,
                                 float left_scale, void* memory);

}  // namespace tessera::native
