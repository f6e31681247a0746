// NumPy arrays as tensors, and tensors as NumPy arrays. Tensors in memory of a device are the class
// DeviceArray of device_arrays.h.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::python {

// The elements of `value`, which is a NumPy array, an array of another library that offers DLPack,
// or anything that numpy.asarray accepts. They are not copied if they are dense and row-major; the
// tensor then keeps `value` alive. Throws InvalidArgument, naming `location`, if there is no such
// element type. Requires the interpreter's lock.
Tensor to_tensor(nanobind::handle value, const std::string& location);

// Converts a dict to Tensor::map(). `text` describes the types ("map(string, float32 scalar)"); ""
// leaves them to NumPy. Throws InvalidArgument.
Tensor to_map(nanobind::handle value, std::string_view text, const std::string& location);

// Converts a list or tuple of arrays, of dicts, or of such lists, to Tensor::sequence(), with
// copies of the elements. Throws InvalidArgument.
Tensor to_list(nanobind::handle value, const std::string& location);

// Same as to_tensor(), but never copy: the tensor shows later changes of the array. Both throw
// InvalidArgument if `value` is not a dense row-major array; to_writable_tensor() also if it is
// read-only.
Tensor to_shared_tensor(nanobind::handle value, const std::string& location);
Tensor to_writable_tensor(nanobind::handle value, const std::string& location);

// Converts tensors to NumPy arrays that share memory with no later run, no model and no array of
// the caller. Empty tensors become None, maps dicts, and those in memory of a device DeviceArrays.
// Moves elements that only `tensors` owns, and copies all others. Throws Unsupported for bfloat16
// and small types if the package ml_dtypes is missing. Requires the interpreter's lock.
nanobind::list to_arrays(std::vector<Tensor> tensors);

// The dtype of such an array; throws as to_arrays() does.
nanobind::object numpy_dtype(DataType type);

}  // namespace tessera::python
