#include "capi/tensors.h"

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "capi/boundary.h"
#include "tessera/data_type.h"
#include "tessera/error.h"

namespace tessera::capi {
namespace {

// Beyond it, a rank was not set.
constexpr int32_t kMaxRank = 1024;

// The C interface numbers types as this library does.
static_assert(static_cast<int>(DataType::Bool) == TESSERA_BOOL);
static_assert(static_cast<int>(DataType::UInt64) == TESSERA_UINT64);
static_assert(static_cast<int>(DataType::Float16) == TESSERA_FLOAT16);
static_assert(static_cast<int>(DataType::Float64) == TESSERA_FLOAT64);
static_assert(static_cast<int>(DataType::String) == TESSERA_STRING);

[[noreturn]] void refuse(const std::string& where, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, where, message);
}

// A tensor without elements has an address too, because null stands for elements that were
// released.
void* address_of(const tessera_tensor& given) {
  static constexpr char kNoElements = 0;
  return given.bytes == 0 ? const_cast<char*>(&kNoElements) : given.data;
}

Tensor tensor_of(const tessera_tensor& given, const std::string& where) {
  if (given.data_type <= TESSERA_UNDEFINED || given.data_type >= TESSERA_STRING) {
    refuse(where, "expected the data_type of a tensor of numbers or bools, from TESSERA_BOOL (" +
                      std::to_string(TESSERA_BOOL) + ") to TESSERA_FLOAT64 (" +
                      std::to_string(TESSERA_FLOAT64) + "), found " +
                      std::to_string(given.data_type));
  }
  if (given.rank < 0 || given.rank > kMaxRank) {
    refuse(where, "expected a rank from 0 to " + std::to_string(kMaxRank) + ", found " +
                      std::to_string(given.rank));
  }
  if (given.rank > 0 && given.dims == nullptr) {
    refuse(where, "expected " + std::to_string(given.rank) + " dims, found NULL");
  }
  const auto type = static_cast<DataType>(given.data_type);
  std::vector<int64_t> dims(given.dims, given.dims + given.rank);
  for (const int64_t dim : dims) {
    if (dim < 0) {
      refuse(where, "expected dims of at least 0, found " + dims_text(dims));
    }
  }
  const int64_t bytes = tensor_bytes(type, dims);
  if (given.bytes != static_cast<size_t>(bytes)) {
    refuse(where, "expected " + std::to_string(bytes) + " bytes for " + std::string(name(type)) +
                      " " + dims_text(dims) + ", found " + std::to_string(given.bytes));
  }
  if (bytes > 0 && given.data == nullptr) {
    refuse(where, "expected " + std::to_string(bytes) + " bytes of data, found NULL");
  }
  void* const data = address_of(given);
  if (reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(element_bytes(type)) != 0 &&
      bytes > 0) {
    refuse(where, "expected data at a multiple of " + std::to_string(element_bytes(type)) +
                      " bytes, the size of a " + std::string(name(type)) +
                      ", found another address");
  }
  // The caller keeps the memory alive.
  return Tensor::over(type, std::move(dims), std::shared_ptr<void>(), data);
}

}  // namespace

GivenTensor read_tensor(const tessera_tensor* given, const char* kind,
                        const std::string& argument) {
  const tessera_tensor read = read_struct(given, argument);
  const std::string name = needed(read.name, argument + ".name", "the name of a value");
  return {name, tensor_of(read, std::string(kind) + " '" + name + "'")};
}

std::map<std::string, Tensor> read_tensors(const tessera_tensor* given, size_t count) {
  std::map<std::string, Tensor> tensors;
  if (count == 0) return tensors;
  const size_t stride = read_struct(given, "inputs[0]").struct_size;
  for (size_t index = 0; index < count; ++index) {
    const auto* const element = reinterpret_cast<const tessera_tensor*>(
        reinterpret_cast<const char*>(given) + index * stride);
    const std::string argument = "inputs[" + std::to_string(index) + "]";
    if (element->struct_size != stride) {
      refuse_argument(argument, "expected the struct_size of inputs[0], " + std::to_string(stride) +
                                    ", found " + std::to_string(element->struct_size));
    }
    GivenTensor read = read_tensor(element, "input", argument);
    const std::string where = "input '" + read.name + "'";
    if (!tensors.emplace(std::move(read.name), std::move(read.tensor)).second) {
      refuse(where, "expected one tensor, found two");
    }
  }
  return tensors;
}

DescribedValue::DescribedValue(ValueDescription value) : value_(std::move(value)) {
  if (!value_.shape) return;
  for (const Dimension& dimension : *value_.shape) {
    dims_.push_back(dimension.value.value_or(-1));
    symbols_.push_back(dimension.symbol.c_str());
  }
}

tessera_value_description DescribedValue::view() const {
  tessera_value_description view = {};
  view.name = value_.name.c_str();
  view.data_type = static_cast<int32_t>(value_.type);
  view.rank = value_.shape ? static_cast<int32_t>(dims_.size()) : -1;
  view.dims = dims_.data();
  view.symbols = symbols_.data();
  view.is_read = value_.is_read ? 1 : 0;
  view.text = value_.text.c_str();
  return view;
}

std::vector<DescribedValue> describe(const std::vector<ValueDescription>& values) {
  std::vector<DescribedValue> described;
  described.reserve(values.size());
  for (const ValueDescription& value : values) described.emplace_back(value);
  return described;
}

}  // namespace tessera::capi
