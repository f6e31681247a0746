// Shared by ops on quantised tensors: a real number is (integer - zero point) * scale.
// https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <span>
#include <vector>

#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {

inline constexpr TypeSet kByteTypes = {DataType::Int8, DataType::UInt8};
inline constexpr TypeSet kQuantizedTypes = kByteTypes | TypeSet{DataType::Int16, DataType::UInt16};
// The small types that QuantizeLinear gives and DequantizeLinear takes.
std::vector<AddedTypes> small_quantized_types();
inline constexpr TypeSet kScaleTypes = {DataType::Float16, DataType::BFloat16, DataType::Float32};

// Which scale an element has: the only one, that of its index on an axis, or that of its block
// along the axis.
class ScaleLoop {
 public:
  // `axis` is normalised; `block` is 0 for scales that are not of blocks. Shapes are those that
  // check_scales() accepts.
  ScaleLoop(std::span<const int64_t> dims, std::span<const int64_t> scale_dims, int64_t axis,
            int64_t block);

  // Calls body(begin, count, scale, step) for runs of elements that cover [begin, end): the scale
  // of element begin + k has the index scale + k * step.
  template <class Body>
  void for_each_run(int64_t begin, int64_t end, const Body& body) const {
    if (is_single_) return body(begin, end - begin, int64_t{0}, int64_t{0});
    while (begin < end) {
      const int64_t line = begin / inner_;
      const int64_t at = begin % inner_;
      const int64_t count = std::min(end - begin, inner_ - at);
      const int64_t index = line % length_;
      if (block_ == 0) {
        body(begin, count, index, int64_t{0});
      } else {
        const int64_t row = line / length_ * blocks_ + index / block_;
        body(begin, count, row * inner_ + at, int64_t{1});
      }
      begin += count;
    }
  }

 private:
  bool is_single_ = false;
  int64_t length_ = 1;  // of the axis
  int64_t inner_ = 1;   // elements for each index of the axis
  int64_t block_ = 0;
  int64_t blocks_ = 1;  // along the axis
};

// fail()s unless scales (input 1) and zero points (input 2) fit input 0: one, one for each index of
// the axis, or one for each block along it.
void check_scales(const InferContext& context);
ScaleLoop scales_of(const KernelCall& call);

// The elements of a tensor, which may be left out, as float64.
std::pmr::vector<double> numbers_of(const TensorView& tensor, std::pmr::memory_resource& memory);

struct IntegerRange {
  int lowest;
  int highest;
};

// Of integers of at most 16 bits.
IntegerRange range_of(DataType type);

// A number rounded to an integer, ties to even, plus a zero point, within a range. NaN becomes the
// smallest one.
inline int quantized_in(IntegerRange range, double number, int zero_point) {
  const double lowest = static_cast<double>(range.lowest) - zero_point;
  const double highest = static_cast<double>(range.highest) - zero_point;
  const double limited = number > lowest ? std::min(number, highest) : lowest;
  // Adding and subtracting it leaves no bits behind the point, for numbers of less than 2^51.
  constexpr double kRounding = 0x1.8p52;
  return static_cast<int>(limited + kRounding - kRounding) + zero_point;
}

// The same for all numbers of T.
template <class T>
T quantized(double number, T zero_point) {
  constexpr IntegerRange kRange = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  return static_cast<T>(quantized_in(kRange, number, zero_point));
}

// Calls visit(TypeTag<T>{}) for int8 or uint8.
template <class Visit>
void visit_byte(DataType type, const Visit& visit) {
  if (type == DataType::Int8) return visit(TypeTag<int8_t>{});
  visit(TypeTag<uint8_t>{});
}

// The scale and the zero point of a whole tensor.
struct TensorScale {
  double scale = 1;
  int64_t zero_point = 0;

  double real_of(int64_t integer) const {
    return static_cast<double>(integer - zero_point) * scale;
  }
  template <class T>
  T integer_of(double real) const {
    return quantized<T>(real / scale, static_cast<T>(zero_point));
  }
};

// fail_input()s unless the input, which may be left out, is a scalar or a list of one element.
void check_one_element(const InferContext& context, size_t index);
// The same for a scale and a zero point.
void check_tensor_scale(const InferContext& context, size_t scale, size_t zero_point);
// Reads a scale of float32 and a zero point of bytes, which is 0 if it is left out.
TensorScale tensor_scale_of(const KernelCall& call, size_t scale, size_t zero_point);
int64_t zero_point_of(const KernelCall& call, size_t zero_point);

// Something for each byte: that for element x has the index static_cast<uint8_t>(x).
template <class Value>
using ByteTable = std::array<Value, 256>;

template <class T, class Value, class Function>
ByteTable<Value> byte_table(const Function& function) {
  ByteTable<Value> table = {};
  for (size_t index = 0; index < table.size(); ++index) {
    table[index] = function(static_cast<T>(index));
  }
  return table;
}

template <class T>
size_t table_index(T element) {
  return static_cast<uint8_t>(element);
}

// The bytes that stand for the same real numbers with another scale.
template <class T>
ByteTable<T> requantization_table(const TensorScale& from, const TensorScale& to) {
  return byte_table<T, T>([&](T element) { return to.integer_of<T>(from.real_of(element)); });
}

// The dynamic quantisation of float32 numbers as uint8: the range of the numbers and 0.
TensorScale range_scale(std::span<const float> numbers);

}  // namespace tessera::ops
