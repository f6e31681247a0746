// CDist: the distance of each row of one matrix from each row of another.
#include <cmath>

#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"

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

void run_c_dist(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const bool has_root = call.node.attributes.get_string("metric") == "euclidean";
  const int64_t columns = call.inputs[0].dims[1];
  const int64_t others = output.dims[1];
  visit_floating(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* left = call.inputs[0].as<T>().data();
    const T* right = call.inputs[1].as<T>().data();
    T* target = output.as<T>().data();
    const auto squared = [&](const T* row, const T* other) {
      double sum = 0;
      for (int64_t column = 0; column < columns; ++column) {
        const double difference = to_double(row[column]) - to_double(other[column]);
        sum += difference * difference;
      }
      return sum;
    };
    call.pool.parallel_for(
        output.dims[0], row_grain(others * (columns + 1)), [&](int64_t begin, int64_t end) {
          for (int64_t index = begin * others; index < end * others; ++index) {
            const double sum =
                squared(left + index / others * columns, right + index % others * columns);
            target[index] = from_double<T>(has_root ? std::sqrt(sum) : sum);
          }
        });
  });
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
