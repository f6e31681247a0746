// Convolutions by Winograd's transformation. winograd.cc offers them, winograd_run.cc runs them,
// winograd_kernels.h has the source of the algorithm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tessera/backend.h"
#include "winograd_kernels.h"

namespace tessera::native {

// 3 x 3 taps, every pixel, all channels at once.
struct WinogradProblem {
  int64_t tile = 4;  // results along an axis: 4 or 2
  int64_t images = 1;
  int64_t from = 0;  // channels of the input
  int64_t to = 0;    // of the output
  WinogradPicture input;
  WinogradPicture output;
  int64_t pad_rows = 0;  // before the first row
  int64_t pad_columns = 0;
  // Places among the candidate's inputs.
  std::optional<size_t> bias;
  std::optional<size_t> addend;
  bool has_relu = false;

  int64_t places() const { return (tile + kTaps - 1) * (tile + kTaps - 1); }
  int64_t tile_rows() const { return (output.rows + tile - 1) / tile; }
  int64_t tile_columns() const { return (output.columns + tile - 1) / tile; }
  int64_t tiles() const { return images * tile_rows() * tile_columns(); }
  int64_t weight_bytes() const { return places() * from * to * int64_t{sizeof(float)}; }
  double product_flops() const {
    return 2.0 * static_cast<double>(tiles() * places()) * static_cast<double>(from * to);
  }
};

// Of weights [to, from, 3, 3]: transformed, in the panels of the products.
plugin::Pack winograd_pack(const WinogradProblem& problem);

int64_t winograd_workspace_bytes(const WinogradProblem& problem, int32_t threads);

std::unique_ptr<plugin::Kernel> make_winograd_kernel(const WinogradProblem& problem,
                                                     int32_t threads);

}  // namespace tessera::native
