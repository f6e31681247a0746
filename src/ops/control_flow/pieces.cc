#include "ops/control_flow/pieces.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace tessera::ops {
namespace {

// A tensor seen as `outer` blocks of `length` pieces of `inner` elements: a piece for each index of
// an axis.
struct Blocks {
  Blocks(const Tensor& tensor, int64_t axis) {
    const std::vector<int64_t>& dims = tensor.dims();
    for (int64_t before = 0; before < axis; ++before) outer *= dims[static_cast<size_t>(before)];
    for (auto after = static_cast<size_t>(axis) + 1; after < dims.size(); ++after) {
      inner *= dims[after];
    }
    length = dims[static_cast<size_t>(axis)];
  }

  int64_t outer = 1;
  int64_t length = 0;
  int64_t inner = 1;
};

constexpr int64_t kFirstCapacity = 8;

std::byte* bytes_of(Tensor& tensor) { return static_cast<std::byte*>(tensor.mutable_data()); }

// Copies `count` elements between tensors of one type.
void copy_elements(const Tensor& from, int64_t from_begin, Tensor& to, int64_t to_begin,
                   int64_t count) {
  if (count == 0) return;
  if (from.is_strings()) {
    std::copy_n(from.as<std::string>().begin() + from_begin, count,
                to.mutable_as<std::string>().begin() + to_begin);
    return;
  }
  const int64_t bytes = element_bytes(from.type());
  std::memcpy(bytes_of(to) + to_begin * bytes,
              static_cast<const std::byte*>(from.data()) + from_begin * bytes,
              static_cast<size_t>(count * bytes));
}

}  // namespace

Tensor slice(const Tensor& tensor, int64_t axis, int64_t begin, int64_t length) {
  const Blocks blocks(tensor, axis);
  std::vector<int64_t> dims = tensor.dims();
  dims[static_cast<size_t>(axis)] = length;
  Tensor piece(tensor.type(), std::move(dims));
  const int64_t count = length * blocks.inner;
  for (int64_t outer = 0; outer < blocks.outer; ++outer) {
    copy_elements(tensor, (outer * blocks.length + begin) * blocks.inner, piece, outer * count,
                  count);
  }
  return piece;
}

Tensor concatenate(std::span<const Tensor> tensors, int64_t axis) {
  std::vector<int64_t> dims = tensors.front().dims();
  int64_t& length = dims[static_cast<size_t>(axis)];
  length = 0;
  for (const Tensor& tensor : tensors) length += tensor.dims()[static_cast<size_t>(axis)];
  Tensor whole(tensors.front().type(), std::move(dims));
  const Blocks blocks(whole, axis);
  int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const int64_t count = Blocks(tensor, axis).length * blocks.inner;
    for (int64_t outer = 0; outer < blocks.outer; ++outer) {
      copy_elements(tensor, outer * count, whole, outer * blocks.length * blocks.inner + begin,
                    count);
    }
    begin += count;
  }
  return whole;
}

Tensor with_first_axis_at(const Tensor& tensor, int64_t axis) {
  if (axis == 0) return tensor;
  const std::vector<int64_t>& from_dims = tensor.dims();
  std::vector<int64_t> dims(from_dims.begin() + 1, from_dims.end());
  dims.insert(dims.begin() + axis, from_dims.front());
  Tensor moved(tensor.type(), std::move(dims));
  const Blocks blocks(moved, axis);
  int64_t from = 0;
  for (int64_t index = 0; index < blocks.length; ++index) {
    for (int64_t outer = 0; outer < blocks.outer; ++outer) {
      copy_elements(tensor, from, moved, (outer * blocks.length + index) * blocks.inner,
                    blocks.inner);
      from += blocks.inner;
    }
  }
  return moved;
}

Tensor like(const Tensor& tensor) { return {tensor.type(), tensor.dims()}; }

bool has_same_size(const Tensor& left, const Tensor& right) {
  return left.type() == right.type() && left.dims() == right.dims() &&
         element_bytes(left.type()) > 0;
}

bool GrowingTensor::add(const Tensor& element) {
  if (count_ == 0) {
    type_ = element.type();
    dims_ = element.dims();
    numbers_ = element.elements();
  } else if (type_ != element.type() || dims_ != element.dims()) {
    return false;
  }
  reserve_one();
  copy_elements(element, 0, memory_, count_++ * numbers_, numbers_);
  return true;
}

void* GrowingTensor::add_place() {
  reserve_one();
  return bytes_of(memory_) + count_++ * numbers_ * element_bytes(type_);
}

void GrowingTensor::reserve_one() {
  if (count_ < capacity_) return;
  capacity_ = std::max<int64_t>(kFirstCapacity, 2 * capacity_);
  Tensor larger(type_, {capacity_ * numbers_});
  if (count_ > 0) copy_elements(memory_, 0, larger, 0, count_ * numbers_);
  memory_ = std::move(larger);
}

std::optional<Tensor> GrowingTensor::take() {
  if (count_ == 0) return std::nullopt;
  std::vector<int64_t> dims = dims_;
  dims.insert(dims.begin(), std::exchange(count_, 0));
  capacity_ = 0;
  const auto memory = std::make_shared<Tensor>(std::exchange(memory_, Tensor()));
  return Tensor::owning(type_, std::move(dims), memory, memory->mutable_data());
}

}  // namespace tessera::ops
