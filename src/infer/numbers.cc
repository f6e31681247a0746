#include "infer/numbers.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/threads/parallel.h"
#include "ops/evaluate.h"
#include "ops/shape_arithmetic.h"
#include "tessera/error.h"

namespace tessera {
namespace {

template <class T>
std::optional<Tensor> tensor_of(const Type& type, const std::vector<Dim>& elements) {
  std::vector<T> values;
  values.reserve(elements.size());
  for (const Dim& element : elements) {
    const int64_t value = element.value();
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
      return std::nullopt;
    }
    values.push_back(static_cast<T>(value));
  }
  return Tensor::from<T>(type.element, dims_from(*type.shape), values);
}

bool has_few_elements(const Type& type) {
  return type.is_known_tensor() && element_count(dims_from(*type.shape)) <= kMostNumbers;
}

bool has_known_elements(const Value& value) {
  return !value.numbers.is_empty() || (value.elements && is_known(*value.elements));
}

// Empty if they are unknown or many.
Tensor few_elements(const Value& value) {
  if (value.is_constant()) {
    const bool is_few = value.constant.has_elements() && value.constant.elements() <= kMostNumbers;
    return is_few ? value.constant : Tensor();
  }
  if (!value.numbers.is_empty()) return value.numbers;
  if (!has_few_elements(value.type)) return {};
  return inferred_tensor(value).value_or(Tensor());
}

}  // namespace

bool may_be_numbers(const Type& type) {
  const bool is_number = type.element != DataType::String && type.element != DataType::Undefined;
  return is_number && has_few_elements(type);
}

std::optional<Tensor> inferred_tensor(const Value& value) {
  if (!value.elements || !is_known(*value.elements) || !value.type.is_known_tensor()) {
    return std::nullopt;
  }
  if (value.type.element == DataType::Int64) return tensor_of<int64_t>(value.type, *value.elements);
  if (value.type.element == DataType::Int32) return tensor_of<int32_t>(value.type, *value.elements);
  return std::nullopt;
}

void follow_numbers(const ops::Op& op, const Node& node, std::span<const Value* const> inputs,
                    std::span<Value* const> outputs) {
  if (op.kernel == nullptr || (op.traits & ops::kRandom) != 0 || !node.bodies.empty()) return;
  const bool are_numbers = std::ranges::all_of(outputs, [](const Value* output) {
    return output == nullptr || (may_be_numbers(output->type) && !output->is_state);
  });
  const bool are_known = std::ranges::all_of(outputs, [](const Value* output) {
    return output == nullptr || has_known_elements(*output);
  });
  if (!are_numbers || are_known) return;
  std::vector<Tensor> known;
  for (const Value* const input : inputs) {
    known.push_back(input == nullptr ? Tensor() : few_elements(*input));
    if (input != nullptr && (known.back().is_empty() || input->is_state)) return;
  }
  std::vector<Tensor> computed;
  try {
    ThreadPool pool(1);
    computed = ops::evaluate(op, node, known, pool);
  } catch (const Error&) {
    return;  // the run, or a bind for these sizes, reports it
  }
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (outputs[index] == nullptr) continue;
    std::optional<std::vector<Dim>> elements = ops::infer_input(computed[index]).elements;
    if (elements) {
      outputs[index]->elements = std::move(elements);
    } else {
      outputs[index]->numbers = std::move(computed[index]);
    }
  }
}

}  // namespace tessera
