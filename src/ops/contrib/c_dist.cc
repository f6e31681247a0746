// CDist: the distance of each row of one matrix from each row of another.
#include <cmath>
#include <limits>
#include <memory_resource>
#include <vector>

#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/matmul/dense_operand.h"
#include "ops/matmul/matrix_product.h"

namespace tessera::ops {
namespace {

void infer_c_dist(InferContext& context) {
  const std::string& metric = context.node().attributes.get_string("metric");
  if (metric != "euclidean" && metric != "sqeuclidean") {
    context.fail_unsupported("expected 'metric' 'euclidean' or 'sqeuclidean', found '" + metric +
                             "'");
  }
  check_rank(context, 0, 2);
  check_rank(context, 1, 2);
  const Shape* left = context.shape(0);
  const Shape* right = context.shape(1);
  if (left == nullptr || right == nullptr) return context.set_output(0, context.element(0));
  check_shape(context, 1, {right->front(), left->back()});
  context.set_output(0, context.element(0), Shape{left->front(), right->front()});
}

// The square of the distance of two rows.
template <class T>
double squared_distance(const T* row, const T* other, int64_t columns) {
  double sum = 0;
  for (int64_t column = 0; column < columns; ++column) {
    const double difference = to_double(row[column]) - to_double(other[column]);
    sum += difference * difference;
  }
  return sum;
}

template <class T>
std::pmr::vector<double> squared_norms(const KernelCall& call, size_t input) {
  const auto dims = call.inputs[input].dims;
  const std::pmr::vector<T> zeros(static_cast<size_t>(dims[1]), T(0.0F), &call.scratch);
  std::pmr::vector<double> norms(static_cast<size_t>(dims[0]), &call.scratch);
  const T* row = call.inputs[input].as<T>().data();
  for (double& norm : norms) {
    norm = squared_distance(row, zeros.data(), dims[1]);
    row += dims[1];
  }
  return norms;
}

// |a - b|^2 = |a|^2 + |b|^2 - 2 a b, which a matrix product computes for all pairs at once. Where
// so much cancels that the rest has too few digits for the result, or it is not finite, the
// distance is computed from the differences.
template <class T>
void measure_distances(const KernelCall& call) {
  constexpr double kLeastPart = sizeof(T) < 8 ? 0x1p-20 : std::numeric_limits<double>::infinity();
  const bool has_root = call.node.attributes.get_string("metric") == "euclidean";
  const int64_t columns = call.inputs[0].dims[1];
  const int64_t others = call.outputs[0].dims[1];
  const T* left = call.inputs[0].as<T>().data();
  const T* right = call.inputs[1].as<T>().data();
  T* target = call.outputs[0].as<T>().data();
  const std::pmr::vector<double> left_norms = squared_norms<T>(call, 0);
  const std::pmr::vector<double> right_norms = squared_norms<T>(call, 1);
  const auto store = [&](int64_t, int64_t row, int64_t first, int64_t count,
                         const double* products) {
    for (int64_t index = 0; index < count; ++index) {
      const int64_t other = first + index;
      const double norms =
          left_norms[static_cast<size_t>(row)] + right_norms[static_cast<size_t>(other)];
      double squared = norms - 2 * products[index];
      if (!(squared >= norms * kLeastPart)) {
        squared = squared_distance(left + row * columns, right + other * columns, columns);
      }
      target[row * others + other] = from_double<T>(has_root ? std::sqrt(squared) : squared);
    }
  };
  multiply_matrices<double>(call, {.rows = call.outputs[0].dims[0],
                                   .columns = others,
                                   .depth = columns,
                                   .left = {ReadDense<double, T>{left, columns}, true},
                                   .right = {ReadDense<double, T>{right, columns}, true},
                                   .store = store});
}

void run_c_dist(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  visit_floating(call.outputs[0].type,
                 [&](auto tag) { measure_distances<typename decltype(tag)::type>(call); });
}

// A subtraction, a product and a sum for each column of each pair of rows.
int64_t c_dist_flops(const Node& node, std::span<const Type> inputs,
                     std::span<const Type> outputs) {
  return multiply(flops_per_output(node, inputs, outputs), multiply(inputs[0].shape->back(), 3))
      .value();
}

}  // namespace

std::vector<Op> c_dist_ops() {
  return {{.name = "CDist",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"A", "T"}, {"B", "T"}},
           .outputs = {{"C", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"metric", AttributeKind::String, std::string("sqeuclidean")}},
           .infer = infer_c_dist,
           .flops = c_dist_flops,
           .kernel = run_c_dist}};
}

}  // namespace tessera::ops
