// The loops of direct.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

#include "base/activation.h"
#include "base/window.h"

namespace tessera::native {

// A convolution by its definition, of few input channels to some output channels side by side.
// Distances count elements.
struct DirectProblem {
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;
  int64_t in_channels = 0;  // that an output channel reads
  int64_t in_pixel = 0;     // between neighbouring pixels of the input
  int64_t in_channel = 1;   // between its neighbouring channels
  int64_t out_pixel = 0;
  // Whether a vector of outputs has several groups of channels, each of in_channels, and reads the
  // same vector of inputs. Else all outputs read the same channels.
  bool has_groups_in_vector = false;
  Activation activation;
};

struct DirectOperands {
  const float* from = nullptr;  // the first channel that is read, of the first pixel of the image
  // [rows of taps, in_channels, columns of taps], and of each tap whole vectors of output channels,
  // 0 behind the last channel.
  const float* weights = nullptr;
  const float* bias = nullptr;    // null: none
  const float* addend = nullptr;  // of the row, like `to`; null: none
  float* to = nullptr;            // the first pixel of the row
  int64_t channels = 0;           // of outputs, at most DirectLoops::channels
};

struct DirectLoops {
  int64_t lanes = 0;     // of a vector
  int64_t channels = 0;  // of outputs that are computed together, at most; whole vectors
  // Computes one row of outputs.
  void (*compute_row)(const DirectProblem& problem, const DirectOperands& operands,
                      int64_t row) = nullptr;
};

DirectLoops find_direct_loops(const DirectProblem& problem);

}  // namespace tessera::native
