// Discrete Fourier transforms of any length in O(n log n), in float64. Shared by DFT and STFT.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/op.h"

namespace tessera::ops {

struct Complex {
  double real = 0;
  double imaginary = 0;
};

// Whether a transform goes from the signal to its spectrum or back.
enum class FourierDirection : uint8_t { Forward, Inverse };

// The passes of a transform whose length has no prime factor above kMaxRadix: Stockham's
// algorithm (Van Loan, Computational Frameworks for the Fast Fourier Transform, 1.7), which needs
// no bit reversal, in passes of radix 4, 2 and odd numbers.
class RadixPlan {
 public:
  static constexpr int64_t kMaxRadix = 13;

  static bool is_possible(int64_t length);

  RadixPlan(int64_t length, FourierDirection direction, std::pmr::memory_resource& memory);

  // In place; both spans have `length` elements. The inverse is not divided by the length.
  void transform(std::span<Complex> signal, std::span<Complex> work) const;

 private:
  int64_t length_;
  std::array<int8_t, 64> radices_ = {};  // 0 after the last one
  std::pmr::vector<Complex> roots_;      // exp(-2 pi i k / length), or + of the inverse
};

// A transform of one length. Constant after construction, so threads may share it.
//
// A length with a larger prime factor becomes a convolution with a chirp (Bluestein 1970), which
// transforms of a power of two compute.
class FourierPlan {
 public:
  // `length` is at least 1.
  FourierPlan(int64_t length, FourierDirection direction, std::pmr::memory_resource& memory);

  int64_t length() const { return length_; }
  // The number of elements that transform() needs in addition to the signal.
  int64_t work_length() const { return chirp_.empty() ? length_ : 2 * padded_; }

  // In place: y[k] = sum over n of x[n] exp(-2 pi i k n / length); the inverse has +, and is
  // divided by the length.
  void transform(std::span<Complex> signal, std::span<Complex> work) const;

 private:
  void transform_by_chirp(std::span<Complex> signal, std::span<Complex> work) const;

  int64_t length_;
  FourierDirection direction_;
  int64_t padded_;  // length of the transforms by passes
  RadixPlan radix_;
  std::pmr::vector<Complex> chirp_;           // empty if the passes alone suffice
  std::pmr::vector<Complex> chirp_spectrum_;  // of the conjugate, divided by padded_
};

// Calls body(index, signal, work) for each index in [0, count) in parallel, with memory for
// plan.transform().
template <class Body>
void for_each_transform(const KernelCall& call, const FourierPlan& plan, int64_t count,
                        const Body& body) {
  const int64_t grain = 4096 / plan.length() + 1;
  const auto length = static_cast<size_t>(plan.length());
  const size_t slot_length = length + static_cast<size_t>(plan.work_length());
  std::pmr::vector<Complex> memory(
      slot_length * static_cast<size_t>(slot_count(call.pool, count, grain)), &call.scratch);
  parallel_for_in_slots(call.pool, count, grain, [&](int64_t slot, int64_t begin, int64_t end) {
    const std::span<Complex> mine =
        std::span(memory).subspan(static_cast<size_t>(slot) * slot_length, slot_length);
    for (int64_t index = begin; index < end; ++index) {
      body(index, mine.first(length), mine.subspan(length));
    }
  });
}

// About 5 n log2(n) operations for each transform, which gives n of the output's complex elements.
int64_t fourier_flops(const Node& node, std::span<const Type> inputs,
                      std::span<const Type> outputs);

}  // namespace tessera::ops
