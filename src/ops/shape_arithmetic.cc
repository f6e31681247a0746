#include "ops/shape_arithmetic.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "ops/broadcast.h"
#include "ops/evaluate.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

bool fits(const Dim& element, DataType type) {
  if (!element.is_known() || type == DataType::Int64) return true;
  if (type == DataType::Bool) return element.value() == 0 || element.value() == 1;
  return element.value() >= std::numeric_limits<int32_t>::min() &&
         element.value() <= std::numeric_limits<int32_t>::max();
}

bool are_known(const Dim& left, const Dim& right) { return left.is_known() && right.is_known(); }

// Puts two operands in canonical order, so that both orders give the same symbol.
Dim commutative(const char* function, const Dim& left, const Dim& right) {
  return left.text() <= right.text() ? expression(function, {left, right})
                                     : expression(function, {right, left});
}

}  // namespace

bool propagates_elements(DataType type) {
  return type == DataType::Int32 || type == DataType::Int64 || type == DataType::Bool;
}

bool is_non_negative(const Dim& dim) {
  if (dim.is_known()) return dim.value() >= 0;
  // "~" begins the digest of a long expression, whose text is not visible.
  return dim.symbol().find_first_of("-~") == std::string::npos;
}

std::optional<Dim> add_elements(const Dim& left, const Dim& right) {
  int64_t sum = 0;
  if (are_known(left, right) && __builtin_add_overflow(left.value(), right.value(), &sum)) {
    return std::nullopt;
  }
  return add(left, right);
}

std::optional<Dim> subtract_elements(const Dim& left, const Dim& right) {
  int64_t difference = 0;
  if (are_known(left, right)) {
    const bool is_too_large = __builtin_sub_overflow(left.value(), right.value(), &difference);
    return is_too_large ? std::nullopt : std::optional<Dim>(difference);
  }
  if (right == Dim(std::numeric_limits<int64_t>::min())) return std::nullopt;
  return subtract(left, right);
}

std::optional<Dim> multiply_elements(const Dim& left, const Dim& right) {
  int64_t product = 0;
  if (are_known(left, right) && __builtin_mul_overflow(left.value(), right.value(), &product)) {
    return std::nullopt;
  }
  return multiply(left, right);
}

std::optional<Dim> divide_elements(const Dim& left, const Dim& right) {
  if (right == Dim(0)) return std::nullopt;
  if (are_known(left, right)) {
    if (right == Dim(-1)) return subtract_elements(0, left);
    return Dim(left.value() / right.value());
  }
  // Truncation and floor agree if nothing is negative.
  if (is_non_negative(left) && is_non_negative(right)) return floor_divide(left, right);
  return expression("div", {left, right});
}

std::optional<Dim> modulo_elements(const Dim& left, const Dim& right) {
  if (right == Dim(0)) return std::nullopt;
  if (!are_known(left, right)) return expression("mod", {left, right});
  const int64_t rest = remainder_elements(left, right)->value();
  const bool has_other_sign = rest != 0 && (rest < 0) != (right.value() < 0);
  return Dim(rest + (has_other_sign ? right.value() : 0));
}

std::optional<Dim> remainder_elements(const Dim& left, const Dim& right) {
  if (right == Dim(0)) return std::nullopt;
  if (!are_known(left, right)) return expression("fmod", {left, right});
  // The smallest number has no negative, so the processor cannot divide it by -1.
  return Dim(right.value() == -1 ? 0 : left.value() % right.value());
}

Dim equal_elements(const Dim& left, const Dim& right) {
  if (left == right) return 1;
  if (are_known(left, right)) return 0;
  const Dim& number = left.is_known() ? left : right;
  const Dim& symbol = left.is_known() ? right : left;
  if (number.is_known() && number.value() < 0 && is_non_negative(symbol)) return 0;
  return commutative("equal", left, right);
}

Dim smaller_element(const Dim& left, const Dim& right) {
  if (are_known(left, right)) return std::min(left.value(), right.value());
  return left == right ? left : commutative("min", left, right);
}

Dim larger_element(const Dim& left, const Dim& right) {
  if (are_known(left, right)) return std::max(left.value(), right.value());
  return left == right ? left : commutative("max", left, right);
}

void set_elementwise_elements(InferContext& context, const ElementFunction& function,
                              size_t input_count) {
  if (context.outputs().empty()) return;
  const Type& output = context.outputs()[0].type;
  if (!propagates_elements(output.element) || !output.shape || !small_count(output.shape)) return;
  std::vector<std::vector<Dim>> inputs;
  std::vector<std::vector<int64_t>> dims;
  for (size_t index = 0; index < input_count; ++index) {
    const Shape* shape = context.shape(index);
    auto elements = elements_of(context.input(index));
    if (shape == nullptr || !elements) return;
    const std::optional<int64_t> count = small_count(*shape);
    if (!count || *count != static_cast<int64_t>(elements->size())) return;
    inputs.push_back(std::move(*elements));
    dims.push_back(dims_from(*shape));
  }
  const std::vector<int64_t> output_dims = dims_from(*output.shape);
  const std::vector<std::span<const int64_t>> shapes(dims.begin(), dims.end());
  const BroadcastLoop loop(output_dims, shapes);
  std::vector<Dim> results;
  bool is_complete = true;
  std::vector<Dim> arguments(inputs.size());
  loop.for_each_run(0, *small_count(output.shape), [&](const BroadcastLoop::Run& run) {
    for (int64_t index = 0; is_complete && index < run.length; ++index) {
      for (size_t input = 0; input < inputs.size(); ++input) {
        arguments[input] =
            inputs[input][static_cast<size_t>(run.inputs[input] + index * loop.step(input))];
      }
      std::optional<Dim> result = function(arguments);
      is_complete = result && fits(*result, output.element);
      if (is_complete) results.push_back(std::move(*result));
    }
  });
  if (is_complete) context.set_elements(0, std::move(results));
}

std::optional<std::vector<Dim>> elements_of(const InferInput& input) {
  if (input.elements || input.constant == nullptr) return input.elements;
  const Tensor& constant = *input.constant;
  if (constant.type() != DataType::Bool || constant.elements() > kMaxShapeElements) {
    return std::nullopt;
  }
  std::vector<Dim> elements;
  for (const uint8_t element : constant.as<uint8_t>()) elements.emplace_back(element != 0 ? 1 : 0);
  return elements;
}

}  // namespace tessera::ops
