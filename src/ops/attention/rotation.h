// Rotary position embedding: Su et al., 2021, https://arxiv.org/abs/2104.09864. Pairs of elements
// of a vector are rotated by angles that depend on its position.
#pragma once

#include <cstdint>
#include <memory_resource>

#include "base/threads/function_ref.h"
#include "ops/attention/heads.h"
#include "ops/op.h"

namespace tessera::ops {

struct Rotation {
  // The cosines and sines: rows of `size / 2` elements.
  TensorView cosines;
  TensorView sines;
  int64_t size = 0;             // the leading elements of a vector that are rotated; even
  bool is_interleaved = false;  // whether pairs are adjacent; else, one of each half
};

// Rotates all vectors of `source` into `target`, which must not overlap. row(b, s) is the row of
// the cosines and sines for position s of batch b. Elements beyond those that are rotated are
// copied.
void rotate_heads(const KernelCall& call, const Rotation& rotation, const HeadView& source,
                  const HeadSizes& sizes, const MutableHeadView& target,
                  FunctionRef<int64_t(int64_t b, int64_t s)> row);

}  // namespace tessera::ops
