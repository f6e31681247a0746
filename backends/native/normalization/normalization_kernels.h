// The loops of normalizations, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the population, not of a sample
};

// (x - mean) * factor + shift, then perhaps Relu.
struct Affine {
  float mean = 0;
  float factor = 1;
  float shift = 0;
  bool has_relu = false;
};

// Same as Affine, with separate parameters for each of `period` consecutive elements.
struct PeriodicAffine {
  const float* means = nullptr;
  const float* factors = nullptr;
  const float* shifts = nullptr;
  int64_t period = 1;
  bool has_relu = false;
};

// The normalization of each row: ((x - mean) / deviation) * scale + shift. Null pointers are left
// out.
struct RowNormalization {
  int64_t length = 1;
  double epsilon = 0;
  bool is_centred = true;  // else the mean is taken as 0
  const float* scale = nullptr;
  const float* shift = nullptr;
};

// Each element is divided by (bias + factor * sum of squares) ^ exponent, with the squares of the
// elements from `before` rows before it to `after` rows behind it, as far as there are such rows.
struct LocalResponse {
  int64_t before = 0;
  int64_t after = 0;
  float factor = 0;
  float bias = 1;
  float exponent = 0.75F;
};

// `to` may be equal to `from`, except in local_response.
struct NormalizationLoops {
  Moments (*moments)(const float* from, int64_t length);
  void (*affine)(const float* from, float* to, int64_t count, const Affine& parameters);
  void (*periodic)(const float* from, float* to, int64_t count, const PeriodicAffine& parameters);
  // `means` and `inverses`, one for each row, may be null.
  void (*rows)(const float* from, float* to, int64_t rows, const RowNormalization& parameters,
               float* means, float* inverses);
  // Rows [begin, end) of `rows` rows, which are `stride` apart, each with `width` contiguous
  // elements.
  void (*local_response)(const float* from, float* to, int64_t begin, int64_t end, int64_t rows,
                         int64_t stride, int64_t width, const LocalResponse& parameters);
};

// For the best instruction set of this processor.
NormalizationLoops find_normalization_loops();

// The parameters that subtract moments.mean exactly: the part that float32 loses is added to the
// shift.
Affine affine_of(const Moments& moments, double factor, double shift);

}  // namespace tessera::native
