// Arrays of other libraries that are exchanged by DLPack (the data interchange protocol of Python's
// array API standard).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>
#include <string>

#include "tessera/tensor.h"

namespace tessera::python {

nanobind::dlpack::dtype dlpack_type(DataType type);
// nullopt if Tessera has no such type.
std::optional<DataType> element_type(const nanobind::dlpack::dtype& type);

// "cuda:0", as DLPack's header calls the types of devices.
std::string dlpack_device_text(int32_t type, int32_t id);

template <class Array>
bool is_row_major(const Array& array) {
  int64_t expected = 1;
  for (size_t dim = array.ndim(); dim-- > 0;) {
    if (array.shape(dim) != 1 && array.stride(dim) != expected) return false;
    expected *= static_cast<int64_t>(array.shape(dim));
  }
  return true;
}

// Whether to_tensor() should use DLPack for `value`: it is no NumPy array, and has __dlpack__().
bool offers_dlpack(nanobind::handle value);

// The elements of an array in the host's memory, which the tensor keeps alive. They are not copied
// if they are dense and row-major. Throws InvalidArgument, naming `location`, for an array in
// memory of another device, for element types that Tessera does not have, and if the library does
// not export the array. Requires the interpreter's lock.
Tensor tensor_from_dlpack(nanobind::handle value, const std::string& location);
// Same as tensor_from_dlpack(), but never copies: the tensor shows later changes of the array. Also
// throws InvalidArgument if the array is not dense and row-major or, if `is_written`, is read-only.
Tensor shared_tensor_from_dlpack(nanobind::handle value, const std::string& location,
                                 bool is_written);

}  // namespace tessera::python
