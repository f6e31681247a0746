#include "verify/special_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <type_traits>

#include "tessera/float16.h"
#include "verify/compare_tensors.h"
#include "verify/element_loops.h"

namespace tessera::verification {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

// From this number of elements on there is space for all kinds, both in the vectorised body and in
// the tail of a kernel's loop.
constexpr int64_t kEnoughForAll = 16;

// FNV-1a.
uint64_t digest_of(std::string_view name) {
  uint64_t digest = 0xcbf29ce484222325U;
  for (const char letter : name) {
    digest = (digest ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return digest;
}

// From this number of elements on, an eighth of them are numbers from tails: magnitudes of many
// orders, both signs.
constexpr size_t kEnoughForTails = 256;

template <class T>
void set_tails(std::span<T> elements) {
  if (elements.size() < kEnoughForTails) return;
  const bool is_short = sizeof(T) == 2;
  const int lowest = is_short ? -10 : -30;
  const int orders = is_short ? 14 : 37;
  for (size_t count = 0; count < elements.size() / 8; ++count) {
    const int order = lowest + static_cast<int>(count % static_cast<size_t>(orders));
    const float magnitude = std::ldexp(1.0F + 0.37F * static_cast<float>(count % 5) / 2, order);
    elements[8 * count] = T(count / 2 % 2 == 0 ? magnitude : -magnitude);
  }
}

template <class T>
void set_special_values(Tensor& tensor, uint64_t digest, SpecialValues kinds) {
  const std::span<T> elements = tensor.mutable_as<T>();
  const auto count = static_cast<int64_t>(elements.size());
  if (count == 0) return;
  const auto set = [&](int64_t index, float value) {
    elements[static_cast<size_t>(index % count)] = T(value);
  };
  const auto shift = static_cast<int64_t>(digest % 8);
  if (count < kEnoughForAll) return set(shift, -kNaN);
  if (kinds == SpecialValues::All) {
    set_tails<T>(elements);
    const bool is_half = std::is_same_v<T, Float16>;
    // Not the very largest, because kernels may double a value that they later multiply by a half.
    const float largest = is_half ? 3e4F : 1e38F;
    set(shift + 1, largest);
    set(shift + 2, -largest);
    set(shift + 3, is_half ? 1e-6F : 1e-40F);
    set(shift + 4, is_half ? -1e-6F : -1e-40F);
  }
  if (kinds != SpecialValues::NaN) {
    set(count / 2 + shift, kFloatInfinity);
    set(3 * count / 4 - shift, -kFloatInfinity);
  }
  // NaNs of both signs: processors produce negative ones, and some kernels look at the sign.
  set(count / 4 + shift, kNaN);
  set(count - 1 - shift % 4, -kNaN);
}

std::string number_text(double value) {
  std::ostringstream text;
  text.precision(9);
  text << value;
  return text.str();
}

template <class T>
double number_at(const Tensor& tensor, size_t index) {
  if constexpr (sizeof(T) == 2) {
    return double{static_cast<float>(tensor.as<T>()[index])};
  } else {
    return double{tensor.as<T>()[index]};
  }
}

// The first element that is a number although it must not be, or "". NaN must stay NaN; an infinity
// may become NaN if a sum has another order.
template <class T>
std::string explain_lost(const Tensor& expected, const Tensor& found) {
  const auto count = static_cast<size_t>(expected.elements());
  for (size_t index = 0; index < count; ++index) {
    if constexpr (std::is_same_v<T, float>) {
      if (index % kElementBlock == 0) {
        const size_t block = std::min(kElementBlock, count - index);
        if (are_finite(expected.as<float>().subspan(index, block))) {
          index += block - 1;
          continue;
        }
      }
    }
    const double want = number_at<T>(expected, index);
    if (std::isfinite(want)) continue;
    const double have = number_at<T>(found, index);
    if (std::isnan(want) ? std::isnan(have) : !std::isfinite(have)) continue;
    return "element " + std::to_string(index) + ": expected " + number_text(want) + ", found " +
           number_text(have);
  }
  return "";
}

std::string explain_lost(const Tensor& expected, const Tensor& found) {
  switch (expected.type()) {
    case DataType::Float16:
      return explain_lost<Float16>(expected, found);
    case DataType::BFloat16:
      return explain_lost<BFloat16>(expected, found);
    case DataType::Float32:
      return explain_lost<float>(expected, found);
    default:
      return explain_lost<double>(expected, found);
  }
}

// The largest finite number of the type.
template <class T>
double last_number() {
  if constexpr (std::is_same_v<T, Float16>) {
    return 65504;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return 0x1.fep127;
  } else {
    return double{std::numeric_limits<T>::max()};
  }
}

// Numbers beyond this are compared separately; otherwise the tolerance relative to them would hide
// all other errors.
constexpr double kHuge = 1e30;

// The first huge element of `expected` that `found` is not near to, or "". Clears huge and
// non-finite elements in both.
template <class T>
std::string remove_huge(Tensor& expected, Tensor& found, double tolerance) {
  std::string wrong;
  const auto count = static_cast<size_t>(expected.elements());
  for (size_t index = 0; index < count; ++index) {
    const double want = number_at<T>(expected, index);
    const double have = number_at<T>(found, index);
    // A Clip whose bound is the largest finite number may clip an infinity or leave it unchanged.
    const bool is_last =
        std::fabs(want) >= last_number<T>() && have == std::copysign(INFINITY, want);
    if (std::fabs(want) <= kHuge && !is_last) continue;
    const bool is_near =
        is_last || !std::isfinite(want) || std::fabs(have - want) <= tolerance * std::fabs(want);
    if (!is_near && wrong.empty()) {
      wrong = "element " + std::to_string(index) + ": expected " + number_text(want) + ", found " +
              number_text(have);
    }
    expected.mutable_as<T>()[index] = T(0.0F);
    found.mutable_as<T>()[index] = T(0.0F);
  }
  return wrong;
}

Tensor copy_of(const Tensor& tensor) { return tensor.copied(); }

// Compares the elements that are finite in both.
std::string explain_finite_difference(const Tensor& special, const Tensor& given, int precision,
                                      std::optional<double> ulps) {
  Tensor expected = copy_of(special);
  Tensor found = copy_of(given);
  const double tolerance = measure_difference(expected, {}, expected, precision).tolerance;
  std::string wrong;
  switch (expected.type()) {
    case DataType::Float16:
      wrong = remove_huge<Float16>(expected, found, tolerance);
      break;
    case DataType::BFloat16:
      wrong = remove_huge<BFloat16>(expected, found, tolerance);
      break;
    case DataType::Float32:
      wrong = remove_huge<float>(expected, found, tolerance);
      break;
    default:
      wrong = remove_huge<double>(expected, found, tolerance);
  }
  if (!wrong.empty()) return wrong;
  if (ulps) return measure_ulps(expected, *ulps, found).text;
  return measure_difference(expected, {}, found, precision).text;
}

template <class Bits>
std::span<const Bits> bits_of(const Tensor& tensor) {
  return {static_cast<const Bits*>(tensor.data()), static_cast<size_t>(tensor.elements())};
}

// `plain`, but with elements of `found` where special values do not affect the reference.
Tensor replace_unaffected(const Tensor& plain, const Tensor& special, const Tensor& found) {
  Tensor mixed = copy_of(plain);
  const auto replace = [&]<class Bits>(Bits* elements) {
    copy_where_equal(bits_of<Bits>(plain), bits_of<Bits>(special), bits_of<Bits>(found),
                     std::span(elements, static_cast<size_t>(mixed.elements())));
  };
  switch (element_bytes(plain.type())) {
    case 1:
      replace(static_cast<uint8_t*>(mixed.mutable_data()));
      break;
    case 2:
      replace(static_cast<uint16_t*>(mixed.mutable_data()));
      break;
    case 4:
      replace(static_cast<uint32_t*>(mixed.mutable_data()));
      break;
    default:
      replace(static_cast<uint64_t*>(mixed.mutable_data()));
  }
  return mixed;
}

}  // namespace

Tensor with_special_values(const Tensor& tensor, std::string_view name, SpecialValues kinds) {
  if (tensor.is_empty() || !is_floating(tensor.type())) return {};
  Tensor special = copy_of(tensor);
  const uint64_t digest = digest_of(name);
  switch (tensor.type()) {
    case DataType::Float16:
      set_special_values<Float16>(special, digest, kinds);
      break;
    case DataType::BFloat16:
      set_special_values<BFloat16>(special, digest, kinds);
      break;
    case DataType::Float32:
      set_special_values<float>(special, digest, kinds);
      break;
    default:
      set_special_values<double>(special, digest, kinds);
  }
  return special;
}

SpecialValues special_values_for(const Graph& graph, const ops::Registry& registry) {
  const bool has_product =
      std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [&](const Node& node) { return registry.has_trait(node, ops::kProduct); });
  if (has_product) return SpecialValues::NaN;
  const bool is_alone =
      graph.nodes.size() == 1 && registry.has_trait(graph.nodes[0], ops::kElementwise);
  return is_alone ? SpecialValues::All : SpecialValues::Infinities;
}

std::optional<double> ulps_of_special_values(const Graph& graph, const ops::Registry& registry) {
  if (graph.nodes.size() != 1 || special_values_for(graph, registry) != SpecialValues::All) {
    return std::nullopt;
  }
  const std::optional<ops::ErrorBound>& bound = registry.of(graph.nodes[0]).error_bound;
  if (!bound) return std::nullopt;
  ops::ErrorBound others = *bound;
  others.ulps = 0;
  const DataType type = graph[graph.nodes[0].outputs[0]].type.element;
  if (!others.is_exact() || type == DataType::Float64) return std::nullopt;
  // The reference has rounded once: correctly, except very rarely.
  constexpr double kOfReference = 0.5;
  return bound->ulps <= kOfReference ? 0 : bound->ulps + kOfReference;
}

std::string explain_lost_special(const SpecialExpectation& expected, const Tensor& found,
                                 bool may_spread, int precision) {
  const Tensor& special = expected.special;
  if (special.type() != found.type() || special.dims() != found.dims()) {
    return "expected " + dims_text(special.dims()) + ", found " + dims_text(found.dims());
  }
  if (is_floating(special.type())) {
    std::string lost = explain_lost(special, found);
    if (!lost.empty() || may_spread) return lost;
    if (expected.kinds == SpecialValues::All) {
      return explain_finite_difference(special, found, precision, expected.ulps);
    }
  } else if (special.type() == DataType::Bool) {
    return measure_difference(special, {}, found, precision).text;
  }
  const Tensor& plain = expected.plain;
  if (may_spread || plain.type() != special.type() || plain.dims() != special.dims()) return "";
  return measure_difference(plain, expected.magnitude, replace_unaffected(plain, special, found),
                            precision)
      .text;
}

}  // namespace tessera::verification
