// Linear and cubic interpolation, one axis after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "resample.h"
#include "resize_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// Resamples one axis of a dense float32 tensor [outer, input, inner] to [outer, output, inner].
struct ResamplePass {
  Taps taps;
  int64_t outer = 1;
  int64_t input = 0;
  int64_t output = 0;
  int64_t inner = 1;
  float outside = 0;  // where the taps say that an element is extrapolated
  // Whether the taps are spread out over all of a line, tap by tap, as few elements are side by
  // side.
  bool is_picked = false;

  int64_t lines() const { return is_picked ? outer : outer * output; }
  int64_t output_elements() const { return outer * output * inner; }
};

// The passes that bring a tensor of `axes` to its new size, of axes in the order of memory; those
// that shrink come first, so that nothing between is larger than both input and output.
std::vector<ResamplePass> resample_passes(const ResampleOptions& options,
                                          const std::vector<ResampleAxis>& axes);

// Runs the passes. The leading axes along which nothing changes are planes, each of which is done
// in its own piece of the workspace where there are enough for all threads.
class SeparableKernel : public plugin::Kernel {
 public:
  SeparableKernel(std::vector<ResamplePass> passes, int64_t planes, int64_t input_elements,
                  int64_t output_elements, int32_t threads);

  void run(plugin::RunContext& context, std::span<const plugin::Buffer> inputs,
           std::span<const plugin::Buffer> outputs) override;
  int64_t workspace_bytes() const override;

 private:
  void run_lines(const ResamplePass& pass, const float* from, float* to, int64_t begin,
                 int64_t end) const;
  template <class RunPass>
  void run_plane(const float* from, float* to, float* scratch, const RunPass& run_pass) const;

  std::vector<ResamplePass> passes_;  // of one plane
  int64_t planes_;
  int64_t input_elements_;  // of a plane
  int64_t output_elements_;
  int64_t scratch_elements_ = 0;  // of one of two buffers between passes
  int64_t slots_ = 1;             // planes that are done at once
  ResizeLoops loops_;
};

}  // namespace tessera::native
