#include "verify/compare_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "ops/evaluate.h"
#include "tessera/error.h"
#include "tessera/float16.h"

namespace tessera::verification {
namespace {

double floating_element(const Tensor& tensor, size_t index) {
  switch (tensor.type()) {
    case DataType::Float16:
      return static_cast<float>(tensor.as<Float16>()[index]);
    case DataType::BFloat16:
      return static_cast<float>(tensor.as<BFloat16>()[index]);
    case DataType::Float32:
      return tensor.as<float>()[index];
    default:
      return tensor.as<double>()[index];
  }
}

double tolerance_of(DataType type) {
  switch (type) {
    case DataType::Float16:
      return 4e-3;
    case DataType::BFloat16:
      return 3e-2;
    case DataType::Float32:
      return 1e-4;
    default:
      return 1e-11;
  }
}

// The same elements without their signs.
Tensor magnitude_of(const Tensor& tensor) {
  if (tensor.is_empty() || !is_floating(tensor.type())) return tensor;
  Tensor result = Tensor::copy_of(tensor.type(), tensor.dims(), tensor.data(),
                                  static_cast<size_t>(tensor.bytes()));
  auto* bytes = static_cast<uint8_t*>(result.mutable_data());
  const int64_t size = element_bytes(tensor.type());
  // The sign is the highest bit of the last byte.
  for (int64_t at = size - 1; at < tensor.bytes(); at += size) bytes[at] &= 0x7FU;
  return result;
}

std::vector<Tensor> run_reference(const OpCase& op_case, std::vector<Tensor> values,
                                  const ops::Registry& registry, ThreadPool& pool) {
  for (const Node& node : op_case.graph.nodes) {
    std::vector<Tensor> inputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id.is_none() ? Tensor() : values[static_cast<size_t>(id.index)]);
    }
    std::vector<Tensor> outputs = ops::evaluate(registry.of(node), node, inputs, pool);
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      const ValueId id = node.outputs[index];
      if (!id.is_none()) values[static_cast<size_t>(id.index)] = std::move(outputs[index]);
    }
  }
  return values;
}

std::string number(double value) {
  std::ostringstream text;
  text.precision(9);
  text << value;
  return text.str();
}

}  // namespace

ExpectedValues expected_values(const OpCase& op_case, const ops::Registry& registry,
                               ThreadPool& pool) {
  const Graph& graph = op_case.graph;
  std::vector<Tensor> known(graph.values.size());
  for (size_t index = 0; index < known.size(); ++index) known[index] = graph.values[index].constant;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    known[static_cast<size_t>(graph.inputs[index].index)] = op_case.inputs[index];
  }
  ExpectedValues expected;
  expected.values = run_reference(op_case, known, registry, pool);
  for (size_t index = 0; index < known.size(); ++index) {
    const ValueId id{static_cast<int32_t>(index)};
    const auto& literals = op_case.literals;
    const bool is_literal = std::find(literals.begin(), literals.end(), id) != literals.end();
    if (!is_literal) known[index] = magnitude_of(known[index]);
  }
  try {
    expected.magnitudes = run_reference(op_case, std::move(known), registry, pool);
  } catch (const Error&) {
    expected.magnitudes.assign(graph.values.size(), Tensor());
  }
  return expected;
}

std::string explain_difference(const Tensor& expected, const Tensor& magnitude,
                               const Tensor& found) {
  if (expected.type() != found.type() || expected.dims() != found.dims()) {
    return "expected " + dims_text(expected.dims()) + ", found " + dims_text(found.dims());
  }
  if (!is_floating(expected.type())) {
    return explain_byte_difference(
        {static_cast<const char*>(expected.data()), static_cast<size_t>(expected.bytes())},
        {static_cast<const char*>(found.data()), static_cast<size_t>(found.bytes())});
  }
  const auto count = static_cast<size_t>(expected.elements());
  const bool has_magnitude = !magnitude.is_empty() && magnitude.dims() == expected.dims();
  double largest = 0;
  for (size_t index = 0; index < count; ++index) {
    const double element = std::fabs(floating_element(expected, index));
    if (std::isfinite(element)) largest = std::max(largest, element);
  }
  double worst = 0;
  size_t place = 0;
  for (size_t index = 0; index < count; ++index) {
    const double wanted = floating_element(expected, index);
    const double given = floating_element(found, index);
    if (wanted == given || (std::isnan(wanted) && std::isnan(given))) continue;
    double scale = std::max({std::fabs(wanted), 0.1 * largest, 1e-30});
    const double summed = has_magnitude ? std::fabs(floating_element(magnitude, index)) : 0;
    if (std::isfinite(summed)) scale = std::max(scale, summed);
    double error = std::fabs(given - wanted) / scale;
    if (std::isnan(error)) error = INFINITY;
    if (error > worst) {
      worst = error;
      place = index;
    }
  }
  if (worst <= tolerance_of(expected.type())) return "";
  return "element " + std::to_string(place) + ": expected " +
         number(floating_element(expected, place)) + ", found " +
         number(floating_element(found, place));
}

std::string explain_byte_difference(std::span<const char> expected, std::span<const char> found) {
  if (expected.size() != found.size()) {
    return "expected " + std::to_string(expected.size()) + " bytes, found " +
           std::to_string(found.size());
  }
  const auto [left, right] = std::mismatch(expected.begin(), expected.end(), found.begin());
  if (left == expected.end()) return "";
  return "byte " + std::to_string(left - expected.begin()) + " of " +
         std::to_string(expected.size()) + " differs";
}

}  // namespace tessera::verification
