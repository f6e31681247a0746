#include "verify/compare_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>

#include "ops/evaluate.h"
#include "tessera/error.h"
#include "tessera/float16.h"
#include "verify/element_loops.h"
#include "verify/special_values.h"
#include "verify/type_precision.h"

namespace tessera::verification {
namespace {

double tolerance_of(DataType type, int precision) {
  switch (type) {
    case DataType::Float16:
      return 4e-3;
    case DataType::BFloat16:
      return 3e-2;
    case DataType::Float32:
      return precision == TESSERA_PRECISION_BFLOAT16 ? 3e-2 : 1e-4;
    default:
      return 1e-11;
  }
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

std::vector<Tensor> special_values_of(const OpCase& op_case, const ops::Registry& registry,
                                      ThreadPool& pool) {
  const Graph& graph = op_case.graph;
  std::vector<Tensor> known(graph.values.size());
  for (size_t index = 0; index < known.size(); ++index) known[index] = graph.values[index].constant;
  bool has_any = false;
  const SpecialValues kinds = special_values_for(graph, registry);
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const ValueId id = graph.inputs[index];
    Tensor special = with_special_values(op_case.inputs[index], graph[id].name, kinds);
    has_any = has_any || !special.is_empty();
    if (special.is_empty()) special = op_case.inputs[index];
    known[static_cast<size_t>(id.index)] = std::move(special);
  }
  if (!has_any) return {};
  try {
    return run_reference(op_case, std::move(known), registry, pool);
  } catch (const Error&) {
    return {};
  }
}

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
  std::vector<Tensor> given(graph.values.size());
  for (size_t index = 0; index < given.size(); ++index) given[index] = graph.values[index].constant;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    given[static_cast<size_t>(graph.inputs[index].index)] = op_case.inputs[index];
  }
  if (auto limits = error_limits(graph, registry, std::move(given), pool)) {
    expected.limits = *std::move(limits);
  }
  return expected;
}

Tensor magnitude_of(const Tensor& tensor) {
  if (tensor.is_empty() || !is_floating(tensor.type())) return tensor;
  Tensor result = tensor.copied();
  const auto clear = [&]<class Bits>(Bits* elements) {
    clear_signs(std::span(elements, static_cast<size_t>(result.elements())));
  };
  switch (element_bytes(tensor.type())) {
    case 2:
      clear(static_cast<uint16_t*>(result.mutable_data()));
      break;
    case 4:
      clear(static_cast<uint32_t*>(result.mutable_data()));
      break;
    default:
      clear(static_cast<uint64_t*>(result.mutable_data()));
  }
  return result;
}

namespace {

// The largest difference between two tensors.
struct Worst {
  double error = 0;
  size_t index = 0;
  double expected = 0;
  double found = 0;
};

template <class Element>
double number_of(const Element& element) {
  if constexpr (sizeof(Element) == 2) {
    return double{static_cast<float>(element)};
  } else {
    return double{element};
  }
}

template <class Element>
double largest_number(std::span<const Element> elements) {
  if constexpr (std::is_same_v<Element, float>) {
    return double{largest_finite(elements)};
  } else {
    double largest = 0;
    for (const Element& element : elements) {
      const double number = std::fabs(number_of(element));
      if (std::isfinite(number)) largest = std::max(largest, number);
    }
    return largest;
  }
}

template <class Element>
Worst find_worst(const Tensor& expected, const Tensor& magnitude, const Tensor& found) {
  const std::span<const Element> wanted = expected.as<Element>();
  const std::span<const Element> given = found.as<Element>();
  const bool has_magnitude = !magnitude.is_empty() && magnitude.dims() == expected.dims() &&
                             magnitude.type() == expected.type();
  const Element* summed = has_magnitude ? magnitude.as<Element>().data() : nullptr;
  const double largest = largest_number(wanted);
  Worst worst;
  for (size_t index = 0; index < wanted.size(); ++index) {
    if constexpr (std::is_same_v<Element, float>) {
      // Most blocks contain no worse element; in float, that is shown faster.
      if (index % kElementBlock == 0 && index + kElementBlock <= wanted.size() &&
          !may_differ_more(
              &wanted[index], &given[index], has_magnitude ? &summed[index] : &wanted[index],
              static_cast<float>(0.1 * largest), static_cast<float>(0.999 * worst.error))) {
        index += kElementBlock - 1;
        continue;
      }
    }
    const double want = number_of(wanted[index]);
    const double have = number_of(given[index]);
    if (want == have) continue;
    const double sum = summed == nullptr ? 0 : std::fabs(number_of(summed[index]));
    const bool may_overflow = !std::isfinite(sum) && !std::isfinite(have);
    const bool is_undefined = std::isnan(have) ? !std::isfinite(want) : std::isnan(want);
    if (may_overflow || (is_undefined && !std::isfinite(have))) continue;
    double scale = std::max({std::fabs(want), 0.1 * largest, 1e-30});
    if (std::isfinite(sum)) scale = std::max(scale, sum);
    const double difference = std::fabs(have - want);
    // Most elements are not the worst; this test shows that without a division. The scale of an
    // infinity is infinite.
    if (std::isfinite(difference) && difference <= worst.error * scale) continue;
    double error = difference / scale;
    if (std::isnan(error)) error = INFINITY;
    if (error > worst.error) worst = {error, index, want, have};
  }
  return worst;
}

Worst find_worst(const Tensor& expected, const Tensor& magnitude, const Tensor& found) {
  switch (expected.type()) {
    case DataType::Float16:
      return find_worst<Float16>(expected, magnitude, found);
    case DataType::BFloat16:
      return find_worst<BFloat16>(expected, magnitude, found);
    case DataType::Float32:
      return find_worst<float>(expected, magnitude, found);
    default:
      return find_worst<double>(expected, magnitude, found);
  }
}

// One element that is judged.
struct Judged {
  double expected = 0;  // by the reference, in the type
  double exact = 0;
  double allowed = 0;
  double found = 0;
};

bool is_within(const Judged& one, double largest) {
  if (one.found == one.exact) return true;
  if (std::isfinite(one.found)) return std::fabs(one.found - one.exact) <= one.allowed;
  if (std::isnan(one.expected) || std::isnan(one.exact) || !std::isfinite(one.allowed)) return true;
  // An overflow; in a sum, infinities of two signs give NaN.
  const bool may_overflow =
      !std::isfinite(one.expected) || std::fabs(one.exact) + one.allowed > largest;
  return may_overflow && (std::isnan(one.found) || one.found * one.exact > 0);
}

// Judges each element; `judged(index)` has it.
template <class Function>
Difference find_excess(size_t count, double largest, const Function& judged) {
  Difference worst;
  double worst_share = 0;  // of what is allowed
  bool is_wrong = false;
  for (size_t index = 0; index < count; ++index) {
    const Judged one = judged(index);
    const bool is_fine = is_within(one, largest);
    const double difference = std::fabs(one.found - one.exact);
    if (is_fine && !(difference > worst_share * one.allowed)) continue;
    if (is_fine && (is_wrong || !std::isfinite(difference) || !std::isfinite(one.allowed)))
      continue;
    const double share = is_fine ? difference / one.allowed
                         : one.allowed > 0 && std::isfinite(difference)
                             ? difference / one.allowed
                             : std::numeric_limits<double>::infinity();
    if (!is_fine && is_wrong && share <= worst_share) continue;
    worst_share = share;
    const double scale = std::max(std::fabs(one.exact), one.allowed);
    worst.error = std::isfinite(difference / scale) ? difference / scale : INFINITY;
    worst.tolerance = scale > 0 && std::isfinite(one.allowed / scale) ? one.allowed / scale : 0;
    if (is_fine) continue;
    is_wrong = true;
    worst.text = "element " + std::to_string(index) + ": expected " + number(one.exact) +
                 ", found " + number(one.found) + ", allowed error " + number(one.allowed);
  }
  return worst;
}

template <class Function>
Difference visit_elements(const Tensor& expected, const Tensor& found, const Function& judge) {
  switch (expected.type()) {
    case DataType::Float16:
      return judge(expected.as<Float16>(), found.as<Float16>());
    case DataType::BFloat16:
      return judge(expected.as<BFloat16>(), found.as<BFloat16>());
    case DataType::Float32:
      return judge(expected.as<float>(), found.as<float>());
    default:
      return judge(expected.as<double>(), found.as<double>());
  }
}

// For elements that are not floating-point: each must equal the element of one of `wanted`; empty
// tensors are skipped.
Difference find_other(std::initializer_list<const Tensor*> wanted, const Tensor& found) {
  const auto size = static_cast<size_t>(element_bytes(found.type()));
  const auto* given = static_cast<const char*>(found.data());
  const auto count = static_cast<size_t>(found.elements());
  for (size_t index = 0; index < count; ++index) {
    const size_t at = index * size;
    const bool is_wanted = std::ranges::any_of(wanted, [&](const Tensor* other) {
      return !other->is_empty() &&
             std::memcmp(given + at, static_cast<const char*>(other->data()) + at, size) == 0;
    });
    if (is_wanted) continue;
    return {1, 0, "element " + std::to_string(index) + " of " + std::to_string(count) + " differs"};
  }
  return {};
}

std::optional<Difference> of_types(const Tensor& expected, const Tensor& found) {
  if (expected.type() == found.type() && expected.dims() == found.dims()) return std::nullopt;
  return Difference{
      INFINITY, 0, "expected " + dims_text(expected.dims()) + ", found " + dims_text(found.dims())};
}

}  // namespace

static double ulps_and_flush(DataType type, double ulps, double number) {
  const double flushed = flushed_magnitude_of(type);
  return ulps * ulp_of(type, number) + (std::fabs(number) < flushed ? flushed : 0);
}

Difference measure_ulps(const Tensor& expected, double ulps, const Tensor& found) {
  if (auto wrong = of_types(expected, found)) return *std::move(wrong);
  if (!is_floating(expected.type())) return find_other({&expected}, found);
  const DataType type = expected.type();
  return visit_elements(expected, found, [&](const auto& wanted, const auto& given) {
    return find_excess(wanted.size(), largest_finite(type), [&](size_t index) {
      const double want = number_of(wanted[index]);
      const double have = number_of(given[index]);
      // Most elements are equal, and ulp_of() takes longer than anything else here.
      return Judged{want, want, want == have ? 0 : ulps_and_flush(type, ulps, want), have};
    });
  });
}

Difference measure_excess(const Tensor& expected, const ErrorLimits& limits, const Tensor& found) {
  if (auto wrong = of_types(expected, found)) return *std::move(wrong);
  // Rounding after each node, as in the reference, is right where float64 decides otherwise.
  if (!is_floating(expected.type())) {
    return find_other({&limits.exact, &limits.spread, &expected}, found);
  }
  if (limits.exact.dims() != found.dims()) {
    return {INFINITY, 0, "the exact result has other dimensions"};
  }
  const DataType type = expected.type();
  const std::span<const double> exact = limits.exact.as<double>();
  const double* spread = limits.spread.is_empty() ? nullptr : limits.spread.as<double>().data();
  return visit_elements(expected, found, [&](const auto& wanted, const auto& given) {
    return find_excess(wanted.size(), largest_finite(type), [&](size_t index) {
      const double want = number_of(wanted[index]);
      const double have = number_of(given[index]);
      // Roundings of products to 16 bits count, too, although the limits do not include them.
      const bool is_rounded_alike = have == want && element_bytes(type) == 2;
      return Judged{want, is_rounded_alike ? have : exact[index],
                    spread == nullptr ? 0 : spread[index], have};
    });
  });
}

Difference measure_difference(const Tensor& expected, const Tensor& magnitude, const Tensor& found,
                              int precision) {
  if (expected.type() != found.type() || expected.dims() != found.dims()) {
    return {INFINITY, 0,
            "expected " + dims_text(expected.dims()) + ", found " + dims_text(found.dims())};
  }
  if (!is_floating(expected.type())) {
    std::string text = explain_byte_difference(
        {static_cast<const char*>(expected.data()), static_cast<size_t>(expected.bytes())},
        {static_cast<const char*>(found.data()), static_cast<size_t>(found.bytes())});
    return {text.empty() ? 0.0 : 1.0, 0, std::move(text)};
  }
  const Worst worst = find_worst(expected, magnitude, found);
  const double tolerance = tolerance_of(expected.type(), precision);
  if (worst.error <= tolerance) return {worst.error, tolerance, ""};
  return {worst.error, tolerance,
          "element " + std::to_string(worst.index) + ": expected " + number(worst.expected) +
              ", found " + number(worst.found)};
}

std::string explain_difference(const Tensor& expected, const Tensor& magnitude,
                               const Tensor& found) {
  return measure_difference(expected, magnitude, found).text;
}

std::string explain_byte_difference(std::span<const char> expected, std::span<const char> found) {
  if (expected.size() != found.size()) {
    return "expected " + std::to_string(expected.size()) + " bytes, found " +
           std::to_string(found.size());
  }
  // Finds equal ranges, the usual case, a block of bytes at a time.
  if (expected.empty() || std::memcmp(expected.data(), found.data(), expected.size()) == 0)
    return "";
  const auto [left, right] = std::mismatch(expected.begin(), expected.end(), found.begin());
  return "byte " + std::to_string(left - expected.begin()) + " of " +
         std::to_string(expected.size()) + " differs";
}

}  // namespace tessera::verification
