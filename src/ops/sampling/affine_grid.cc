// AffineGrid: the positions of a regular grid after an affine transformation, for GridSample.
#include <array>
#include <string>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// Of matrices [N, 2, 3] or [N, 3, 4]: 2 or 3; 0 if it is unknown.
size_t spatial_axes(const InferContext& context, std::optional<int64_t> size_length) {
  if (size_length) {
    if (*size_length != 4 && *size_length != 5) {
      context.fail_input(1, "expected 4 numbers (batch, channels, height, width) or 5, found " +
                                std::to_string(*size_length));
    }
    return static_cast<size_t>(*size_length - 2);
  }
  const Shape* matrices = context.shape(0);
  if (matrices == nullptr || matrices->size() != 3 || !(*matrices)[1].is_known()) return 0;
  const int64_t rows = (*matrices)[1].value();
  return rows == 2 || rows == 3 ? static_cast<size_t>(rows) : 0;
}

void infer_affine_grid(InferContext& context) {
  const size_t axes = spatial_axes(context, list_length(context, 1));
  const auto sizes = dim_list(context, 1);
  if (sizes) {
    for (const Dim& size : *sizes) {
      if (size.is_known() && size.value() < 0) {
        context.fail_input(1, "expected sizes of at least 0, found " + text(*sizes));
      }
    }
  }
  const Shape* matrices = context.shape(0);
  const auto rows = static_cast<int64_t>(axes);
  if (matrices != nullptr) {
    const Dim batch = sizes ? (*sizes)[0] : unknown_dim(context, 0, 0);
    const Shape expected = axes == 0 ? *matrices : Shape{batch, rows, rows + 1};
    if (matrices->size() != 3 || !can_be_equal(*matrices, expected)) {
      context.fail_input(0, "expected a 2x3 or 3x4 matrix for each batch item of input 'size'" +
                                (sizes ? " (" + text(*sizes) + ")" : "") + ", found " +
                                text(*matrices));
    }
  }
  context.set_output(0, context.element(0));
  if (axes == 0) return;
  Shape output = *unknown_shape(context, 0, rows + 2);
  if (matrices != nullptr) output[0] = (*matrices)[0];
  if (sizes) {
    if (!output[0].is_known()) output[0] = (*sizes)[0];
    for (size_t axis = 0; axis < axes; ++axis) output[axis + 1] = (*sizes)[axis + 2];
  }
  output.back() = rows;
  context.set_output(0, context.element(0), std::move(output));
}

// Coordinate `index` of `count` between -1 and 1: the centres of the outermost elements if
// `aligns_corners`, else their outer edges. A single centre lies at -1, where ONNX's definition of
// the op begins to count.
double grid_coordinate(int64_t index, int64_t count, bool aligns_corners) {
  const auto position = static_cast<double>(index);
  const auto length = static_cast<double>(count);
  if (!aligns_corners) return (2 * position + 1) / length - 1;
  return count == 1 ? -1 : 2 * position / (length - 1) - 1;
}

// Writes the transformed positions along one row, the last coordinate of which is x; `beside` has
// the others, from the inner axis on.
template <size_t kAxes, class T>
void transform_row(const double* matrix, std::span<const double> x,
                   const std::array<double, 2>& beside, T* target) {
  for (const double first : x) {
    // Coordinates are listed from the innermost axis on.
    for (size_t row = 0; row < kAxes; ++row) {
      const double* factors = matrix + row * (kAxes + 1);
      double sum = factors[kAxes] + factors[0] * first;
      for (size_t axis = 1; axis < kAxes; ++axis) sum += factors[axis] * beside[axis - 1];
      *target++ = from_double<T>(sum);
    }
  }
}

template <size_t kAxes>
void transform_grid(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  const bool aligns_corners = call.node.attributes.get_int("align_corners") != 0;
  const std::pmr::vector<double> matrices = to_doubles(call.inputs[0], call.scratch);
  const int64_t columns = output.dims[kAxes];
  const int64_t rows = output.dims[kAxes - 1];
  const int64_t planes = kAxes == 3 ? output.dims[1] : 1;
  std::pmr::vector<double> x(&call.scratch);
  x.reserve(static_cast<size_t>(columns));
  for (int64_t column = 0; column < columns; ++column) {
    x.push_back(grid_coordinate(column, columns, aligns_corners));
  }
  const int64_t grain = 2048 / columns + 1;
  visit_floating(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = output.as<T>().data();
    call.pool.parallel_for(output.dims[0] * planes * rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t batch = line / rows / planes;
        transform_row<kAxes>(matrices.data() + batch * static_cast<int64_t>(kAxes * (kAxes + 1)), x,
                             {grid_coordinate(line % rows, rows, aligns_corners),
                              grid_coordinate(line / rows % planes, planes, aligns_corners)},
                             target + line * columns * static_cast<int64_t>(kAxes));
      }
    });
  });
}

void run_affine_grid(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  if (call.outputs[0].dims.back() == 3) return transform_grid<3>(call);
  transform_grid<2>(call);
}

}  // namespace

std::vector<Op> affine_grid_ops() {
  return {{.name = "AffineGrid",
           .versions = {20},
           .inputs = {{"theta", "T1"}, {"size", "T2"}},
           .outputs = {{"grid", "T1"}},
           .type_variables = {{"T1", kFloatTypes}, {"T2", kInt64Type}},
           .attributes = {{"align_corners", AttributeKind::Int, int64_t{0}}},
           .infer = infer_affine_grid,
           .kernel = run_affine_grid}};
}

}  // namespace tessera::ops
