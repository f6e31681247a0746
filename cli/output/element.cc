#include "cli/output/element.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/tensor/small_types.h"
#include "base/text/utf8.h"
#include "tessera/error.h"
#include "tessera/float16.h"

namespace tessera::cli {
namespace {

// Tensors of at most this many elements are printed completely, and so many strings of others.
constexpr int64_t kShownElements = 5;
constexpr int kSummaryDigits = 6;

template <class T>
WideNumber read_as(const Tensor& tensor, int64_t index) {
  return static_cast<WideNumber>(tensor.as<T>()[static_cast<size_t>(index)]);
}

template <class T>
WideNumber read_as_float(const Tensor& tensor, int64_t index) {
  return static_cast<float>(tensor.as<T>()[static_cast<size_t>(index)]);
}

std::string first_elements(const Tensor& tensor) {
  std::string text;
  for (int64_t index = 0; index < std::min(kShownElements, tensor.elements()); ++index) {
    text += (text.empty() ? "" : " ") + element_text(tensor, index, kSummaryDigits);
  }
  return text;
}

// Cut after a number of characters.
std::string shown_string(std::string_view text) {
  constexpr int kMaxShown = 24;
  std::string shown = "\"";
  for (int count = 0; !text.empty(); ++count) {
    if (count == kMaxShown) return shown + "...\"";
    const size_t bytes = std::max<size_t>(1, first_code_point(text).bytes);
    shown += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return shown + "\"";
}

}  // namespace

WideNumber element_at(const Tensor& tensor, int64_t index) {
  switch (tensor.type()) {
    case DataType::Bool:
      return read_as<uint8_t>(tensor, index) != 0 ? 1 : 0;
    case DataType::Int8:
      return read_as<int8_t>(tensor, index);
    case DataType::Int16:
      return read_as<int16_t>(tensor, index);
    case DataType::Int32:
      return read_as<int32_t>(tensor, index);
    case DataType::Int64:
      return read_as<int64_t>(tensor, index);
    case DataType::UInt8:
      return read_as<uint8_t>(tensor, index);
    case DataType::UInt16:
      return read_as<uint16_t>(tensor, index);
    case DataType::UInt32:
      return read_as<uint32_t>(tensor, index);
    case DataType::UInt64:
      return read_as<uint64_t>(tensor, index);
    case DataType::Float16:
      return read_as_float<Float16>(tensor, index);
    case DataType::BFloat16:
      return read_as_float<BFloat16>(tensor, index);
    case DataType::Float32:
      return read_as<float>(tensor, index);
    case DataType::Float64:
      return read_as<double>(tensor, index);
    case DataType::Float8E4M3FN:
    case DataType::Float8E4M3FNUZ:
    case DataType::Float8E5M2:
    case DataType::Float8E5M2FNUZ:
    case DataType::Float8E8M0:
    case DataType::Float4E2M1:
      return small_float_values(tensor.type())[tensor.as<uint8_t>()[static_cast<size_t>(index)]];
    case DataType::Int4:
    case DataType::UInt4:
    case DataType::Int2:
    case DataType::UInt2:
      return small_integer(tensor.type(), tensor.as<uint8_t>()[static_cast<size_t>(index)]);
    case DataType::Undefined:
    case DataType::String:
    case DataType::Sequence:
    case DataType::Map:
      break;
  }
  throw Error(ErrorKind::Internal, "element_at", "a tensor without elements was read");
}

std::string number_text(WideNumber number, int digits) {
  if (std::isnan(number)) return "nan";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*Lg", digits, number);
  return text.data();
}

std::string element_text(const Tensor& tensor, int64_t index, int digits) {
  if (tensor.is_strings())
    return shown_string(tensor.as<std::string>()[static_cast<size_t>(index)]);
  const WideNumber value = element_at(tensor, index);
  if (tensor.type() == DataType::Bool) return value != 0 ? "true" : "false";
  return number_text(value,
                     is_integer(tensor.type()) ? distinguishing_digits(tensor.type()) : digits);
}

int distinguishing_digits(DataType type) {
  switch (type) {
    case DataType::Float16:
      return 5;
    case DataType::BFloat16:
      return 4;
    case DataType::Float32:
      return std::numeric_limits<float>::max_digits10;
    case DataType::Float64:
      return std::numeric_limits<double>::max_digits10;
    default:
      return std::numeric_limits<uint64_t>::digits10 + 1;
  }
}

std::vector<int64_t> indices_of(const std::vector<int64_t>& dims, int64_t index) {
  std::vector<int64_t> indices(dims.size(), 0);
  for (size_t axis = dims.size(); axis-- > 0;) {
    indices[axis] = index % dims[axis];
    index /= dims[axis];
  }
  return indices;
}

std::string indices_text(const std::vector<int64_t>& indices) {
  std::string text;
  for (const int64_t index : indices) text += (text.empty() ? "" : ", ") + std::to_string(index);
  return "(" + text + ")";
}

std::string summarise(const Tensor& tensor) {
  if (tensor.elements() == 0) return "no elements";
  if (tensor.elements() <= kShownElements) return first_elements(tensor);
  if (tensor.is_strings()) {
    return first_elements(tensor) + " and " + std::to_string(tensor.elements() - kShownElements) +
           " more";
  }
  WideNumber smallest = std::numeric_limits<WideNumber>::infinity();
  WideNumber largest = -smallest;
  WideNumber sum = 0;
  int64_t finite = 0;
  for (int64_t index = 0; index < tensor.elements(); ++index) {
    const WideNumber value = element_at(tensor, index);
    if (!std::isfinite(value)) continue;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
    sum += value;
    ++finite;
  }
  if (finite == 0) return "no finite element";
  std::string text = number_text(smallest, kSummaryDigits) + " to " +
                     number_text(largest, kSummaryDigits) + ", mean " +
                     number_text(sum / static_cast<WideNumber>(finite), kSummaryDigits);
  const int64_t others = tensor.elements() - finite;
  if (others > 0) text += ", " + std::to_string(others) + " not finite";
  return text;
}

}  // namespace tessera::cli
