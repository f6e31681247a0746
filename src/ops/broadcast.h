// NumPy broadcasting: the shape rule, and the loop that reads stretched inputs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "ops/op.h"

namespace tessera::ops {

// What two dimensions give together: the one that is not 1. A symbol beside a number other than 1
// can only be that number (or 1), so the number is the answer; two different symbols give the
// canonical expression "broadcast(a,b)". nullopt where two numbers contradict.
std::optional<Dim> broadcast(const Dim& left, const Dim& right);

// Shapes are aligned at their last dimensions. nullopt where they contradict.
std::optional<Shape> broadcast(const Shape& left, const Shape& right);

// False only where `from` certainly cannot be stretched to exactly `to`: more dimensions, or a
// number that is neither 1 nor the number in `to`.
bool can_broadcast_to(const Shape& from, const Shape& to);

// All inputs of the node broadcast together; nullopt while a rank is unknown. Fails naming the
// input and both shapes where they contradict.
std::optional<Shape> broadcast_inputs(const InferContext& context);

// Walks over the elements of a dense output whose dense inputs are stretched to it. Neighbouring
// dimensions along which every input moves evenly count as one, so runs are as long as can be: for
// equal shapes, or a single element, the whole output is one run.
class BroadcastLoop {
 public:
  // Every shape in `inputs` must broadcast to `output`. Kernels give `memory`.
  BroadcastLoop(std::span<const int64_t> output, std::span<const std::span<const int64_t>> inputs,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  BroadcastLoop(std::span<const int64_t> output,
                std::initializer_list<std::span<const int64_t>> inputs,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : BroadcastLoop(output, std::span(inputs.begin(), inputs.size()), memory) {}

  // Output elements [output, output + length); inputs[i] is the index of the element of input i
  // that goes with the first of them. The next ones are step(i) further each.
  struct Run {
    int64_t output = 0;
    int64_t length = 0;
    std::span<const int64_t> inputs;
  };

  // 1, or 0 for an input that is stretched along the runs.
  int64_t step(size_t input) const { return strides_[input].back(); }

  // Calls body for consecutive runs that together are the output elements [begin, end).
  void for_each_run(int64_t begin, int64_t end, FunctionRef<void(const Run& run)> body) const;

 private:
  std::pmr::vector<int64_t> dims_;                       // of the output, merged; never empty
  std::pmr::vector<std::pmr::vector<int64_t>> strides_;  // for each input, for each of dims_
};

}  // namespace tessera::ops
