// Heads of attention: how their vectors lie in the tensors that hold queries, keys and values, and
// what the type rules of this folder check about them.
#pragma once

#include <cstdint>

#include "base/threads/function_ref.h"
#include "ops/op.h"

namespace tessera::ops {

// --- Kernels -------------------------------------------------------------------------------------

// Vectors in memory: the one of head h at position s of batch b begins at element
// b * batch + h * head + s * position of `data`. The elements of a vector are adjacent.
struct HeadView {
  DataType type = DataType::Undefined;
  const void* data = nullptr;
  int64_t batch = 0;
  int64_t head = 0;
  int64_t position = 0;

  int64_t offset(int64_t b, int64_t h, int64_t s) const {
    return b * batch + h * head + s * position;
  }
  // Writes elements [begin, begin + count) of a vector to `target`.
  void read(int64_t b, int64_t h, int64_t s, int64_t begin, int64_t count, double* target) const;
};

// The same, for an output.
struct MutableHeadView {
  DataType type = DataType::Undefined;
  void* data = nullptr;
  int64_t batch = 0;
  int64_t head = 0;
  int64_t position = 0;

  // Rounds `count` numbers to the elements of a vector from `begin` on.
  void write(int64_t b, int64_t h, int64_t s, int64_t begin, int64_t count,
             const double* source) const;
  HeadView as_const() const { return {type, data, batch, head, position}; }
};

// Of a tensor [batch, heads, positions, size].
HeadView heads_first(const TensorView& tensor);
MutableHeadView heads_first(const MutableTensorView& tensor);
// Of a tensor [batch, positions, heads * size].
HeadView heads_last(const TensorView& tensor, int64_t heads);
MutableHeadView heads_last(const MutableTensorView& tensor, int64_t heads);
// `view` from element `elements` on.
HeadView advanced(HeadView view, int64_t elements);

// Keys or values: `past_length` positions of `past`, then those of `recent`.
struct HeadSequence {
  HeadView recent;
  HeadView past = {};
  int64_t past_length = 0;

  void read(int64_t b, int64_t h, int64_t s, int64_t begin, int64_t count, double* target) const {
    if (s < past_length) return past.read(b, h, s, begin, count, target);
    recent.read(b, h, s - past_length, begin, count, target);
  }
};

// The sizes of one set of heads.
struct HeadSizes {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t positions = 0;
  int64_t size = 0;
};

// Of a vector.
struct HeadPlace {
  int64_t b = 0;
  int64_t h = 0;
  int64_t s = 0;
};

// Calls visit(place) for each vector, in parallel. Nothing if vectors have no elements.
void for_each_vector(const KernelCall& call, const HeadSizes& sizes,
                     FunctionRef<void(const HeadPlace& place)> visit);
// Copies a vector of `size` elements, rounded to the type of `target`.
void copy_vector(const HeadView& source, const HeadPlace& from, const MutableHeadView& target,
                 const HeadPlace& to, int64_t size);
// Copies vectors of `source` to positions [first, first + sizes.positions) of `target`, rounded to
// its type.
void copy_heads(const KernelCall& call, const HeadView& source, const HeadSizes& sizes,
                const MutableHeadView& target, int64_t first = 0);
// Writes a whole sequence to an output [batch, heads, positions, size], if the node has it.
// `recent` are the sizes of its second part.
void store_sequence(const KernelCall& call, size_t output, const HeadSequence& sequence,
                    const HeadSizes& recent);

// Whether an output has elements. If none has, the product of some dimensions may exceed 64 bits.
bool has_output_elements(const KernelCall& call);

// --- Type rules ----------------------------------------------------------------------------------

// The known one of two dimensions that must be equal; `left` if neither is known.
Dim merged(const Dim& left, const Dim& right);

// The shape of an input that must have `rank` dimensions, which `meaning` names; nullptr if it is
// unknown or omitted. fail_input()s on another rank.
const Shape* shape_of_rank(const InferContext& context, size_t index, size_t rank,
                           const std::string& meaning);

// fail()s unless the attribute, if given, is at least 1. Returns it, or 0.
int64_t head_count(const InferContext& context, const char* attribute);
// fail()s unless `queries` is a multiple of `keys`, if both are known.
void check_groups(const InferContext& context, const Dim& queries, const Dim& keys);
// The size of each of `heads` heads in a hidden dimension of input `index`; fail_input()s if they
// do not divide it.
Dim head_size_of(const InferContext& context, size_t index, const Dim& hidden, int64_t heads);
// fail()s unless both or none of two inputs are given, such as past keys and past values.
void check_pair(const InferContext& context, size_t first, size_t second);
// fail_input()s unless dimension `axis` of an input can be `expected`.
void check_dim(const InferContext& context, size_t index, size_t axis, const Dim& expected);

// Of an input that must broadcast to `full`, aligned at the last dimensions: fail_input()s if it
// cannot. `may_be_shorter`: its last dimension may be any number up to that of `full`.
void check_broadcast_to(const InferContext& context, size_t index, const Shape& full,
                        bool may_be_shorter);

}  // namespace tessera::ops
