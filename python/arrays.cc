#include "python/arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "python/dlpack.h"
#include "python/interpreter_lock.h"
#include "tessera/error.h"

namespace nb = nanobind;

namespace tessera::python {
namespace {

// The element type of a buffer, from its format and element size as Python's struct module defines
// them; nullopt if the bytes are swapped, or if the elements are not numbers or bools.
std::optional<DataType> buffer_type(std::string_view format, Py_ssize_t bytes) {
  if (format.size() == 2 && (format[0] == '@' || format[0] == '=' || format[0] == '<')) {
    format.remove_prefix(1);
  }
  if (format.size() != 1) return std::nullopt;
  const auto by_bytes = [&](std::array<DataType, 4> types) {
    return bytes == 1 ? types[0] : bytes == 2 ? types[1] : bytes == 4 ? types[2] : types[3];
  };
  switch (format[0]) {
    case '?':
      return DataType::Bool;
    case 'e':
      return DataType::Float16;
    case 'f':
      return DataType::Float32;
    case 'd':
      return DataType::Float64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return by_bytes({DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64});
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return by_bytes({DataType::UInt8, DataType::UInt16, DataType::UInt32, DataType::UInt64});
    default:
      return std::nullopt;
  }
}

// A view of the memory of an object. While it exists, the object must not move or free the memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (!is_open_) return;
    // The last tensor may be destroyed on a thread that does not hold the interpreter's lock.
    const Locked lock;
    PyBuffer_Release(&view_);
  }

  // Returns whether `value` has a dense row-major buffer. `wish` is PyBUF_WRITABLE or 0.
  bool open(nb::handle value, int wish) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | wish;
    is_open_ = PyObject_GetBuffer(value.ptr(), &view_, flags) == 0;
    if (!is_open_) PyErr_Clear();
    return is_open_;
  }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
  bool is_open_ = false;
};

// The buffer of `value` as a tensor of `type`, or of the type of the buffer. nullopt if the buffer
// is not dense and row-major, if its elements are not numbers or bools in the byte order of this
// machine, or if it should be writable and is not.
std::optional<Tensor> borrow(nb::handle value, std::optional<DataType> type = std::nullopt,
                             int wish = 0) {
  auto buffer = std::make_shared<Buffer>();
  if (!buffer->open(value, wish)) return std::nullopt;
  const Py_buffer& view = buffer->view();
  if (!type) type = buffer_type(view.format == nullptr ? "B" : view.format, view.itemsize);
  if (!type) return std::nullopt;
  std::vector<int64_t> dims(view.shape, view.shape + view.ndim);
  void* data = view.buf;
  if (wish == PyBUF_WRITABLE) return Tensor::over(*type, std::move(dims), std::move(buffer), data);
  return Tensor(*type, std::move(dims), std::move(buffer), data);
}

// borrow() for values that must be arrays, because a copy would not refer to their memory. Throws
// InvalidArgument if `value` cannot be borrowed.
Tensor borrow_as_it_is(nb::handle value, const std::string& location, int wish) {
  nb::object array = nb::borrow(value);
  std::optional<DataType> type;
  const bool is_array = nb::hasattr(value, "dtype") && nb::hasattr(value, "view");
  if (is_array &&
      nb::cast<std::string>(value.attr("dtype").attr("name")) == name(DataType::BFloat16)) {
    type = DataType::BFloat16;
    array = array.attr("view")("uint16");
  }
  if (std::optional<Tensor> tensor = borrow(array, type, wish)) return *std::move(tensor);
  if (offers_dlpack(value)) return shared_tensor_from_dlpack(value, location, wish != 0);
  const bool is_read_only = wish != 0 && borrow(array, type).has_value();
  throw Error(ErrorKind::InvalidArgument, location,
              std::string("expected a dense row-major array of numbers or bools") +
                  (wish == PyBUF_WRITABLE ? " that may be written" : "") + ", found " +
                  nb::cast<std::string>(nb::str(nb::type_name(value.type()))) +
                  (is_read_only ? " that is read-only"
                                : " that is not; numpy.ascontiguousarray converts it"));
}

// NumPy's array of any value. Throws InvalidArgument with NumPy's reason if it has none.
nb::object as_array(nb::handle value, const std::string& location) {
  try {
    return nb::module_::import_("numpy").attr("asarray")(value, nb::arg("order") = "C");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    throw Error(
        ErrorKind::InvalidArgument, location,
        "expected an array, found " + nb::cast<std::string>(nb::str(nb::type_name(value.type()))) +
            ", which NumPy does not convert: " + nb::cast<std::string>(nb::str(error.value())));
  }
}

// The array that the value is or has (__array__); null if it has none that NumPy can make.
nb::object array_of_itself(nb::handle value) {
  if (!nb::hasattr(value, "__array__")) return {};
  try {
    return nb::module_::import_("numpy").attr("asarray")(value, nb::arg("order") = "C");
  } catch (nb::python_error&) {
    return {};
  }
}

// The bytes of a str; those that stand for bytes which are not UTF-8 become these bytes again.
std::string utf8_of(nb::handle text) {
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes) throw nb::python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

// The strings of an array of str, bytes, or objects that are either; nullopt for any other array.
std::optional<Tensor> strings_of(nb::handle array) {
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const bool may_be_strings = kind == "U" || kind == "S" || kind == "O" || kind == "T";
  if (!may_be_strings) return std::nullopt;
  const nb::list elements =
      nb::cast<nb::list>(array.attr("astype")("object").attr("ravel")().attr("tolist")());
  std::vector<std::string> strings;
  strings.reserve(elements.size());
  for (const nb::handle element : elements) {
    if (PyBytes_Check(element.ptr()) != 0) {
      strings.emplace_back(PyBytes_AS_STRING(element.ptr()),
                           static_cast<size_t>(PyBytes_GET_SIZE(element.ptr())));
    } else if (PyUnicode_Check(element.ptr()) != 0) {
      strings.push_back(utf8_of(element));
    } else {
      return std::nullopt;
    }
  }
  return Tensor::strings(nb::cast<std::vector<int64_t>>(array.attr("shape")), std::move(strings));
}

// An array of objects, which are str. Bytes that are not UTF-8 become what os.fsdecode() makes of
// them, and to_tensor() makes the same bytes of that.
nb::object to_array_of_objects(const Tensor& strings) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("empty")(strings.elements(), nb::arg("dtype") = "object");
  int64_t index = 0;
  for (const std::string& text : strings.as<std::string>()) {
    array[index++] = nb::steal(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
  }
  return array.attr("reshape")(nb::cast(strings.dims()));
}

nb::object bfloat16_dtype() {
  try {
    return nb::module_::import_("ml_dtypes").attr("bfloat16");
  } catch (nb::python_error&) {
    throw Error(ErrorKind::Unsupported, "bfloat16",
                "NumPy has no such type of its own; install the Python package ml_dtypes");
  }
}

// bfloat16 is passed as 16-bit integers; the array is viewed as bfloat16 afterwards.
nb::dlpack::dtype storage_type(DataType type) {
  return dlpack_type(type == DataType::BFloat16 ? DataType::UInt16 : type);
}

nb::object to_array(Tensor tensor);

// A dict of Python's numbers and str, as ONNX Runtime gives it.
nb::object to_dictionary(const Tensor& map) {
  nb::dict dictionary;
  const nb::list keys(to_array(map.map_keys()).attr("tolist")());
  const nb::list values(to_array(map.map_values()).attr("tolist")());
  for (size_t index = 0; index < nb::len(keys); ++index) dictionary[keys[index]] = values[index];
  return dictionary;
}

nb::object to_array(Tensor tensor) {
  if (tensor.is_empty()) return nb::none();
  if (tensor.is_sequence()) {
    nb::list arrays;
    for (const Tensor& element : tensor.list()) arrays.append(to_array(element));
    return arrays;
  }
  if (tensor.is_map()) return to_dictionary(tensor);
  if (tensor.is_strings()) return to_array_of_objects(tensor);
  if (tensor.device_storage() != nullptr) return nb::cast(std::move(tensor));
  if (!tensor.is_sole_owner()) {
    tensor = tensor.copied();
  }
  const nb::capsule owner(new Tensor(std::move(tensor)),
                          [](void* given) noexcept { delete static_cast<Tensor*>(given); });
  Tensor& owned = *static_cast<Tensor*>(owner.data());
  const std::vector<size_t> shape(owned.dims().begin(), owned.dims().end());
  const nb::ndarray<nb::numpy> array(owned.mutable_data(), shape.size(), shape.data(), owner,
                                     nullptr, storage_type(owned.type()));
  nb::object object = nb::cast(array, nb::rv_policy::reference);
  if (owned.type() == DataType::BFloat16) return object.attr("view")(bfloat16_dtype());
  return object;
}

}  // namespace

Tensor to_tensor(nb::handle value, const std::string& location) {
  if (nb::isinstance<Tensor>(value)) return nb::cast<Tensor>(value);
  if (std::optional<Tensor> tensor = borrow(value)) return *std::move(tensor);
  nb::object array;
  if (offers_dlpack(value)) {
    try {
      return tensor_from_dlpack(value, location);
    } catch (const Error&) {
      // NumPy exchanges no bfloat16 by DLPack, and so nothing that is made of NumPy's arrays does.
      array = array_of_itself(value);
      if (!array) throw;
    }
  } else {
    array = as_array(value, location);
  }
  const nb::object dtype = array.attr("dtype");
  const auto type_name = nb::cast<std::string>(dtype.attr("name"));
  std::optional<DataType> type;
  if (type_name == name(DataType::BFloat16)) {
    type = DataType::BFloat16;
    array = array.attr("view")("uint16");
  } else if (!nb::cast<bool>(dtype.attr("isnative"))) {
    array = array.attr("astype")(dtype.attr("newbyteorder")("="));
  }
  if (std::optional<Tensor> tensor = borrow(array, type)) return *std::move(tensor);
  if (std::optional<Tensor> tensor = strings_of(array)) return *std::move(tensor);
  throw Error(ErrorKind::InvalidArgument, location,
              "expected an array of numbers, bools or strings, found " +
                  nb::cast<std::string>(nb::str(nb::type_name(value.type()))) + " of dtype " +
                  type_name);
}

Tensor to_map(nb::handle value, std::string_view text, const std::string& location) {
  if (!nb::isinstance<nb::dict>(value)) {
    throw Error(
        ErrorKind::InvalidArgument, location,
        "expected a dict, found " + nb::cast<std::string>(nb::str(nb::type_name(value.type()))));
  }
  // "map(int64, float32 scalar)": arrays of these types, also of an empty dict.
  const auto array_of = [&](const char* method, std::string_view type) {
    const nb::object list = nb::list(value.attr(method)());
    const nb::module_ numpy = nb::module_::import_("numpy");
    if (type.empty()) return to_tensor(numpy.attr("asarray")(list), location);
    if (type == "string") return to_tensor(numpy.attr("asarray")(list, "object"), location);
    try {
      const nb::object array = numpy.attr("asarray")(list, nb::str(type.data(), type.size()));
      return to_tensor(array, location);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
      throw Error(ErrorKind::InvalidArgument, location,
                  "expected a dict with " + std::string(method) + " of " + std::string(type) +
                      ", found others: " + nb::cast<std::string>(nb::str(error.value())));
    }
  };
  const size_t begin = text.find("map(");
  const std::string_view types =
      begin == std::string_view::npos ? "" : text.substr(begin + 4, text.find(')') - begin - 4);
  const size_t comma = std::min(types.find(", "), types.size());
  const std::string_view key_type = types.substr(0, comma);
  std::string_view value_type = types.substr(std::min(types.size(), comma + 2));
  value_type = value_type.substr(0, value_type.find(' '));
  Tensor keys = array_of("keys", key_type);
  Tensor values = array_of("values", value_type);
  const bool has_keys = keys.is_strings() || keys.type() == DataType::Int64;
  if (!has_keys || keys.rank() != 1 || values.rank() != 1) {
    throw Error(ErrorKind::InvalidArgument, location,
                "expected a dict with keys of int or str and single values, found keys of " +
                    std::string(name(keys.type())) + " " + dims_text(keys.dims()) +
                    " and values of " + dims_text(values.dims()));
  }
  return Tensor::map(keys.copied(), values.copied());
}

Tensor to_list(nb::handle value, const std::string& location) {
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value)) {
    throw Error(ErrorKind::InvalidArgument, location,
                "expected a list of arrays, found " +
                    nb::cast<std::string>(nb::str(nb::type_name(value.type()))));
  }
  std::vector<Tensor> elements;
  for (const nb::handle element : value) {
    const std::string place = location + "[" + std::to_string(elements.size()) + "]";
    if (nb::isinstance<nb::list>(element) || nb::isinstance<nb::tuple>(element)) {
      elements.push_back(to_list(element, place));
      continue;
    }
    if (nb::isinstance<nb::dict>(element)) {
      elements.push_back(to_map(element, "", place));
      continue;
    }
    // The caller may write to the array after the run, to which a result may refer.
    const Tensor given = to_tensor(element, place);
    elements.push_back(given.copied());
  }
  return Tensor::sequence(std::move(elements));
}

Tensor to_shared_tensor(nb::handle value, const std::string& location) {
  if (nb::isinstance<Tensor>(value)) return nb::cast<Tensor>(value);
  return borrow_as_it_is(value, location, 0);
}

Tensor to_writable_tensor(nb::handle value, const std::string& location) {
  if (nb::isinstance<Tensor>(value)) return nb::cast<Tensor>(value);
  return borrow_as_it_is(value, location, PyBUF_WRITABLE);
}

nb::list to_arrays(std::vector<Tensor> tensors) {
  nb::list arrays;
  for (Tensor& tensor : tensors) arrays.append(to_array(std::move(tensor)));
  return arrays;
}

}  // namespace tessera::python
