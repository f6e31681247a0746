#include "capi/tensors.h"

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "capi/boundary.h"
#include "tessera/data_type.h"
#include "tessera/error.h"

namespace tessera::capi {
namespace {

// Beyond it, a rank was not set.
constexpr int32_t kMaxRank = 1024;
// Of lists in one another.
constexpr int kMaxDepth = 32;

// The C interface numbers types as this library does.
static_assert(static_cast<int>(DataType::Bool) == TESSERA_BOOL);
static_assert(static_cast<int>(DataType::UInt64) == TESSERA_UINT64);
static_assert(static_cast<int>(DataType::Float16) == TESSERA_FLOAT16);
static_assert(static_cast<int>(DataType::Float64) == TESSERA_FLOAT64);
static_assert(static_cast<int>(DataType::String) == TESSERA_STRING);
static_assert(static_cast<int>(DataType::Sequence) == TESSERA_SEQUENCE);
static_assert(static_cast<int>(DataType::Float8E4M3FN) == TESSERA_FLOAT8E4M3FN);
static_assert(static_cast<int>(DataType::UInt2) == TESSERA_UINT2);
static_assert(static_cast<int>(DataType::Map) == TESSERA_MAP);

[[noreturn]] void refuse(const std::string& where, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, where, message);
}

// A tensor without elements has an address too, because null stands for elements that were
// released.
void* address_of(const tessera_tensor& given) {
  static constexpr char kNoElements = 0;
  return given.bytes == 0 ? const_cast<char*>(&kNoElements) : given.data;
}

// Whether its elements are structs tessera_tensor.
bool is_list(DataType type) { return type == DataType::Sequence || type == DataType::Map; }

size_t bytes_of_element(DataType type) {
  if (type == DataType::String) return sizeof(tessera_string);
  if (is_list(type)) return sizeof(tessera_tensor);
  return static_cast<size_t>(element_bytes(type));
}

const char* name_of_element(DataType type) {
  if (type == DataType::String) return "tessera_string";
  return is_list(type) ? "tessera_tensor" : name(type).data();
}

std::vector<int64_t> dims_of(const tessera_tensor& given, const std::string& where) {
  if (given.rank < 0 || given.rank > kMaxRank) {
    refuse(where, "expected a rank from 0 to " + std::to_string(kMaxRank) + ", found " +
                      std::to_string(given.rank));
  }
  if (given.rank > 0 && given.dims == nullptr) {
    refuse(where, "expected " + std::to_string(given.rank) + " dims, found NULL");
  }
  std::vector<int64_t> dims(given.dims, given.dims + given.rank);
  if (given.data_type == TESSERA_SEQUENCE && given.rank != 1) {
    refuse(where, "expected a list, of rank 1, found rank " + std::to_string(given.rank));
  }
  if (given.data_type == TESSERA_MAP && dims != std::vector<int64_t>{2}) {
    refuse(where, "expected keys and values of a map, of shape 2, found " + dims_text(dims));
  }
  for (const int64_t dim : dims) {
    if (dim < 0) refuse(where, "expected dims of at least 0, found " + dims_text(dims));
  }
  return dims;
}

// Throws unless the elements of a tensor of `dims` are where `given` says.
void check_elements(const tessera_tensor& given, const std::vector<int64_t>& dims,
                    size_t element_size, const std::string& where) {
  const auto type = static_cast<DataType>(given.data_type);
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(element_count(dims)), element_size, &bytes)) {
    refuse(where, "the number of bytes of " + dims_text(dims) + " exceeds 64 bits");
  }
  if (given.bytes != bytes) {
    refuse(where, "expected " + std::to_string(bytes) + " bytes for " + std::string(name(type)) +
                      " " + dims_text(dims) + ", found " + std::to_string(given.bytes));
  }
  if (bytes > 0 && given.data == nullptr) {
    refuse(where, "expected " + std::to_string(bytes) + " bytes of data, found NULL");
  }
  const size_t alignment = element_bytes(type) > 0 ? element_size : alignof(void*);
  if (reinterpret_cast<uintptr_t>(address_of(given)) % alignment != 0 && bytes > 0) {
    refuse(where, "expected data at a multiple of " + std::to_string(alignment) +
                      " bytes, the size of a " + name_of_element(type) + ", found another address");
  }
}

Tensor strings_of(const tessera_tensor& given, std::vector<int64_t> dims,
                  const std::string& where) {
  std::vector<std::string> strings;
  const auto count = static_cast<size_t>(element_count(dims));
  for (const tessera_string& each :
       std::span(static_cast<const tessera_string*>(given.data), count)) {
    if (each.text == nullptr && each.bytes > 0) {
      refuse(where, "expected " + std::to_string(each.bytes) + " bytes of text as element " +
                        std::to_string(strings.size()) + ", found NULL");
    }
    strings.emplace_back(each.bytes == 0 ? "" : each.text, each.bytes);
  }
  return Tensor::strings(std::move(dims), std::move(strings));
}

Tensor tensor_of(const tessera_tensor& given, const std::string& where, int depth);

Tensor map_of(Tensor keys, Tensor values, const std::string& where) {
  if (keys.type() != DataType::Int64 && keys.type() != DataType::String) {
    refuse(where, "expected keys of int64 or string, found " + std::string(name(keys.type())));
  }
  if (keys.rank() != 1 || values.rank() != 1 || keys.elements() != values.elements()) {
    refuse(where, "expected lists of as many keys as values, found " + dims_text(keys.dims()) +
                      " and " + dims_text(values.dims()));
  }
  return Tensor::map(std::move(keys), std::move(values));
}

Tensor list_of(const tessera_tensor& given, size_t stride, const std::string& where, int depth) {
  if (depth == kMaxDepth) {
    refuse(where, "expected at most " + std::to_string(kMaxDepth) + " lists in one another");
  }
  std::vector<Tensor> elements;
  for (int64_t index = 0; index < given.dims[0]; ++index) {
    const std::string place = where + "[" + std::to_string(index) + "]";
    const auto* const each = reinterpret_cast<const tessera_tensor*>(
        static_cast<const char*>(given.data) + static_cast<size_t>(index) * stride);
    Tensor element = tensor_of(read_struct(each, place), place, depth + 1);
    const bool is_borrowed = element_bytes(element.type()) > 0;
    elements.push_back(is_borrowed ? element.copied() : std::move(element));
  }
  if (given.data_type == TESSERA_SEQUENCE) return Tensor::sequence(std::move(elements));
  return map_of(std::move(elements[0]), std::move(elements[1]), where);
}

Tensor tensor_of(const tessera_tensor& given, const std::string& where, int depth) {
  const bool is_nothing = given.data_type == TESSERA_UNDEFINED && given.rank == 0 &&
                          given.data == nullptr && given.bytes == 0;
  if (is_nothing) return {};
  if (given.data_type <= TESSERA_UNDEFINED || given.data_type > TESSERA_MAP) {
    refuse(where, "expected the data_type of a tensor, from TESSERA_BOOL (" +
                      std::to_string(TESSERA_BOOL) + ") to TESSERA_MAP (" +
                      std::to_string(TESSERA_MAP) + "), found " + std::to_string(given.data_type));
  }
  const auto type = static_cast<DataType>(given.data_type);
  std::vector<int64_t> dims = dims_of(given, where);
  size_t element_size = bytes_of_element(type);
  if (is_list(type) && dims[0] > 0 && given.data != nullptr) {
    // The caller's struct may be that of another version.
    std::memcpy(&element_size, given.data, sizeof element_size);
  }
  check_elements(given, dims, element_size, where);
  if (is_list(type)) return list_of(given, element_size, where, depth);
  if (type == DataType::String) return strings_of(given, std::move(dims), where);
  // The caller keeps the memory alive.
  return Tensor::over(type, std::move(dims), std::shared_ptr<void>(), address_of(given));
}

}  // namespace

GivenTensor read_tensor(const tessera_tensor* given, const char* kind,
                        const std::string& argument) {
  const tessera_tensor read = read_struct(given, argument);
  const std::string name = needed(read.name, argument + ".name", "the name of a value");
  return {name, tensor_of(read, std::string(kind) + " '" + name + "'", 0)};
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

ShownTensor::ShownTensor(Tensor tensor, std::string name)
    : tensor_(std::move(tensor)), name_(std::move(name)) {
  if (tensor_.is_strings()) {
    for (const std::string& text : tensor_.as<std::string>()) {
      strings_.push_back({text.c_str(), text.size()});
    }
  } else if (tensor_.holds_tensors()) {
    elements_.reserve(tensor_.list().size());
    for (const Tensor& element : tensor_.list()) {
      views_.push_back(elements_.emplace_back(element, "").view());
    }
  }
}

tessera_tensor ShownTensor::view() const {
  tessera_tensor view = {};
  view.struct_size = sizeof(view);
  view.name = name_.c_str();
  view.data_type = static_cast<int32_t>(tensor_.type());
  view.rank = static_cast<int32_t>(tensor_.rank());
  view.dims = tensor_.dims().data();
  view.bytes = bytes_of_element(tensor_.type()) * static_cast<size_t>(tensor_.elements());
  // The memory belongs to the executor or to the caller; both may be written.
  const void* const data = tensor_.is_strings()      ? strings_.data()
                           : tensor_.holds_tensors() ? static_cast<const void*>(views_.data())
                                                     : tensor_.data();
  view.data = const_cast<void*>(data);
  return view;
}

std::vector<DescribedValue> describe(const std::vector<ValueDescription>& values) {
  std::vector<DescribedValue> described;
  described.reserve(values.size());
  for (const ValueDescription& value : values) described.emplace_back(value);
  return described;
}

}  // namespace tessera::capi
