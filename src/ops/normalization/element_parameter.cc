#include "ops/normalization/element_parameter.h"

#include "ops/convert_element.h"

namespace tessera::ops {

void check_parameter(const InferContext& context, size_t index, const Shape& input) {
  if (!context.has_input(index) || context.shape(index) == nullptr) return;
  const Shape& parameter = *context.shape(index);
  bool fits = parameter.size() <= input.size();
  for (size_t axis = 0; fits && axis < parameter.size(); ++axis) {
    const Dim& length = parameter[axis];
    const Dim& expected = input[input.size() - parameter.size() + axis];
    fits = !length.is_known() || length == Dim(1) || !expected.is_known() || length == expected;
  }
  if (!fits) {
    context.fail_input(index, "expected a shape that broadcasts to input 'X' (" + text(input) +
                                  "), found " + text(parameter));
  }
}

ElementParameter::ElementParameter(const TensorView& tensor, std::span<const int64_t> input_dims,
                                   std::pmr::memory_resource& scratch)
    : values_(to_doubles(tensor, scratch)),
      dims_(input_dims),
      strides_(input_dims.size(), 0, &scratch) {
  if (tensor.is_empty()) values_.assign(1, 0.0);
  int64_t stride = 1;
  for (size_t axis = tensor.dims.size(); axis-- > 0;) {
    const size_t aligned = input_dims.size() - tensor.dims.size() + axis;
    if (tensor.dims[axis] != 1) strides_[aligned] = stride;
    stride *= tensor.dims[axis];
  }
}

ElementParameter::Cursor::Cursor(const ElementParameter& parameter, int64_t index)
    : parameter_(parameter), coordinates_(parameter.dims_.size()) {
  const std::span<int64_t> coordinates = coordinates_.values();
  for (size_t axis = coordinates.size(); axis-- > 0;) {
    if (parameter.dims_[axis] == 0) return;  // there are no elements
    coordinates[axis] = index % parameter.dims_[axis];
    offset_ += coordinates[axis] * parameter.strides_[axis];
    index /= parameter.dims_[axis];
  }
}

}  // namespace tessera::ops
