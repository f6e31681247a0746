// How a loop nest is divided between compiled code and C++. Compiled code has up to four loops; C++
// passes through the other axes (fused_kernel.h). Only KernelShape decides the text of the code, so
// nests of other sizes and strides share it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tessera/backend_fusion.h"

namespace tessera::jit {

// The loops of compiled code. Lanes of vectors are consecutive points along Lane, which is either
// the innermost reduced loop or a kept loop around all reduced ones.
enum Loop : size_t { kRow = 0, kReducedOuter = 1, kReducedInner = 2, kLane = 3 };
constexpr size_t kLoopCount = 4;

enum class Step : uint8_t {
  Zero,  // the same element all along the loop
  One,   // consecutive elements; only along Lane
  Other
};

struct KernelShape {
  bool has_reduced_outer = false;
  bool has_reduced_inner = false;  // never with is_lane_reduced
  bool is_lane_reduced = false;
  // Results are written past the caches. Each row of each result must then begin at a multiple of
  // kStreamAlignment; otherwise the other function of the code is used.
  bool is_streaming = false;
  std::vector<std::array<Step, kLoopCount>> steps;  // of the operands, then of the results

  bool has_reduced() const { return has_reduced_outer || has_reduced_inner || is_lane_reduced; }
};

// An axis outside of compiled code. Strides are in bytes, of each access.
struct OuterAxis {
  int64_t size = 1;
  std::vector<int64_t> strides;
};

struct KernelLoops {
  KernelShape shape;
  std::array<int64_t, kLoopCount> sizes = {1, 1, 1, 1};
  std::vector<int64_t> strides;  // in bytes: kLoopCount for each access
  std::vector<OuterAxis> outer;  // kept axes, the outermost first
  std::vector<int64_t> offsets;  // in bytes
};

constexpr int64_t kStreamAlignment = 64;
constexpr size_t kMaxOuterAxes = 16;
constexpr size_t kMaxAccesses = 256;

// Results of more than `cached_bytes` are streamed, if memory decides the time of the group.
// Throws Failure (TESSERA_UNSUPPORTED) if the nest has more reduced axes, axes or accesses than
// compiled code supports.
KernelLoops kernel_loops(const plugin::FusedGroup& group, const plugin::LoopNest& nest,
                         int64_t cached_bytes);

}  // namespace tessera::jit
