#include "python/dlpack.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "python/interpreter_lock.h"
#include "tessera/error.h"

namespace nb = nanobind;

namespace tessera::python {
namespace {

using nb::dlpack::dtype_code;
using ReadArray = nb::ndarray<nb::ro>;
using WrittenArray = nb::ndarray<>;

// DLDeviceType of dlpack.h, by number.
constexpr std::array<std::string_view, 18> kDevices = {
    "",    "cpu",  "cuda",      "cuda_host", "opencl",       "",       "",       "vulkan",  "metal",
    "vpi", "rocm", "rocm_host", "ext_dev",   "cuda_managed", "oneapi", "webgpu", "hexagon", "maia"};

// Whether the memory is the host's, also if a device can read it.
bool is_host(int32_t type) {
  const std::string_view name =
      type > 0 && static_cast<size_t>(type) < kDevices.size() ? kDevices[type] : "";
  return name == "cpu" || name == "cuda_host" || name == "rocm_host";
}

[[noreturn]] void refuse(const std::string& location, const std::string& expected,
                         const std::string& found) {
  throw Error(ErrorKind::InvalidArgument, location, "expected " + expected + ", found " + found);
}

std::string type_text(nb::handle value) {
  return nb::cast<std::string>(nb::str(nb::type_name(value.type())));
}

void check_device(nb::handle value, const std::string& location, int32_t type, int32_t id) {
  if (is_host(type)) return;
  const std::string device = dlpack_device_text(type, id);
  refuse(location, "an array in the host's memory",
         type_text(value) + " on device '" + device +
             "'; copy it to the host, or bind this name in a layout of the device and pass "
             "tessera.from_dlpack(array)");
}

// The producer says where an array is without exporting it, which may need a stream.
void check_device(nb::handle value, const std::string& location) {
  if (!nb::hasattr(value, "__dlpack_device__")) return;
  const nb::object device = value.attr("__dlpack_device__")();
  std::array<int32_t, 2> numbers{};
  for (size_t index = 0; index < numbers.size(); ++index) {
    // An element may be an enumeration.
    if (!nb::try_cast(nb::int_(nb::object(device[index])), numbers[index])) {
      refuse(location, "two numbers from __dlpack_device__()",
             nb::cast<std::string>(nb::repr(device)));
    }
  }
  check_device(value, location, numbers[0], numbers[1]);
}

// Why an array could not be had, in the words of its library.
std::string failure(nb::handle value) {
  try {
    value.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    const nb::object text = nb::steal(PyObject_Str(error.value().ptr()));
    if (!text.is_valid()) PyErr_Clear();
    const std::string type = nb::cast<std::string>(nb::str(nb::type_name(error.type())));
    return type + (text.is_valid() ? ": " + nb::cast<std::string>(text) : "");
  }
  return "its __dlpack__() gives no such capsule";
}

template <class Array>
Array import(nb::handle value, const std::string& location, const std::string& expected) {
  Array array;
  if (!nb::try_cast(value, array)) {
    refuse(location, expected, type_text(value) + " (" + failure(value) + ")");
  }
  check_device(value, location, array.device_type(), array.device_id());
  return array;
}

template <class Array>
DataType type_of(const Array& array, nb::handle value, const std::string& location) {
  if (const std::optional<DataType> type = element_type(array.dtype())) return *type;
  const nb::dlpack::dtype& type = array.dtype();
  refuse(location, "an array of numbers or bools",
         type_text(value) + " of DLPack's type code " + std::to_string(type.code) + " with " +
             std::to_string(type.bits) + " bits");
}

template <class Array>
std::vector<int64_t> dims_of(const Array& array) {
  std::vector<int64_t> dims;
  for (size_t dim = 0; dim < array.ndim(); ++dim) {
    dims.push_back(static_cast<int64_t>(array.shape(dim)));
  }
  return dims;
}

// Copies the part of a strided array from dimension `dim` on; `to` advances.
void copy_rows(const ReadArray& array, size_t dim, const std::byte* from, int64_t element,
               std::byte*& to) {
  if (dim == array.ndim()) {
    std::memcpy(to, from, static_cast<size_t>(element));
    to += element;
    return;
  }
  for (size_t index = 0; index < array.shape(dim); ++index) {
    const int64_t distance = static_cast<int64_t>(index) * array.stride(dim) * element;
    copy_rows(array, dim + 1, from + distance, element, to);
  }
}

struct Float8Code {
  DataType type;
  uint8_t code;  // DLDataTypeCode of dlpack.h
};
constexpr std::array kFloat8Codes = {
    Float8Code{DataType::Float8E4M3FN, 10}, Float8Code{DataType::Float8E4M3FNUZ, 11},
    Float8Code{DataType::Float8E5M2, 12},   Float8Code{DataType::Float8E5M2FNUZ, 13},
    Float8Code{DataType::Float8E8M0, 14},
};

}  // namespace

nb::dlpack::dtype dlpack_type(DataType type) {
  const auto* const small = std::ranges::find(kFloat8Codes, type, &Float8Code::type);
  if (small != kFloat8Codes.end()) return {small->code, 8, 1};
  if (is_small(type)) {
    throw Error(ErrorKind::Unsupported, std::string(name(type)),
                "DLPack has it with several elements in a byte only");
  }
  const auto bits = static_cast<uint8_t>(8 * element_bytes(type));
  const dtype_code code = type == DataType::Bool       ? dtype_code::Bool
                          : type == DataType::BFloat16 ? dtype_code::Bfloat
                          : is_signed_integer(type)    ? dtype_code::Int
                          : is_floating(type)          ? dtype_code::Float
                                                       : dtype_code::UInt;
  return {static_cast<uint8_t>(code), bits, 1};
}

std::optional<DataType> element_type(const nb::dlpack::dtype& type) {
  constexpr std::array kTypes = {
      DataType::Bool,   DataType::BFloat16, DataType::Float16, DataType::Float32, DataType::Float64,
      DataType::Int8,   DataType::Int16,    DataType::Int32,   DataType::Int64,   DataType::UInt8,
      DataType::UInt16, DataType::UInt32,   DataType::UInt64};
  for (const Float8Code& known : kFloat8Codes) {
    if (dlpack_type(known.type) == type) return known.type;
  }
  for (const DataType known : kTypes) {
    if (dlpack_type(known) == type) return known;
  }
  return std::nullopt;
}

std::string dlpack_device_text(int32_t type, int32_t id) {
  const bool is_known = type > 0 && static_cast<size_t>(type) < kDevices.size();
  std::string name(is_known ? kDevices[static_cast<size_t>(type)] : "");
  if (name.empty()) name = "type " + std::to_string(type);
  return name + ":" + std::to_string(id);
}

bool offers_dlpack(nb::handle value) {
  // NumPy arrays have it too, but not for all types and byte orders.
  return nb::hasattr(value, "__dlpack__") && !nb::hasattr(value, "__array_interface__");
}

Tensor tensor_from_dlpack(nb::handle value, const std::string& location) {
  check_device(value, location);
  auto array = import <ReadArray>(value, location, "an array that DLPack can exchange");
  const DataType type = type_of(array, value, location);
  std::vector<int64_t> dims = dims_of(array);
  const void* const data = array.data();
  if (is_row_major(array)) return Tensor(type, std::move(dims), kept(std::move(array)), data);
  Tensor copy(type, dims);
  auto* to = static_cast<std::byte*>(copy.mutable_data());
  copy_rows(array, 0, static_cast<const std::byte*>(data), element_bytes(type), to);
  return copy;
}

Tensor shared_tensor_from_dlpack(nb::handle value, const std::string& location, bool is_written) {
  check_device(value, location);
  const std::string expected =
      std::string("a dense row-major array") + (is_written ? " that may be written" : "");
  const auto share = [&]<class Array>(Array array) {
    const DataType type = type_of(array, value, location);
    if (!is_row_major(array)) refuse(location, expected, type_text(value) + " with other strides");
    std::vector<int64_t> dims = dims_of(array);
    auto* const data = const_cast<void*>(static_cast<const void*>(array.data()));
    if (is_written) return Tensor::over(type, std::move(dims), kept(std::move(array)), data);
    return Tensor(type, std::move(dims), kept(std::move(array)), data);
  };
  // The tensor refers to the object, which may refer to the executor that it is bound to. The
  // collector does not see such a cycle, so it may exist until the process ends.
  nb::set_leak_warnings(false);
  WrittenArray written;
  if (is_written && !nb::try_cast(value, written)) {
    import <ReadArray>(value, location, expected);
    refuse(location, expected, type_text(value) + " that is read-only");
  }
  if (is_written) {
    check_device(value, location, written.device_type(), written.device_id());
    return share(std::move(written));
  }
  return share(import <ReadArray>(value, location, expected));
}

}  // namespace tessera::python
