// The Python class SparseArray, and the conversion of dense and sparse arrays for Executor.run().
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "tessera/sparse_tensor.h"

namespace tessera::python {

// Converts an argument of run(): a SparseArray; an object with the attributes of SciPy's csr arrays
// (indptr, indices, data, shape), which is copied; or any value that to_tensor() accepts. Throws
// InvalidArgument, naming `location`. Requires the interpreter's lock.
AnyTensor to_any_tensor(nanobind::handle value, const std::string& location);

// Converts results to NumPy arrays, as to_arrays() does, and SparseArrays. If `bound` has an object
// for a result, returns that object. Requires the interpreter's lock.
nanobind::list to_any_arrays(std::vector<AnyTensor> tensors,
                             const std::vector<nanobind::object>& bound = {});

void bind_sparse_arrays(nanobind::module_& module);

}  // namespace tessera::python
