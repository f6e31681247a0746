#include "python/device_arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/arrays.h"
#include "python/dlpack.h"
#include "python/interpreter_lock.h"
#include "tessera/error.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

// DLDeviceType of the host's memory: kDLCPU.
constexpr int32_t kDlpackHost = 1;

nb::object tensor_shape(const Tensor& self) {
  nb::list dims;
  for (const int64_t dim : self.dims()) dims.append(dim);
  return nb::tuple(dims);
}

nb::object to_host(const Tensor& self) {
  std::vector<Tensor> copy;
  {
    const Unlocked unlocked;
    copy.push_back(self.to_host());
  }
  return to_arrays(std::move(copy))[0];
}

nb::object tensor_as_array(const Tensor& self, nb::handle type, nb::handle copies) {
  if (!copies.is_none() && !nb::cast<bool>(copies)) {
    throw nb::value_error("an array in memory of a device cannot be read without a copy");
  }
  nb::object array = to_host(self);
  return type.is_none() ? array : array.attr("astype")(type, "copy"_a = false);
}

DlpackDevice dlpack_device(const Tensor& self) {
  const DlpackDevice device = self.device_storage()->dlpack_device();
  if (device.type != 0) return device;
  const std::string text = "DLPack has no name for device '" + std::string(self.device()) +
                           "', so its memory cannot be exchanged; to_host() copies the array";
  throw nb::buffer_error(text.c_str());
}

nb::object to_dlpack(const Tensor& self, const nb::kwargs& wishes) {
  const DlpackDevice device = dlpack_device(self);
  const nb::capsule owner(new Tensor(self),
                          [](void* given) noexcept { delete static_cast<Tensor*>(given); });
  const std::vector<size_t> shape(self.dims().begin(), self.dims().end());
  const nb::ndarray<nb::array_api> array(self.device_storage()->handle(), shape.size(),
                                         shape.data(), owner, nullptr, dlpack_type(self.type()),
                                         device.type, device.id, 'C',
                                         static_cast<uint64_t>(self.offset_bytes()));
  // Runs are complete when they return, so there is no stream to wait for.
  nb::dict rest;
  for (const char* const wish : {"max_version", "dl_device", "copy"}) {
    if (wishes.contains(wish)) rest[wish] = wishes[wish];
  }
  return nb::cast(array, nb::rv_policy::reference)
      .attr("__dlpack__")(**nb::borrow<nb::kwargs>(rest));
}

Tensor from_dlpack(const Backends& self, nb::handle value) {
  const std::string location = "array";
  nb::ndarray<> array;
  if (!nb::try_cast(value, array)) {
    throw Error(ErrorKind::InvalidArgument, location,
                "expected an array that DLPack can exchange and that may be written, found " +
                    nb::cast<std::string>(nb::str(nb::type_name(value.type()))));
  }
  const DlpackDevice called{array.device_type(), array.device_id()};
  if (called.type == kDlpackHost) {
    throw Error(ErrorKind::InvalidArgument, location,
                "expected an array in memory of a device, found one in the host's memory: use it "
                "as it is, or copy it with to_device()");
  }
  std::string device;
  {
    const Unlocked unlocked;
    device = self.device_named(called);
  }
  if (device.empty()) {
    throw Error(ErrorKind::InvalidArgument, location,
                "expected an array on a device of these backends, found one on DLPack's device '" +
                    dlpack_device_text(called.type, called.id) + "'");
  }
  const std::optional<DataType> type = element_type(array.dtype());
  if (!type || !is_row_major(array)) {
    throw Error(ErrorKind::InvalidArgument, location,
                "expected a dense row-major array of numbers or bools, found " +
                    std::string(type ? "strides" : "another element type"));
  }
  std::vector<int64_t> dims;
  for (size_t dim = 0; dim < array.ndim(); ++dim) {
    dims.push_back(static_cast<int64_t>(array.shape(dim)));
  }
  void* const handle = array.data_handle();
  const auto offset = static_cast<int64_t>(array.byte_offset());
  return self.tensor_over(*type, std::move(dims), device, kept(std::move(array)), handle, offset);
}

Tensor to_device(const Backends& self, nb::handle value, const std::string& device) {
  const Tensor tensor = to_tensor(value, "array");
  const Unlocked unlocked;
  return self.to_device(tensor, device);
}

Tensor new_array(const Backends& self, std::vector<int64_t> shape, nb::handle dtype,
                 const std::string& device) {
  const nb::object type = nb::module_::import_("numpy").attr("empty")(0, "dtype"_a = dtype);
  const DataType element = to_tensor(type, "dtype").type();
  const Unlocked unlocked;
  return self.new_tensor(element, std::move(shape), device);
}

std::string tensor_text(const Tensor& self) {
  return "<tessera.DeviceArray " + std::string(name(self.type())) + " " + dims_text(self.dims()) +
         " on " + std::string(self.device()) + ">";
}

}  // namespace

void bind_device_arrays(nb::module_& module) {
  nb::class_<Tensor>(
      module, "DeviceArray",
      "A dense row-major array in memory of a device. Created by to_device(), new_array() and "
      "from_dlpack(), and returned by Executor.run() for outputs that were bound in the layout "
      "'row_major@<device>'. numpy.asarray() and to_host() copy it to the host.")
      .def_prop_ro("shape", &tensor_shape, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return numpy_dtype(self.type()); },
          nb::sig("def dtype(self) -> numpy.dtype"))
      .def_prop_ro("ndim", &Tensor::rank, "The number of dimensions.")
      .def_prop_ro("size", &Tensor::elements, "The number of elements.")
      .def_prop_ro("nbytes", &Tensor::bytes, "Bytes of all elements.")
      .def_prop_ro("device", &Tensor::device, "The name of the device, such as 'opencl'.")
      .def("to_host", &to_host, nb::sig("def to_host(self) -> numpy.ndarray"),
           "A copy in the host's memory; waits until it is there.")
      .def("__array__", &tensor_as_array, "dtype"_a = nb::none(), nb::kw_only(),
           "copy"_a = nb::none(),
           nb::sig("def __array__(self, dtype: object = None, *, copy: bool | None = None) -> "
                   "numpy.ndarray"))
      .def("__dlpack__", &to_dlpack, nb::sig("def __dlpack__(self, **kwargs: object) -> object"),
           "The array for other libraries, without a copy; raises BufferError if DLPack has no "
           "name for the device.")
      .def(
          "__dlpack_device__",
          [](const Tensor& self) {
            const DlpackDevice device = dlpack_device(self);
            return nb::make_tuple(device.type, device.id);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__repr__", &tensor_text);
}

void bind_device_memory(nb::class_<Backends>& backends) {
  backends
      .def("to_device", &to_device, "array"_a, "device"_a,
           nb::sig("def to_device(self, array: numpy.typing.ArrayLike | DeviceArray, device: str) "
                   "-> DeviceArray"),
           "Copies an array to memory of a device. Raises InvalidArgument if there is no such "
           "device, or if it has no memory of its own.")
      .def("new_array", &new_array, "shape"_a, "dtype"_a, "device"_a,
           nb::sig("def new_array(self, shape: collections.abc.Sequence[int], dtype: "
                   "numpy.typing.DTypeLike, device: str) -> DeviceArray"),
           "Allocates an array in memory of a device; its elements are undefined. Raises as "
           "to_device() does.")
      .def("from_dlpack", &from_dlpack, "array"_a,
           nb::sig("def from_dlpack(self, array: object) -> DeviceArray"),
           "An array of another library in memory of a device, without a copy. Raises "
           "InvalidArgument if none of these backends has the device, and for arrays that are not "
           "dense and row-major.");
}

}  // namespace tessera::python
