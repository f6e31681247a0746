// The loops of matrix products of bytes, compiled for every instruction set that Highway supports,
// and for those of its targets that have dot products of bytes (VNNI) once more.
//
// All sums are exact in int32, or wrap around. No processor multiplies bytes of both signs in every
// combination, so the factors are copied into one of two forms first:
//   Words: left elements minus their zero point as int16, multiplied in pairs (pmaddwd).
//   Bytes: left elements as uint8, signed ones plus 128, multiplied in fours (vpdpbusd, or
//          pmaddubsw if the weights are so small that its sums of two cannot saturate).
// Right elements are int8, unsigned ones minus 128. What zero points and these changes add to the
// sums follows from sums of rows and columns: see IntegerEpilogue.
#pragma once

#include <cstdint>

namespace tessera::native {

enum class LeftForm : uint8_t { Words, Bytes };

// What sums become.
enum class SumsTo : uint8_t {
  Integers,  // int32: sum + term
  Reals,     // float32: (sum + term) * factor + offset, limited
  Bytes      // int8 or uint8: the same, rounded to even, plus a zero point, limited
};

// For results that are rounded to bytes as if they were computed in float64:
// sum * factor * scale / divisor. The factors of the epilogue are this in float32.
struct ExactScale {
  const float* scales = nullptr;  // by column; null: float32 decides
  double factor = 1;
  double divisor = 1;
};

// The operations that are applied to each sum. Arrays by column are padded to whole panels, and
// begin with the first column of the block.
struct IntegerEpilogue {
  SumsTo to = SumsTo::Integers;
  const int32_t* terms = nullptr;
  // Of rows, from the first one of the block on, and by column: their products are subtracted from
  // the sums. Both may be null.
  const int32_t* row_sums = nullptr;
  const int32_t* right_zeros = nullptr;
  const float* factors = nullptr;  // not for Integers
  const float* offsets = nullptr;  // null: none
  // Limits of real results.
  float low = 0;
  float high = 0;
  // Of results that are bytes. Their limits are within those of the type.
  int32_t zero = 0;
  int32_t lowest = 0;
  int32_t highest = 0;
  bool is_signed = false;
  ExactScale exact;  // without offsets only
};

// Some rows of a result by some columns of one panel. A step multiplies 4 bytes of a row on the
// left: 2 elements as words, or 4 as bytes.
struct IntegerBlock {
  // Addresses of the runs of each row, row by row; and the steps of a run.
  const uint8_t* const* left = nullptr;
  int64_t runs = 1;
  int64_t steps = 0;
  const int8_t* right = nullptr;  // the panel; see RightPanels
  int64_t rows = 0;
  int64_t columns = 0;
  void* to = nullptr;
  int64_t to_row_stride = 0;  // elements
  IntegerEpilogue epilogue;
};

// How a line of left elements becomes one of a form.
struct LeftElements {
  bool is_signed = false;
  int32_t zero = 0;
};

struct IntegerLoops {
  LeftForm form = LeftForm::Words;
  // The number of columns of a panel, of which each step has 2 or 4 elements side by side.
  int64_t panel = 0;
  void (*multiply)(const IntegerBlock& block) = nullptr;
  // Copies elements that are neighbours; does not write behind the last one.
  void (*copy)(const void* from, int64_t count, const LeftElements& elements, void* to) = nullptr;
  // Same, to every `stride`-th element.
  void (*spread)(const void* from, int64_t count, const LeftElements& elements, int64_t stride,
                 void* to) = nullptr;
  // The sum of copied elements, which may wrap around.
  uint32_t (*sum)(const void* from, int64_t count) = nullptr;

  int64_t unit() const { return form == LeftForm::Words ? 2 : 4; }        // elements of a step
  int64_t left_bytes() const { return form == LeftForm::Words ? 2 : 1; }  // of an element
  // The element that stands for the zero point, as it is in this form.
  int32_t left_zero(const LeftElements& elements) const {
    return form == LeftForm::Words ? 0 : elements.zero + (elements.is_signed ? 128 : 0);
  }
};

// The left rows that the loops hold in registers with most instruction sets.
inline constexpr int64_t kIntegerRowUnit = 6;

// For the best instruction set of this processor. `has_small_weights`: all elements on the right
// are in [-64, 64].
IntegerLoops find_integer_loops(bool has_small_weights);

}  // namespace tessera::native
