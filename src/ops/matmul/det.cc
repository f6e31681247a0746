// Det, and Inverse of com.microsoft: of square matrices, by LU decomposition with partial pivoting
// (Golub and Van Loan, Matrix Computations, 3.4), in float64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <string>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void check_square(const InferContext& context, const Shape& shape) {
  const bool is_matrix = shape.size() >= 2;
  const bool is_square =
      is_matrix && (!shape.back().is_known() || !shape[shape.size() - 2].is_known() ||
                    shape.back() == shape[shape.size() - 2]);
  if (!is_square) {
    context.fail_input(0, "expected square matrices, found shape " + text(shape));
  }
}

void infer_det(InferContext& context) {
  const Shape* shape = context.shape(0);
  context.set_output(0, context.element(0));
  if (shape == nullptr) return;
  check_square(context, *shape);
  context.set_output(0, context.element(0), Shape(shape->begin(), shape->end() - 2));
}

void infer_inverse(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape != nullptr) check_square(context, *shape);
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

// The magnitude that decides the pivot. NaN counts as the largest, so that it reaches the result.
double pivot_magnitude(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : std::fabs(value);
}

// A matrix of `size` rows and `width` >= `size` columns, of which the first `size` are decomposed.
struct Elimination {
  std::span<double> elements;
  int64_t size = 0;
  int64_t width = 0;

  double* row(int64_t index) const { return elements.data() + index * width; }

  // Brings the largest element of a column, at or below the diagonal, to the diagonal. True if rows
  // were exchanged.
  bool choose_pivot(int64_t column) const {
    int64_t best = column;
    for (int64_t index = column + 1; index < size; ++index) {
      if (pivot_magnitude(row(index)[column]) > pivot_magnitude(row(best)[column])) best = index;
    }
    if (best == column) return false;
    std::swap_ranges(row(best), row(best) + width, row(column));
    return true;
  }

  // Subtracts multiples of the pivot's row from row `target`, so that its element in the column of
  // the pivot becomes 0.
  void eliminate(int64_t pivot, int64_t target) const {
    const double factor = row(target)[pivot] / row(pivot)[pivot];
    const double* from = row(pivot);
    double* to = row(target);
    for (int64_t index = pivot; index < width; ++index) to[index] -= factor * from[index];
  }
};

// Products of many pivots may leave the range of float64 although the determinant does not, so the
// exponent is separate.
double determinant(const Elimination& matrix) {
  double mantissa = 1;
  int64_t exponent = 0;
  for (int64_t column = 0; column < matrix.size; ++column) {
    if (matrix.choose_pivot(column)) mantissa = -mantissa;
    const double pivot = matrix.row(column)[column];
    if (pivot == 0) return 0;
    int of_pivot = 0;
    int of_product = 0;
    mantissa = std::frexp(mantissa * std::frexp(pivot, &of_pivot), &of_product);
    exponent += int64_t{of_pivot} + of_product;
    for (int64_t row = column + 1; row < matrix.size; ++row) matrix.eliminate(column, row);
  }
  // Beyond these exponents, every result is 0 or infinite.
  return std::ldexp(mantissa, static_cast<int>(std::clamp<int64_t>(exponent, -5000, 5000)));
}

// Gauss and Jordan: the left half becomes the identity, the right half, which was the identity, the
// inverse. A pivot of 0, in a singular matrix, gives infinities and NaN.
void invert(const Elimination& matrix) {
  for (int64_t column = 0; column < matrix.size; ++column) {
    matrix.choose_pivot(column);
    for (int64_t row = 0; row < matrix.size; ++row) {
      if (row != column) matrix.eliminate(column, row);
    }
    double* pivot_row = matrix.row(column);
    const double pivot = pivot_row[column];
    for (int64_t index = column; index < matrix.width; ++index) pivot_row[index] /= pivot;
  }
}

// Calls body(matrix, number, TypeTag<T>{}) for each matrix of the input, in parallel: a copy of its
// elements followed by zeros up to `width` columns, its number, and the element type.
template <class Body>
void for_each_matrix(const KernelCall& call, int64_t size, int64_t width, const Body& body) {
  const TensorView& input = call.inputs[0];
  int64_t count = 1;
  for (const int64_t dim : input.dims.first(input.dims.size() - 2)) count *= dim;
  const int64_t grain = 4096 / (size * size * size + 1) + 1;
  const auto room = static_cast<size_t>(size * width);
  std::pmr::vector<double> memory(room * static_cast<size_t>(slot_count(call.pool, count, grain)),
                                  &call.scratch);
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    parallel_for_in_slots(call.pool, count, grain, [&](int64_t slot, int64_t begin, int64_t end) {
      const Elimination matrix = {std::span(memory).subspan(static_cast<size_t>(slot) * room, room),
                                  size, width};
      for (int64_t number = begin; number < end; ++number) {
        const T* elements = source + number * size * size;
        for (int64_t row = 0; row < size; ++row) {
          std::fill(matrix.row(row) + size, matrix.row(row) + width, 0.0);
          for (int64_t column = 0; column < size; ++column) {
            matrix.row(row)[column] = to_double(elements[row * size + column]);
          }
        }
        body(matrix, number, tag);
      }
    });
  });
}

void run_det(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const int64_t size = call.inputs[0].dims.back();
  for_each_matrix(call, size, size, [&](const Elimination& matrix, int64_t number, auto tag) {
    using T = typename decltype(tag)::type;
    call.outputs[0].as<T>().data()[number] = from_double<T>(determinant(matrix));
  });
}

void run_inverse(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const int64_t size = call.inputs[0].dims.back();
  for_each_matrix(call, size, 2 * size, [&](const Elimination& matrix, int64_t number, auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t row = 0; row < size; ++row) matrix.row(row)[size + row] = 1;
    invert(matrix);
    T* target = call.outputs[0].as<T>().data() + number * size * size;
    for (int64_t row = 0; row < size; ++row) {
      for (int64_t column = 0; column < size; ++column) {
        target[row * size + column] = from_double<T>(matrix.row(row)[size + column]);
      }
    }
  });
}

// Of a matrix of n rows: n^3 times `factor` operations.
template <int kFactor>
int64_t elimination_flops(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  Dim work = kFactor;
  for (const Dim& dim : *inputs[0].shape) work = multiply(work, dim);
  return multiply(work, inputs[0].shape->back()).value();
}

}  // namespace

std::vector<Op> det_ops() {
  return {{.name = "Det",
           .versions = {11, 22},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .infer = infer_det,
           .flops = elimination_flops<1>,
           .kernel = run_det},
          {.name = "Inverse",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .infer = infer_inverse,
           .flops = elimination_flops<4>,
           .kernel = run_inverse}};
}

}  // namespace tessera::ops
