#include "ops/attention/rotation.h"

#include <memory_resource>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/convert_elements.h"

namespace tessera::ops {
namespace {

// Rotates the first 2 * half elements of a vector in place.
void rotate_vector(double* vector, const double* cosines, const double* sines, int64_t half,
                   bool is_interleaved) {
  const int64_t first_step = is_interleaved ? 2 : 1;
  const int64_t distance = is_interleaved ? 1 : half;
  for (int64_t index = 0; index < half; ++index) {
    double& real = vector[index * first_step];
    double& imaginary = vector[index * first_step + distance];
    const double rotated = cosines[index] * real - sines[index] * imaginary;
    imaginary = sines[index] * real + cosines[index] * imaginary;
    real = rotated;
  }
}

}  // namespace

void rotate_heads(const KernelCall& call, const Rotation& rotation, const HeadView& source,
                  const HeadSizes& sizes, const MutableHeadView& target,
                  FunctionRef<int64_t(int64_t b, int64_t s)> row) {
  if (sizes.heads == 0 || sizes.size == 0) return;
  const int64_t half = rotation.size / 2;
  const HeadView cosines = {rotation.cosines.type, rotation.cosines.data, 0, 0, half};
  const HeadView sines = {rotation.sines.type, rotation.sines.data, 0, 0, half};
  const int64_t positions = sizes.batch * sizes.positions;
  const int64_t grain = kElementGrain / (sizes.heads * sizes.size) + 1;
  // For each slot: a vector, the cosines and the sines.
  const int64_t slots = slot_count(call.pool, positions, grain);
  const int64_t slot_size = sizes.size + 2 * half;
  std::pmr::vector<double> buffers(static_cast<size_t>(slots * slot_size), &call.scratch);
  parallel_for_in_slots(call.pool, positions, grain, [&](int64_t slot, int64_t begin, int64_t end) {
    double* const vector = buffers.data() + slot * slot_size;
    double* const cosine = vector + sizes.size;
    double* const sine = cosine + half;
    for (int64_t place = begin; place < end; ++place) {
      const int64_t b = place / sizes.positions;
      const int64_t s = place % sizes.positions;
      const int64_t angles = row(b, s);
      cosines.read(0, 0, angles, 0, half, cosine);
      sines.read(0, 0, angles, 0, half, sine);
      for (int64_t h = 0; h < sizes.heads; ++h) {
        source.read(b, h, s, 0, sizes.size, vector);
        rotate_vector(vector, cosine, sine, half, rotation.is_interleaved);
        target.write(b, h, s, 0, sizes.size, vector);
      }
    }
  });
}

}  // namespace tessera::ops
