// NumPy arrays as tensors, and tensors as NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::python {

// The elements of `value` (a NumPy array, or what numpy.asarray makes one of), without a copy where
// they are dense and row-major; the tensor then keeps `value` alive. Throws InvalidArgument, naming
// `place`, where there is no such element type. Needs the interpreter's lock.
Tensor to_tensor(nanobind::handle value, const std::string& place);

// The same without ever a copy: what is done to the array later, the tensor shows. Throws
// InvalidArgument where `value` is no dense row-major array; the second one, where it may not be
// written.
Tensor to_shared_tensor(nanobind::handle value, const std::string& place);
Tensor to_writable_tensor(nanobind::handle value, const std::string& place);

// NumPy arrays of their own: no later run, no model and no caller's array shares their memory.
// Empty tensors become None. Takes over what only `tensors` holds and copies the rest. Throws
// Unsupported for bfloat16 where the package ml_dtypes is missing. Needs the interpreter's lock.
nanobind::list to_arrays(std::vector<Tensor> tensors);

}  // namespace tessera::python
