// Linear and cubic interpolation, one axis after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "resize/resample.h"
#include "resize/resize_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// Resamples one axis of a dense float32 tensor [outer, input, inner] to [outer, output, inner].
struct ResamplePass {
  Taps taps;
  int64_t outer = 1;
  int64_t input = 0;
  int64_t output = 0;
  int64_t inner = 1;
  float outside = 0;  // for extrapolated elements
  // Whether the taps are stored tap by tap for a whole line, because few elements are contiguous.
  bool is_gathered = false;

  int64_t lines() const { return is_gathered ? outer : outer * output; }
  int64_t output_elements() const { return outer * output * inner; }
};

// The passes that resize a tensor, whose axes are in the order of memory. Passes that shrink come
// first, so that no intermediate tensor is larger than both input and output.
std::vector<ResamplePass> resample_passes(const ResampleOptions& options,
                                          const std::vector<plugin::ResizeAxis>& axes);

// Runs the passes. Leading axes that do not change are planes. If there are enough planes for all
// threads, each is resized in its own part of the workspace.
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
  int64_t scratch_elements_ = 0;  // of each of two buffers between passes
  int64_t slots_ = 1;             // planes that are resized at a time
  ResizeLoops loops_;
};

}  // namespace tessera::native
