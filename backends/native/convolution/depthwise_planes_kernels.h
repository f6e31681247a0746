// The loops of depthwise_planes.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

#include "base/activation.h"
#include "base/window.h"

namespace tessera::native {

// Some outputs of a plane.
struct PlaneTile {
  int64_t first_row = 0;
  int64_t first_column = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// A convolution of planes by a window of any size, stride and dilation.
//
// The inputs of a tile are copied into a buffer, with the padding around them. A row of inputs
// becomes a line for each phase of the stride: with a stride of 2 one of even columns, one of odd
// ones. So the inputs that a tap multiplies in a row of outputs are side by side in the buffer.
class PlaneProblem {
 public:
  PlaneProblem(const plugin::WindowAxis& rows, const plugin::WindowAxis& columns,
               const Activation& activation);

  const plugin::WindowAxis& rows() const { return rows_; }
  const plugin::WindowAxis& columns() const { return columns_; }
  const Activation& activation() const { return activation_; }

  // The largest number of rows and columns of outputs in a tile.
  int64_t tile_rows() const { return tile_rows_; }
  int64_t tile_columns() const { return tile_columns_; }
  // Elements of the buffer for a tile of this size.
  int64_t buffer_elements() const { return buffer_elements(tile_rows_); }

  int64_t phases() const { return phases_; }
  int64_t line() const { return line_; }  // elements between neighbouring lines of the buffer
  int64_t taps() const { return rows_.kernel * columns_.kernel; }
  // For each tap, the distance from the first input of the window to the one it multiplies.
  void write_tap_offsets(int64_t* to) const;

 private:
  int64_t buffer_elements(int64_t rows) const {
    return ((rows - 1) * rows_.stride + rows_.extent()) * phases_ * line_;
  }

  plugin::WindowAxis rows_;
  plugin::WindowAxis columns_;
  Activation activation_;
  int64_t tile_rows_ = 1;
  int64_t tile_columns_ = 1;
  int64_t phases_ = 1;
  int64_t line_ = 1;
};

struct PlaneOperands {
  const float* from = nullptr;     // a plane of inputs
  const float* weights = nullptr;  // by tap
  const int64_t* tap_offsets = nullptr;
  float bias = 0;
  float* to = nullptr;      // a plane of outputs
  float* buffer = nullptr;  // of buffer_elements(), aligned to 64 bytes
};

// Computes the outputs of a tile.
using PlaneLoop = void (*)(const PlaneProblem& problem, const PlaneTile& tile,
                           const PlaneOperands& operands);
PlaneLoop find_plane_loop();

}  // namespace tessera::native
