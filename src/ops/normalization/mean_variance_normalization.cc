// MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over the elements along some axes, as
// ONNX's function body says; so equal elements give zeros.
#include <algorithm>
#include <cmath>
#include <memory_resource>

#include "ops/normalization/normalize.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

constexpr double kDeviationOffset = 1e-9;

void infer_mean_variance_normalization(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape != nullptr) {
    normalized_axes(context, context.node().attributes.get_ints("axes"),
                    static_cast<int64_t>(shape->size()));
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

// The axes of the input in two views: one element per set, and the elements of a set.
struct MomentSets {
  StridedView sets;
  StridedView elements;  // relative to the set's element
};

// Without axes, a set has all elements, as for ReduceMean.
MomentSets moment_sets(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const std::vector<int64_t>& axes = call.node.attributes.get_ints("axes");
  const std::pmr::vector<int64_t> strides = dense_strides(input.dims, &call.scratch);
  MomentSets views = {StridedView(&call.scratch), StridedView(&call.scratch)};
  const int64_t rank = input.rank();
  for (int64_t axis = 0; axis < rank; ++axis) {
    const bool is_inside = axes.empty() || std::ranges::any_of(axes, [&](int64_t given) {
                             return (given < 0 ? given + rank : given) == axis;
                           });
    StridedView& view = is_inside ? views.elements : views.sets;
    view.dims.push_back(input.dims[static_cast<size_t>(axis)]);
    view.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  views.elements = merged(views.elements);
  return views;
}

// Calls visit(offset) for each element of a view that is merged(): its last axis is a plain loop.
template <class Visit>
void visit_offsets(const StridedView& rows, int64_t length, int64_t stride, const Visit& visit) {
  int64_t count = 1;
  for (const int64_t dim : rows.dims) count *= dim;
  Odometer odometer(rows, 0);
  for (int64_t row = 0; row < count; ++row, odometer.advance()) {
    for (int64_t index = 0; index < length; ++index) visit(odometer.offset() + index * stride);
  }
}

void run_mean_variance_normalization(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  MomentSets views = moment_sets(call);
  const int64_t count = element_count(views.elements.dims);
  const int64_t length = views.elements.dims.back();
  const int64_t stride = views.elements.strides.back();
  views.elements.dims.pop_back();
  views.elements.strides.pop_back();
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(
        input.elements / count, 4096 / count + 1, [&](int64_t begin, int64_t end) {
          Odometer set(views.sets, begin);
          for (int64_t index = begin; index < end; ++index, set.advance()) {
            const int64_t start = set.offset();
            const auto visit_runs = [&](const auto& visit) {
              visit_offsets(views.elements, length, stride,
                            [&](int64_t offset) { visit(to_double(source[start + offset])); });
            };
            const Moments moments = moments_of(visit_runs, count);
            const double divisor = std::sqrt(moments.variance) + kDeviationOffset;
            visit_offsets(views.elements, length, stride, [&](int64_t offset) {
              const double centered = to_double(source[start + offset]) - moments.mean;
              target[start + offset] = from_double<T>(centered / divisor);
            });
          }
        });
  });
}

}  // namespace

std::vector<Op> mean_variance_normalization_ops() {
  return {{.name = "MeanVarianceNormalization",
           .versions = {9, 13},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"axes", AttributeKind::Ints, std::vector<int64_t>{0, 2, 3}}},
           .infer = infer_mean_variance_normalization,
           .flops = normalization_flops,
           .kernel = run_mean_variance_normalization}};
}

}  // namespace tessera::ops
