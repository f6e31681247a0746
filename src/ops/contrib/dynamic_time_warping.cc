// DynamicTimeWarping: the path of lowest cost through a matrix, from its first to its last element.
#include <algorithm>
#include <limits>
#include <vector>

#include "ops/contrib/contrib.h"
#include "ops/domains.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

void infer_time_warping(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape != nullptr) {
    const bool is_batch = shape->size() == 3 && can_be_equal({shape->front()}, {Dim(1)});
    const bool is_empty = std::ranges::count(*shape, Dim(0)) > 0;
    if ((shape->size() != 2 && !is_batch) || is_empty) {
      context.fail_input(
          0, "expected a matrix with elements, or a batch of one, found [" + text(*shape) + "]");
    }
  }
  context.set_output(0, DataType::Int32, Shape{2, unknown_dim(context, 0, 1)});
}

// From which neighbour the path of lowest cost comes to an element.
enum class Arrival : uint8_t { Diagonal, Above, Left };

// The arrivals at all elements of `costs`, [rows, columns]. If several are equally good: the left
// one.
std::vector<Arrival> arrivals_of(std::span<const float> costs, size_t rows, size_t columns) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<Arrival> arrivals(costs.size());
  std::vector<double> above(columns + 1, kNever);
  above[0] = 0;  // before the first element
  std::vector<double> line(columns + 1, kNever);
  for (size_t row = 0; row < rows; ++row) {
    line[0] = kNever;
    for (size_t column = 0; column < columns; ++column) {
      const double diagonal = above[column];
      const double vertical = above[column + 1];
      const double horizontal = line[column];
      Arrival arrival = Arrival::Left;
      double least = horizontal;
      if (diagonal < vertical && diagonal < horizontal) {
        arrival = Arrival::Diagonal;
        least = diagonal;
      } else if (vertical < diagonal && vertical < horizontal) {
        arrival = Arrival::Above;
        least = vertical;
      }
      arrivals[row * columns + column] = arrival;
      line[column + 1] = least + static_cast<double>(costs[row * columns + column]);
    }
    std::swap(above, line);
  }
  return arrivals;
}

void run_time_warping(const ValueCall& call) {
  const Tensor& input = call.inputs[0];
  const auto columns = static_cast<size_t>(input.dims().back());
  const auto rows = static_cast<size_t>(*(input.dims().end() - 2));
  const std::vector<Arrival> arrivals = arrivals_of(input.as<float>(), rows, columns);
  std::vector<int32_t> path_rows;
  std::vector<int32_t> path_columns;
  size_t row = rows;
  size_t column = columns;
  // Numbered from 1, so that 0 is outside of the matrix.
  while (row > 0 || column > 0) {
    path_rows.push_back(static_cast<int32_t>(row) - 1);
    path_columns.push_back(static_cast<int32_t>(column) - 1);
    if (row == 1 && column == 1) break;
    const Arrival arrival = arrivals[(row - 1) * columns + column - 1];
    // In the first row and column, only one neighbour is inside.
    if (row == 1) {
      --column;
    } else if (column == 1) {
      --row;
    } else {
      if (arrival != Arrival::Left) --row;
      if (arrival != Arrival::Above) --column;
    }
  }
  Tensor path(DataType::Int32, {2, std::ssize(path_rows)});
  const auto elements = path.mutable_as<int32_t>();
  std::ranges::reverse_copy(path_rows, elements.begin());
  std::ranges::reverse_copy(path_columns, elements.begin() + std::ssize(path_rows));
  call.outputs[0] = std::move(path);
}

}  // namespace

std::vector<Op> dynamic_time_warping_ops() {
  return {{.name = "DynamicTimeWarping",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input", "F"}},
           .outputs = {{"output", "I"}},
           .type_variables = {{"F", {DataType::Float32}}, {"I", {DataType::Int32}}},
           .infer = infer_time_warping,
           .value_kernel = run_time_warping}};
}

}  // namespace tessera::ops
