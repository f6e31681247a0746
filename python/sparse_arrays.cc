#include "python/sparse_arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "python/arrays.h"
#include "tessera/error.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

using Shape = std::vector<int64_t>;

SparseTensor csr_array(nb::handle indptr, nb::handle indices, nb::handle data, Shape shape) {
  return SparseTensor::csr(std::move(shape), to_tensor(indptr, "indptr"),
                           to_tensor(indices, "indices"), to_tensor(data, "data"));
}

SparseTensor row_sparse_array(nb::handle rows, nb::handle data, Shape shape) {
  return SparseTensor::row_sparse(std::move(shape), to_tensor(rows, "rows"),
                                  to_tensor(data, "data"));
}

nb::object array_of(Tensor tensor) {
  std::vector<Tensor> one;
  one.push_back(std::move(tensor));
  return to_arrays(std::move(one))[0];
}

template <class T>
nb::object array_of(DataType type, std::span<const T> numbers) {
  return array_of(Tensor::from<T>(type, {static_cast<int64_t>(numbers.size())}, numbers));
}

nb::object sparse_indices(const SparseTensor& self) {
  if (self.format() == SparseFormat::RowSparse) return array_of(DataType::Int64, self.rows());
  return array_of(DataType::Int32, self.columns());
}

nb::object indptr_of(const SparseTensor& self) {
  if (self.format() == SparseFormat::RowSparse) {
    throw nb::attribute_error("a row_sparse array has indices and data, but no indptr");
  }
  return array_of(DataType::Int64, self.row_offsets());
}

nb::object sparse_shape(const SparseTensor& self) {
  nb::list dims;
  for (const int64_t dim : self.dims()) dims.append(dim);
  return nb::tuple(dims);
}

std::string sparse_text(const SparseTensor& self) {
  return "<tessera.SparseArray " + std::string(name(self.type())) + " " + dims_text(self.dims()) +
         " in " + std::string(name(self.format())) + ", " + std::to_string(self.stored()) +
         " stored>";
}

bool has_csr_attributes(nb::handle value) {
  return nb::hasattr(value, "indptr") && nb::hasattr(value, "indices") &&
         nb::hasattr(value, "data") && nb::hasattr(value, "shape");
}

// Other formats of SciPy have attributes of the same names with other meanings.
void check_is_csr(nb::handle value, const std::string& location) {
  if (!nb::hasattr(value, "format")) return;
  const auto format = nb::cast<std::string>(nb::str(value.attr("format")));
  if (format == "csr") return;
  throw Error(
      ErrorKind::InvalidArgument, location,
      "expected a sparse array in csr, found one in '" + format + "'; convert it with tocsr()");
}

constexpr const char* kCsrText =
    R"(Creates a matrix of `shape` from copies of the arrays of the csr format.

indptr: the index of the first stored element of each row, and the end of the last row.
indices: the columns of the stored elements, ascending within a row.
data: the stored elements.

Raises InvalidArgument, saying what is wrong and where.

    x = tessera.csr_array([0, 1, 3], [2, 0, 1], numpy.ones(3, numpy.float32), (2, 3)))";

constexpr const char* kRowSparseText =
    R"(Creates an array of `shape` of which only some rows (along the first axis) are stored.

rows: the indices of the stored rows, ascending.
data: their elements; the shape is `shape` with the number of stored rows as the first dimension.

Raises InvalidArgument, saying what is wrong and where.

    table = tessera.row_sparse_array([1, 4], numpy.ones((2, 8), numpy.float32), (10, 8)))";

}  // namespace

AnyTensor to_any_tensor(nb::handle value, const std::string& location) {
  if (nb::isinstance<SparseTensor>(value)) return nb::cast<SparseTensor>(value);
  if (!has_csr_attributes(value)) return to_tensor(value, location);
  check_is_csr(value, location);
  Shape shape;
  for (const nb::handle dim : value.attr("shape")) shape.push_back(nb::cast<int64_t>(dim));
  try {
    return csr_array(value.attr("indptr"), value.attr("indices"), value.attr("data"),
                     std::move(shape));
  } catch (const Error& error) {
    throw Error(error.kind(), location, error.where() + ": " + error.message());
  }
}

nb::list to_any_arrays(std::vector<AnyTensor> tensors, const std::vector<nb::object>& bound) {
  nb::list arrays;
  for (size_t index = 0; index < tensors.size(); ++index) {
    AnyTensor& tensor = tensors[index];
    if (index < bound.size() && bound[index].is_valid()) {
      arrays.append(bound[index]);
    } else if (auto* sparse = std::get_if<SparseTensor>(&tensor)) {
      arrays.append(nb::cast(std::move(*sparse)));
    } else {
      arrays.append(array_of(std::get<Tensor>(std::move(tensor))));
    }
  }
  return arrays;
}

void bind_sparse_arrays(nb::module_& module) {
  nb::class_<SparseTensor>(module, "SparseArray",
                           "An array of which only a part is stored; the rest is zero. Created by "
                           "csr_array() and row_sparse_array(), and returned by Executor.run().")
      .def_prop_ro(
          "format", [](const SparseTensor& self) { return name(self.format()); },
          R"("csr" or "row_sparse".)")
      .def_prop_ro("shape", &sparse_shape, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype",
          [](const SparseTensor& self) {
            return nb::module_::import_("numpy").attr("dtype")(name(self.type()));
          },
          nb::sig("def dtype(self) -> numpy.dtype"))
      .def_prop_ro("stored", &SparseTensor::stored, "Stored elements (csr) or rows (row_sparse).")
      .def_prop_ro("density", &SparseTensor::density,
                   "The share of elements or rows that are stored.")
      .def_prop_ro("indptr", &indptr_of, nb::sig("def indptr(self) -> numpy.ndarray"),
                   "Of csr: the index of the first stored element of each row (int64).")
      .def_prop_ro("indices", &sparse_indices, nb::sig("def indices(self) -> numpy.ndarray"),
                   "Indices of columns (csr, int32) or of rows (row_sparse, int64).")
      .def_prop_ro(
          "data", [](const SparseTensor& self) { return array_of(self.values()); },
          nb::sig("def data(self) -> numpy.ndarray"), "The stored elements, copied.")
      .def(
          "to_dense", [](const SparseTensor& self) { return array_of(self.to_dense()); },
          nb::sig("def to_dense(self) -> numpy.ndarray"), "All elements, as a NumPy array.")
      .def("__repr__", &sparse_text);
  module.def("csr_array", &csr_array, "indptr"_a, "indices"_a, "data"_a, "shape"_a,
             nb::sig("def csr_array(indptr: numpy.typing.ArrayLike, indices: "
                     "numpy.typing.ArrayLike, data: numpy.typing.ArrayLike, shape: "
                     "collections.abc.Sequence[int]) -> SparseArray"),
             kCsrText);
  module.def("row_sparse_array", &row_sparse_array, "rows"_a, "data"_a, "shape"_a,
             nb::sig("def row_sparse_array(rows: numpy.typing.ArrayLike, data: "
                     "numpy.typing.ArrayLike, shape: collections.abc.Sequence[int]) -> "
                     "SparseArray"),
             kRowSparseText);
}

}  // namespace tessera::python
