// Scales and shifts that broadcast to the input of a normalisation.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "base/containers/small_vector.h"
#include "ops/op.h"

namespace tessera::ops {

// fail_input()s unless input `index`, if it is given, can broadcast to `input`, the shape of
// input X.
void check_parameter(const InferContext& context, size_t index, const Shape& input);

class ElementParameter {
 public:
  // `tensor` broadcasts to an input of `input_dims`, which must outlive this. An omitted one is 0.
  ElementParameter(const TensorView& tensor, std::span<const int64_t> input_dims,
                   std::pmr::memory_resource& scratch);

  // The parameters of the input's elements, one after the other, from element `index` on.
  class Cursor {
   public:
    Cursor(const ElementParameter& parameter, int64_t index);
    double value() const { return parameter_.values_[static_cast<size_t>(offset_)]; }
    void advance() {
      const std::span<int64_t> coordinates = coordinates_.values();
      for (size_t axis = coordinates.size(); axis-- > 0;) {
        const int64_t stride = parameter_.strides_[axis];
        offset_ += stride;
        if (++coordinates[axis] < parameter_.dims_[axis]) return;
        offset_ -= stride * parameter_.dims_[axis];
        coordinates[axis] = 0;
      }
    }

   private:
    const ElementParameter& parameter_;
    SmallVector<int64_t> coordinates_;
    int64_t offset_ = 0;
  };

 private:
  std::pmr::vector<double> values_;
  std::span<const int64_t> dims_;
  std::pmr::vector<int64_t> strides_;
};

}  // namespace tessera::ops
