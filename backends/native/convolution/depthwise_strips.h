// A convolution of each channel alone with the convolutions of one tap around it, as mobile
// networks have them, in strips: some rows of the values between them exist at a time, and stay in
// the cache of a core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/activation.h"
#include "base/window.h"
#include "convolution/convolution_group.h"
#include "convolution/depthwise_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// A convolution of one tap. Ports are indices of inputs.
struct PointwiseStage {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  size_t weights = 0;          // port
  std::optional<size_t> bias;  // port
  Activation activation;
};

// The computation of the kernel: expand, depthwise, project. Either `expand` or `project` may be
// absent, but not both. Input, addend and output are in nhwc.
struct DepthwiseStrips {
  ConvolutionSizes sizes;  // of the depthwise convolution, as the following members
  PaddingRule padding = PaddingRule::Fixed;
  int64_t channels = 1;
  DepthwiseProblem depthwise;
  size_t depthwise_weights = 0;          // port, with the taps first
  std::optional<size_t> depthwise_bias;  // port
  std::optional<PointwiseStage> expand;
  std::optional<PointwiseStage> project;
  std::optional<size_t> addend;  // port: of the projection

  void set_sizes(const ConvolutionSizes& other);
  // The workspace of the kernel for `threads` threads.
  int64_t workspace_bytes(int64_t threads) const;
  double flops() const;
  // The size of the values between the convolutions, which need not be in memory.
  int64_t saved_bytes() const;
};

std::unique_ptr<plugin::Kernel> make_strips_kernel(const DepthwiseStrips& strips, int64_t threads);

}  // namespace tessera::native
