#include "ops/control_flow/pieces.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

namespace tessera::ops {
namespace {

// A tensor seen as `outer` blocks of `inner_bytes`, one for each index of an axis.
struct Blocks {
  Blocks(const Tensor& tensor, int64_t axis) {
    const std::vector<int64_t>& dims = tensor.dims();
    for (int64_t before = 0; before < axis; ++before) outer *= dims[static_cast<size_t>(before)];
    inner_bytes = element_bytes(tensor.type());
    for (auto after = static_cast<size_t>(axis) + 1; after < dims.size(); ++after) {
      inner_bytes *= dims[after];
    }
    length = dims[static_cast<size_t>(axis)];
  }

  int64_t outer = 1;
  int64_t length = 0;
  int64_t inner_bytes = 0;
};

constexpr int64_t kFirstCapacity = 8;

std::byte* bytes_of(Tensor& tensor) { return static_cast<std::byte*>(tensor.mutable_data()); }

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

Tensor slice(const Tensor& tensor, int64_t axis, int64_t begin, int64_t length) {
  const Blocks blocks(tensor, axis);
  std::vector<int64_t> dims = tensor.dims();
  dims[static_cast<size_t>(axis)] = length;
  Tensor piece(tensor.type(), std::move(dims));
  const auto* from = static_cast<const std::byte*>(tensor.data()) + begin * blocks.inner_bytes;
  auto* to = static_cast<std::byte*>(piece.mutable_data());
  for (int64_t outer = 0; outer < blocks.outer; ++outer) {
    copy_bytes(to, from, length * blocks.inner_bytes);
    to += length * blocks.inner_bytes;
    from += blocks.length * blocks.inner_bytes;
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
    const int64_t bytes = Blocks(tensor, axis).length * blocks.inner_bytes;
    const auto* from = static_cast<const std::byte*>(tensor.data());
    auto* to = static_cast<std::byte*>(whole.mutable_data()) + begin;
    for (int64_t outer = 0; outer < blocks.outer; ++outer) {
      copy_bytes(to, from, bytes);
      from += bytes;
      to += blocks.length * blocks.inner_bytes;
    }
    begin += bytes;
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
  const auto* from = static_cast<const std::byte*>(tensor.data());
  auto* to = static_cast<std::byte*>(moved.mutable_data());
  for (int64_t index = 0; index < blocks.length; ++index) {
    for (int64_t outer = 0; outer < blocks.outer; ++outer) {
      copy_bytes(to + (outer * blocks.length + index) * blocks.inner_bytes, from,
                 blocks.inner_bytes);
      from += blocks.inner_bytes;
    }
  }
  return moved;
}

Tensor like(const Tensor& tensor) { return {tensor.type(), tensor.dims()}; }

bool has_same_size(const Tensor& left, const Tensor& right) {
  return left.type() == right.type() && left.dims() == right.dims() && !left.is_sequence() &&
         !left.is_empty();
}

bool GrowingTensor::add(const Tensor& element) {
  if (count_ == 0) {
    type_ = element.type();
    dims_ = element.dims();
    element_bytes_ = element.bytes();
  } else if (type_ != element.type() || dims_ != element.dims()) {
    return false;
  }
  copy_bytes(static_cast<std::byte*>(add_place()), static_cast<const std::byte*>(element.data()),
             element_bytes_);
  return true;
}

void* GrowingTensor::add_place() {
  reserve_one();
  return bytes_of(memory_) + count_++ * element_bytes_;
}

void GrowingTensor::reserve_one() {
  if (count_ < capacity_) return;
  capacity_ = std::max<int64_t>(kFirstCapacity, 2 * capacity_);
  Tensor larger(DataType::UInt8, {capacity_ * element_bytes_});
  if (count_ > 0) copy_bytes(bytes_of(larger), bytes_of(memory_), count_ * element_bytes_);
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
