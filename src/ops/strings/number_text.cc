#include "ops/strings/number_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "ops/convert_elements.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

template <class T>
std::string text_of(T number) {
  if constexpr (std::is_same_v<T, bool>) return number ? "1" : "0";
  using Computed = compute_t<T>;
  const auto value = static_cast<Computed>(number);
  if constexpr (std::is_floating_point_v<Computed>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
    std::array<char, 512> digits{};
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                            std::chars_format::fixed);
    return {digits.data(), end};
  } else {
    return std::to_string(value);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The number that all of `text` is; nullopt if there is none, or none that T can hold.
template <class T>
std::optional<T> whole_number(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc()) return number;
  if constexpr (std::is_floating_point_v<T>) {
    // Too large or too small: strtod() tells which.
    if (error == std::errc::result_out_of_range) {
      return static_cast<T>(std::strtod(std::string(text).c_str(), nullptr));
    }
  }
  return std::nullopt;
}

template <class T>
std::optional<T> number_of(std::string_view given) {
  std::string_view text = trimmed(given);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-' && text[1] != '+') {
    text.remove_prefix(1);
  }
  if constexpr (std::is_integral_v<T>) {
    if (const std::optional<T> number = whole_number<T>(text)) return number;
    const std::optional<double> number = whole_number<double>(text);
    if (!number) return std::nullopt;
    const double whole = std::trunc(*number);
    // Both limits are powers of two, so they are exact.
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double lowest = std::is_signed_v<T> ? -limit : 0;
    if (!(whole >= lowest && whole < limit)) return std::nullopt;
    return static_cast<T>(whole);
  } else {
    const std::optional<double> number = whole_number<double>(text);
    if (!number) return std::nullopt;
    // Rounding twice could give another float.
    if constexpr (std::is_same_v<T, float>) return whole_number<float>(text);
    return static_cast<T>(*number);
  }
}

std::optional<bool> truth_of(std::string_view text) {
  const std::optional<double> number = number_of<double>(text);
  if (!number) return std::nullopt;
  return *number != 0;
}

[[noreturn]] void fail_text(const ValueCall& call, const Tensor& input, DataType type,
                            size_t index) {
  constexpr size_t kMaxShown = 40;
  call.fail("expected a number of " + std::string(name(type)) + ", found '" +
            input.as<std::string>()[index].substr(0, kMaxShown) + "' as element " +
            std::to_string(index));
}

// `type` is that of the result, of which `output` may hold the numbers in another type.
template <class T>
void read_all(const ValueCall& call, const Tensor& input, DataType type, Tensor& output) {
  const std::span<const std::string> texts = input.as<std::string>();
  for (size_t index = 0; index < texts.size(); ++index) {
    std::optional<T> number;
    if constexpr (std::is_same_v<T, bool>) {
      number = truth_of(texts[index]);
    } else {
      number = number_of<T>(texts[index]);
    }
    if (!number) fail_text(call, input, type, index);
    output.mutable_as<T>()[index] = *number;
  }
}

Tensor converted_elements(const Tensor& input, DataType type, SmallFloatRounding rounding = {}) {
  Tensor output(type, input.dims());
  convert_elements(input.type(), input.data(), type, output.mutable_data(), input.elements(),
                   rounding);
  return output;
}

Tensor small_from_text(const ValueCall& call, const Tensor& input, DataType type,
                       SmallFloatRounding rounding) {
  Tensor numbers(is_small_float(type) ? DataType::Float64 : DataType::Int8, input.dims());
  if (is_small_float(type)) {
    read_all<double>(call, input, type, numbers);
    return converted_elements(numbers, type, rounding);
  }
  read_all<int8_t>(call, input, type, numbers);
  for (size_t index = 0; const int8_t number : numbers.as<int8_t>()) {
    if (small_integer(type, static_cast<uint8_t>(number)) != number) {
      fail_text(call, input, type, index);
    }
    ++index;
  }
  return converted_elements(numbers, type);
}

template <class Visit>
void visit_number(DataType type, const Visit& visit) {
  if (type == DataType::Bool) return visit(TypeTag<bool>{});
  visit_numeric(type, visit);
}

}  // namespace

Tensor converted_text(const ValueCall& call, const Tensor& input, DataType type,
                      SmallFloatRounding rounding) {
  if (input.type() == type) return input.owned();
  if (is_small(type)) return small_from_text(call, input, type, rounding);
  if (is_small(input.type())) {
    const bool is_float = is_small_float(input.type());
    return converted_text(
        call, converted_elements(input, is_float ? DataType::Float32 : DataType::Int8), type);
  }
  Tensor output(type, input.dims());
  if (type == DataType::String) {
    visit_number(input.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::ranges::transform(input.as<T>(), output.mutable_as<std::string>().begin(), text_of<T>);
    });
  } else {
    visit_number(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      read_all<T>(call, input, type, output);
    });
  }
  return output;
}

}  // namespace tessera::ops
