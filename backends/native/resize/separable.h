// Linear and cubic interpolation, one axis after the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "resize/resample.h"
#include "tessera/backend.h"

namespace tessera::native {

// Resamples one axis of a dense float32 tensor [outer, input, inner] to [outer, output, inner].
struct ResamplePass {
  plugin::ResizeAxis axis;
  Taps taps;
  int64_t outer = 1;
  int64_t inner = 1;
  // Whether the taps are stored tap by tap for a whole line, because few elements are contiguous.
  bool is_gathered = false;

  int64_t lines() const { return is_gathered ? outer : outer * axis.output; }
  int64_t output_elements() const { return outer * axis.output * inner; }
  int64_t table_lines() const { return axis.output * (is_gathered ? inner : 1); }
};

// How a tensor of known sizes is resized, one pass after the other. Leading axes that do not change
// are planes. If there are enough planes for all threads, each is resized in its own part of the
// scratch memory.
struct SeparablePlan {
  static constexpr size_t kMaxAxes = 8;

  std::array<ResamplePass, kMaxAxes> passes;  // of one plane
  size_t pass_count = 0;
  int64_t planes = 1;
  int64_t input_elements = 1;  // of a plane
  int64_t output_elements = 1;
  int64_t scratch_elements = 0;  // of each of two buffers between passes
  int64_t slots = 1;             // planes that are resized at a time

  int64_t scratch_bytes() const;
  // The number of entries in the largest of the tables of weights.
  int64_t most_entries() const;
  int64_t table_bytes() const;
  // Places the tables of all passes in `memory`, which is aligned for int32_t, and fills them.
  void fill_tables(const ResampleOptions& options, std::byte* memory);
};

// The plan without its tables; `axes` are in the order of memory, at most SeparablePlan::kMaxAxes.
// Passes that shrink come first, so that no intermediate tensor is larger than both input and
// output.
SeparablePlan separable_plan(const ResampleOptions& options,
                             std::span<const plugin::ResizeAxis> axes, int64_t threads);

// `scratch` has as many bytes as the plan says.
void run_separable(plugin::RunContext& context, const ResampleOptions& options,
                   const SeparablePlan& plan, const float* from, float* to, float* scratch);

}  // namespace tessera::native
