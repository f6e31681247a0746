// Convolutions by Winograd's algorithm. winograd.cc proposes them, winograd_run.cc runs them,
// winograd_kernels.h names the source of the algorithm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/window.h"
#include "convolution/convolution_group.h"
#include "convolution/winograd_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// A convolution with 3 x 3 taps, stride 1 and one group.
struct WinogradProblem {
  int64_t tile = 4;  // outputs per tile along an axis: 4 or 2
  ConvolutionSizes sizes;
  PaddingRule padding = PaddingRule::Fixed;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t panel = 0;  // output channels of a panel of weights: see winograd_panel()
  WinogradFeatureMap input;
  WinogradFeatureMap output;
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;
  // Indices of inputs of the candidate.
  std::optional<size_t> bias;
  std::optional<size_t> addend;
  bool has_relu = false;

  void set_sizes(const ConvolutionSizes& other);
  int64_t side() const { return tile + kTaps - 1; }  // input pixels of a tile along an axis
  int64_t positions() const { return side() * side(); }
  // The planes of packed weights: the positions, and the untransformed taps that no position has.
  int64_t weight_planes() const { return positions() + (has_corners() ? 5 : kTaps * kTaps); }
  bool has_corners() const { return tile == 2; }
  int64_t tap_plane(int64_t row, int64_t column) const;
  int64_t tile_rows() const { return (output.rows + tile - 1) / tile; }
  int64_t tile_columns() const { return (output.columns + tile - 1) / tile; }
  int64_t tiles() const { return sizes.images * tile_rows() * tile_columns(); }
  // The workspace of the kernel for `threads` threads.
  int64_t workspace_bytes(int64_t threads) const;
  int64_t plane_bytes() const { return in_channels * out_channels * int64_t{sizeof(float)}; }
  // Weights that are read for each pass.
  int64_t transformed_bytes() const { return positions() * plane_bytes(); }
  double gemm_flops() const {
    return 2.0 * static_cast<double>(tiles() * positions()) *
           static_cast<double>(in_channels * out_channels);
  }
};

// The number of output channels of a panel of weights: as many as the matrix products take at once,
// or fewer if threads that share the panels then get equal numbers.
int64_t winograd_panel(const WinogradProblem& problem, int64_t threads);

// Transforms weights [out_channels, in_channels, 3, 3] and packs them into the panels of the matrix
// products, with the weights as they are for uneven tiles.
plugin::Pack winograd_pack(const WinogradProblem& problem);

std::unique_ptr<plugin::Kernel> make_winograd_kernel(const WinogradProblem& problem,
                                                     int64_t threads);

}  // namespace tessera::native
