// Tensors taken apart and put together along an axis: for lists, and for what loops read and write
// piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::ops {

// The elements [begin, begin + length) of an axis, copied.
Tensor slice(const Tensor& tensor, int64_t axis, int64_t begin, int64_t length);

// The tensors one after another along `axis`. They must have the same type, the same rank, and the
// same dimensions but that one.
Tensor concatenate(std::span<const Tensor> tensors, int64_t axis);

// The tensor with axis 0 moved to `axis`.
Tensor with_first_axis_at(const Tensor& tensor, int64_t axis);

// A new tensor of the same type and dimensions.
Tensor like(const Tensor& tensor);

// Whether both are tensors of the same type and dimensions, whose elements a plan has memory for:
// numbers or bools.
bool has_same_size(const Tensor& left, const Tensor& right);

// A tensor that grows along a new first axis by one element after the other. It is written in
// place: memory doubles when it is full.
class GrowingTensor {
 public:
  // False if `element` has another type or other dimensions than those before; then it is not
  // added.
  bool add(const Tensor& element);
  // The place of one more element like those before, for the caller to write; only after add(), and
  // not of strings.
  void* add_place();
  // The tensor of all elements; nullopt if there are none. The object is empty afterwards.
  std::optional<Tensor> take();

  // Of one element; only after one was added.
  const std::vector<int64_t>& dims() const { return dims_; }

 private:
  void reserve_one();

  DataType type_ = DataType::Undefined;
  std::vector<int64_t> dims_;
  int64_t numbers_ = 0;  // of each element
  int64_t count_ = 0;
  int64_t capacity_ = 0;  // in elements
  Tensor memory_;
};

}  // namespace tessera::ops
