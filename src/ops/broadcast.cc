#include "ops/broadcast.h"

#include <algorithm>
#include <string>

#include "base/containers/small_vector.h"
#include "base/errors/check.h"

namespace tessera::ops {
namespace {

// For each output dimension, the distance in elements between consecutive indices of an input that
// is aligned at the last dimension; 0 along broadcast dimensions.
std::pmr::vector<int64_t> strides_in(std::span<const int64_t> output,
                                     std::span<const int64_t> input,
                                     std::pmr::memory_resource* memory) {
  TESSERA_CHECK(input.size() <= output.size(), "the rule refuses inputs of a higher rank");
  std::pmr::vector<int64_t> strides(output.size(), 0, memory);
  int64_t stride = 1;
  for (size_t back = 1; back <= input.size(); ++back) {
    const int64_t dim = input[input.size() - back];
    TESSERA_CHECK(dim == 1 || dim == output[output.size() - back],
                  "the rule refuses inputs that do not broadcast");
    if (dim != 1) strides[output.size() - back] = stride;
    stride *= dim;
  }
  return strides;
}

}  // namespace

std::optional<Dim> broadcast(const Dim& left, const Dim& right) {
  if (left == right || right == Dim(1)) return left;
  if (left == Dim(1)) return right;
  if (left.is_known() && right.is_known()) return std::nullopt;
  if (left.is_known()) return left;
  if (right.is_known()) return right;
  if (left.symbol() < right.symbol()) return expression("broadcast", {left, right});
  return expression("broadcast", {right, left});
}

std::optional<Shape> broadcast(const Shape& left, const Shape& right) {
  const Shape& longer = left.size() >= right.size() ? left : right;
  const Shape& shorter = left.size() >= right.size() ? right : left;
  Shape result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t index = 0; index < shorter.size(); ++index) {
    std::optional<Dim> dim = broadcast(longer[offset + index], shorter[index]);
    if (!dim) return std::nullopt;
    result[offset + index] = std::move(*dim);
  }
  return result;
}

bool can_broadcast_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const size_t offset = to.size() - from.size();
  for (size_t index = 0; index < from.size(); ++index) {
    const Dim& source = from[index];
    const Dim& target = to[offset + index];
    if (source == Dim(1) || !source.is_known() || !target.is_known()) continue;
    if (source != target) return false;
  }
  return true;
}

std::optional<Shape> broadcast_inputs(const InferContext& context) {
  Shape result;
  bool is_rank_known = true;
  for (size_t index = 0; index < context.input_count(); ++index) {
    const Shape* shape = context.shape(index);
    if (shape == nullptr) {
      is_rank_known = false;
      continue;
    }
    std::optional<Shape> together = broadcast(result, *shape);
    if (!together) {
      context.fail_input(index, "expected a shape that broadcasts with " + text(result) +
                                    ", found " + text(*shape));
    }
    result = std::move(*together);
  }
  if (!is_rank_known) return std::nullopt;
  return result;
}

BroadcastLoop::BroadcastLoop(std::span<const int64_t> output,
                             std::span<const std::span<const int64_t>> inputs,
                             std::pmr::memory_resource* memory)
    : dims_(memory), strides_(inputs.size(), memory) {
  // An output without elements has no runs, and the product of its other dimensions may overflow.
  const bool has_elements = std::find(output.begin(), output.end(), 0) == output.end();
  std::pmr::vector<std::pmr::vector<int64_t>> strides(memory);
  if (has_elements) {
    for (const std::span<const int64_t> input : inputs) {
      strides.push_back(strides_in(output, input, memory));
    }
  }
  for (size_t index = 0; has_elements && index < output.size(); ++index) {
    if (output[index] == 1) continue;
    bool can_merge = !dims_.empty();
    for (size_t input = 0; can_merge && input < inputs.size(); ++input) {
      can_merge = strides_[input].back() == strides[input][index] * output[index];
    }
    if (can_merge) {
      dims_.back() *= output[index];
    } else {
      dims_.push_back(output[index]);
    }
    for (size_t input = 0; input < inputs.size(); ++input) {
      if (can_merge) strides_[input].pop_back();
      strides_[input].push_back(strides[input][index]);
    }
  }
  if (dims_.empty()) {
    dims_.push_back(has_elements ? 1 : 0);
    for (std::pmr::vector<int64_t>& stride : strides_) stride.push_back(0);
  }
}

void BroadcastLoop::for_each_run(int64_t begin, int64_t end,
                                 FunctionRef<void(const Run& run)> body) const {
  if (begin >= end) return;
  std::pmr::memory_resource* const memory = dims_.get_allocator().resource();
  SmallVector<int64_t> positions(dims_.size(), memory);
  const std::span<int64_t> position = positions.values();
  SmallVector<int64_t> offset_list(strides_.size(), memory);
  const std::span<int64_t> offsets = offset_list.values();
  int64_t rest = begin;
  for (size_t dim = dims_.size(); dim-- > 0; rest /= dims_[dim]) {
    position[dim] = rest % dims_[dim];
    for (size_t input = 0; input < offsets.size(); ++input) {
      offsets[input] += position[dim] * strides_[input][dim];
    }
  }
  const auto advance = [&](size_t dim, int64_t count) {
    position[dim] += count;
    for (size_t input = 0; input < offsets.size(); ++input) {
      offsets[input] += count * strides_[input][dim];
    }
  };
  while (begin < end) {
    const size_t last = dims_.size() - 1;
    const int64_t length = std::min(dims_[last] - position[last], end - begin);
    body({begin, length, offsets});
    begin += length;
    advance(last, length);
    for (size_t dim = last; dim > 0 && position[dim] == dims_[dim]; --dim) {
      advance(dim, -dims_[dim]);
      advance(dim - 1, 1);
    }
  }
}

}  // namespace tessera::ops
