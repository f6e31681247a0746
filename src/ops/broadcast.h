// NumPy broadcasting: the shape rule, and the loop that reads broadcast inputs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "base/threads/function_ref.h"
#include "ops/op.h"

namespace tessera::ops {

// The broadcast of two dimensions: the one that is not 1. A symbol beside a number other than 1
// must be that number (or 1), so the number is the result; two different symbols give the canonical
// expression "broadcast(a,b)". nullopt if two numbers are incompatible.
std::optional<Dim> broadcast(const Dim& left, const Dim& right);

// Shapes are aligned at their last dimensions. nullopt if they are incompatible.
std::optional<Shape> broadcast(const Shape& left, const Shape& right);

// False only if `from` certainly cannot be broadcast to exactly `to`: it has more dimensions, or a
// number that is neither 1 nor the number in `to`.
bool can_broadcast_to(const Shape& from, const Shape& to);

// The broadcast shape of all inputs of the node; nullopt if a rank is unknown. Fails, naming the
// input and both shapes, if they are incompatible.
std::optional<Shape> broadcast_inputs(const InferContext& context);

// Iterates over a dense output whose dense inputs are broadcast to it. Neighbouring dimensions with
// uniform strides in every input are merged, so runs are as long as possible: with equal shapes, or
// a single element, the whole output is one run.
class BroadcastLoop {
 public:
  // Every shape in `inputs` must broadcast to `output`. Kernels pass `memory`.
  BroadcastLoop(std::span<const int64_t> output, std::span<const std::span<const int64_t>> inputs,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  BroadcastLoop(std::span<const int64_t> output,
                std::initializer_list<std::span<const int64_t>> inputs,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : BroadcastLoop(output, std::span(inputs.begin(), inputs.size()), memory) {}

  // Output elements [output, output + length). inputs[i] is the index of the element of input i for
  // the first of them; it advances by step(i) per output element.
  struct Run {
    int64_t output = 0;
    int64_t length = 0;
    std::span<const int64_t> inputs;
  };

  // 1, or 0 for an input that is broadcast along the runs.
  int64_t step(size_t input) const { return strides_[input].back(); }

  // Calls body for consecutive runs that together cover the output elements [begin, end).
  void for_each_run(int64_t begin, int64_t end, FunctionRef<void(const Run& run)> body) const;

 private:
  std::pmr::vector<int64_t> dims_;                       // of the output, merged; never empty
  std::pmr::vector<std::pmr::vector<int64_t>> strides_;  // per input, per entry of dims_
};

}  // namespace tessera::ops
