// Concat: concatenates its inputs along one axis.
#include <algorithm>
#include <cstring>

#include "ops/evaluate.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

// Merges what two inputs say about a dimension that must be equal in both.
Dim shared_dim(const InferContext& context, size_t index, size_t axis, const Dim& before,
               const Dim& here) {
  if (!before.is_known()) return here.is_known() ? here : before;
  if (here.is_known() && here != before) {
    context.fail_input(index, "expected dimension " + std::to_string(axis) + " to be " +
                                  before.text() + " as in the inputs before, found " + here.text());
  }
  return before;
}

void follow_joined(InferContext& context) {
  std::vector<Dim> elements;
  for (size_t index = 0; index < context.input_count(); ++index) {
    const std::vector<Dim>* part = propagated_elements(context, index);
    const Shape* shape = context.shape(index);
    if (part == nullptr || shape->size() != 1) return;
    elements.insert(elements.end(), part->begin(), part->end());
    if (elements.size() > static_cast<size_t>(kMaxShapeElements)) return;
  }
  context.set_elements(0, std::move(elements));
}

void infer_concat(InferContext& context) {
  DataType element = DataType::Undefined;
  std::optional<Shape> joined;
  bool is_every_rank_known = true;
  size_t axis = 0;
  Dim total = 0;
  for (size_t index = 0; index < context.input_count(); ++index) {
    if (!context.has_input(index)) context.fail_input(index, "expected a tensor, found none");
    if (element == DataType::Undefined) element = context.element(index);
    const Shape* shape = context.shape(index);
    if (shape == nullptr) {
      is_every_rank_known = false;
      continue;
    }
    if (!joined) {
      joined = *shape;
      axis = static_cast<size_t>(context.normalized_axis(context.node().attributes.get_int("axis"),
                                                         static_cast<int64_t>(shape->size())));
    }
    if (shape->size() != joined->size()) {
      context.fail_input(index, "expected rank " + std::to_string(joined->size()) +
                                    " as the inputs before, found shape " + text(*shape));
    }
    for (size_t dimension = 0; dimension < shape->size(); ++dimension) {
      if (dimension == axis) continue;
      (*joined)[dimension] =
          shared_dim(context, index, dimension, (*joined)[dimension], (*shape)[dimension]);
    }
    total = add(total, (*shape)[axis]);
  }
  if (joined) (*joined)[axis] = is_every_rank_known ? total : unknown_dim(context, 0, axis);
  context.set_output(0, element, joined);
  follow_joined(context);
}

void run_concat(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += output.rank();
  int64_t outer = 1;
  int64_t inner_bytes = element_bytes(output.type);
  for (int64_t dimension = 0; dimension < output.rank(); ++dimension) {
    const int64_t dim = output.dims[static_cast<size_t>(dimension)];
    if (dimension < axis) outer *= dim;
    if (dimension > axis) inner_bytes *= dim;
  }
  const int64_t row_bytes = inner_bytes * output.dims[static_cast<size_t>(axis)];
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / row_bytes);
  call.pool.parallel_for(outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      char* target = static_cast<char*>(output.data) + row * row_bytes;
      for (const TensorView& input : call.inputs) {
        const int64_t bytes = inner_bytes * input.dims[static_cast<size_t>(axis)];
        std::memcpy(target, static_cast<const char*>(input.data) + row * bytes,
                    static_cast<size_t>(bytes));
        target += bytes;
      }
    }
  });
}

}  // namespace

std::vector<Op> concat_ops() {
  return {{.name = "Concat",
           .versions = {4, 11, 13},
           .inputs = {{"inputs", "T", Arity::Variadic}},
           .outputs = {{"concat_result", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}},
           .attributes = {{"axis", AttributeKind::Int, std::nullopt, 4, kAnyVersion, true}},
           .traits = kBoundsMagnitude,
           .infer = infer_concat,
           .flops = no_flops,
           .kernel = run_concat}};
}

}  // namespace tessera::ops
