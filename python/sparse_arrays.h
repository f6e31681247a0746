// Sparse arrays of Python, and what run() takes and gives besides NumPy's.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "tessera/sparse_tensor.h"

namespace tessera::python {

// `value` as it is to be fed: a SparseArray; what has the attributes of SciPy's csr (indptr,
// indices, data, shape), copied; or as to_tensor() has it. Throws InvalidArgument, naming `place`.
// Needs the interpreter's lock.
AnyTensor to_any_tensor(nanobind::handle value, const std::string& place);

// NumPy arrays, as to_arrays() makes them, and SparseArrays; where `bound` has an object, that one.
// Needs the interpreter's lock.
nanobind::list to_any_arrays(std::vector<AnyTensor> tensors,
                             const std::vector<nanobind::object>& bound = {});

void bind_sparse_arrays(nanobind::module_& module);

}  // namespace tessera::python
