// The loops of the normalisations, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>

namespace tessera::native {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the whole population
};

// (x - mean) * factor + shift, and of that what Relu leaves.
struct Affine {
  float mean = 0;
  float factor = 1;
  float shift = 0;
  bool has_relu = false;
};

// The same with parameters of their own for each of `period` neighbours.
struct PeriodicAffine {
  const float* means = nullptr;
  const float* factors = nullptr;
  const float* shifts = nullptr;
  int64_t period = 1;
  bool has_relu = false;
};

// What becomes of each row: ((x - mean) / deviation) * scale + shift. Null pointers are left out.
struct RowNormalization {
  int64_t length = 1;
  double epsilon = 0;
  bool is_centred = true;  // else the mean counts as 0
  const float* scale = nullptr;
  const float* shift = nullptr;
};

// Each element divided by (bias + factor * sum of the squares around it) ^ exponent, around it
// meaning `before` rows before to `after` rows behind, as far as there are any.
struct LocalResponse {
  int64_t before = 0;
  int64_t after = 0;
  float factor = 0;
  float bias = 1;
  float exponent = 0.75F;
};

// Everywhere `to` may be `from`, but for local_response.
struct NormalizationLoops {
  Moments (*moments)(const float* from, int64_t length);
  void (*affine)(const float* from, float* to, int64_t count, const Affine& parameters);
  void (*periodic)(const float* from, float* to, int64_t count, const PeriodicAffine& parameters);
  // `means` and `inverses`, one for each row, may be null.
  void (*rows)(const float* from, float* to, int64_t rows, const RowNormalization& parameters,
               float* means, float* inverses);
  // Rows [begin, end) of `rows`, `stride` apart, of which `width` neighbours each.
  void (*local_response)(const float* from, float* to, int64_t begin, int64_t end, int64_t rows,
                         int64_t stride, int64_t width, const LocalResponse& parameters);
};

// For the best instruction set of this processor.
NormalizationLoops find_normalization_loops();

// The parameters that subtract moments.mean exactly: what float32 loses of it goes into the shift.
Affine affine_of(const Moments& moments, double factor, double shift);

}  // namespace tessera::native
