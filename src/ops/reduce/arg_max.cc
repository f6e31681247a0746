// ArgMax and ArgMin: the index of the largest or smallest element along an axis.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kFirstLastIndexVersion = 12;

void infer_arg(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, DataType::Int64);
  const Attributes& attributes = context.node().attributes;
  // A scalar is treated as a line of one element.
  const auto rank = std::max<int64_t>(1, static_cast<int64_t>(shape->size()));
  const int64_t axis = context.normalized_axis(attributes.get_int("axis"), rank);
  Shape output = *shape;
  if (!output.empty()) {
    if (output[static_cast<size_t>(axis)] == Dim(0)) {
      context.fail_input(0, "expected elements along axis " + std::to_string(axis) +
                                ", found shape " + text(*shape));
    }
    output[static_cast<size_t>(axis)] = 1;
    if (attributes.get_int("keepdims") == 0) output.erase(output.begin() + axis);
  }
  context.set_output(0, DataType::Int64, output);
}

// Whether `value` replaces the earlier `best`. The first NaN wins over all numbers, as in NumPy;
// with `is_last`, later equal elements (and NaNs) win too.
template <bool kIsMax, class C>
bool is_better(C value, C best, bool is_last) {
  if constexpr (!std::is_integral_v<C>) {
    if (std::isnan(best)) return is_last && std::isnan(value);
    if (std::isnan(value)) return true;
  }
  if (is_last && value == best) return true;
  return kIsMax ? value > best : value < best;
}

template <bool kIsMax>
void run_arg(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const Attributes& attributes = call.node.attributes;
  int64_t axis = attributes.get_int("axis");
  if (axis < 0) axis += std::max<int64_t>(1, input.rank());
  const bool is_last =
      call.node.version >= kFirstLastIndexVersion && attributes.get_int("select_last_index") != 0;
  const int64_t length = input.rank() == 0 ? 1 : input.dims[static_cast<size_t>(axis)];
  int64_t stride = 1;
  for (int64_t inner_axis = axis + 1; inner_axis < input.rank(); ++inner_axis) {
    stride *= input.dims[static_cast<size_t>(inner_axis)];
  }
  const auto target = call.outputs[0].as<int64_t>();
  visit_numeric(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* source = input.as<T>().data();
    const int64_t grain = std::max<int64_t>(1, 8192 / length);
    call.pool.parallel_for(input.elements / length, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const T* elements = source + line / stride * length * stride + line % stride;
        C best = static_cast<C>(elements[0]);
        int64_t best_index = 0;
        for (int64_t index = 1; index < length; ++index) {
          const C value = static_cast<C>(elements[index * stride]);
          if (!is_better<kIsMax>(value, best, is_last)) continue;
          best = value;
          best_index = index;
        }
        target[static_cast<size_t>(line)] = best_index;
      }
    });
  });
}

Op arg_op(const char* name, ReferenceKernel kernel) {
  return {
      .name = name,
      .versions = {1, 11, 12, 13},
      .inputs = {{"data", "T"}},
      .outputs = {{"reduced", "tensor(int64)"}},
      .type_variables = {{"T", kNumericTypes}, {"tensor(int64)", kInt64Type}},
      .attributes = {{"axis", AttributeKind::Int, int64_t{0}},
                     {"keepdims", AttributeKind::Int, int64_t{1}},
                     {"select_last_index", AttributeKind::Int, int64_t{0}, kFirstLastIndexVersion}},
      .infer = infer_arg,
      .flops = flops_per_input,
      .kernel = kernel};
}

}  // namespace

std::vector<Op> arg_max_ops() {
  return {arg_op("ArgMax", run_arg<true>), arg_op("ArgMin", run_arg<false>)};
}

}  // namespace tessera::ops
