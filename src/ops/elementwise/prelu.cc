// PRelu. In version 6, a one-dimensional slope has one number per channel (axis 1); since version 7
// it is broadcast as in NumPy.
#include <string>
#include <type_traits>

#include "ops/broadcast.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kUnidirectionalVersion = 7;

// Appends ones to the slope's shape, so that its dimension aligns with axis 1 of the input.
template <class Dims>
void align_slope(int version, size_t rank, Dims& slope) {
  if (version >= kUnidirectionalVersion || slope.size() != 1 || rank < 2) return;
  slope.resize(rank - 1, typename Dims::value_type(1));
}

void infer_prelu(InferContext& context) {
  const Shape* shape = context.shape(0);
  const Shape* slope = context.shape(1);
  if (shape != nullptr && slope != nullptr) {
    Shape aligned = *slope;
    align_slope(context.version(), shape->size(), aligned);
    if (!can_broadcast_to(aligned, *shape)) {
      context.fail_input(
          1, "expected a shape that broadcasts to " + text(*shape) + ", found " + text(*slope));
    }
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

template <class T>
T sloped(T x, T slope) {
  using Number = compute_t<T>;
  const auto number = static_cast<Number>(x);
  if constexpr (std::is_unsigned_v<T>) {
    return x;  // never negative
  } else if constexpr (std::is_integral_v<T>) {
    // Wraps around, which is defined for unsigned types only.
    return x < 0 ? static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(slope)) : x;
  } else {
    // The comparison is not `number < 0`, so that zero times a NaN slope gives NaN.
    return number > 0 ? x : T(number * static_cast<Number>(slope));
  }
}

void run_prelu(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const TensorView& slope = call.inputs[1];
  std::pmr::vector<int64_t> slope_dims(slope.dims.begin(), slope.dims.end(), &call.scratch);
  align_slope(call.node.version, input.dims.size(), slope_dims);
  const BroadcastLoop loop(input.dims, {slope_dims}, &call.scratch);
  visit_numeric(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* elements = input.as<T>().data();
    const T* slopes = slope.as<T>().data();
    T* output = call.outputs[0].as<T>().data();
    call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      loop.for_each_run(begin, end, [&](const BroadcastLoop::Run& run) {
        for (int64_t index = 0; index < run.length; ++index) {
          output[run.output + index] =
              sloped<T>(elements[run.output + index], slopes[run.inputs[0] + index * loop.step(0)]);
        }
      });
    });
  });
}

}  // namespace

std::vector<Op> prelu_ops() {
  constexpr TypeSet kTypes =
      kFloatTypes | kIndexTypes | TypeSet{DataType::UInt32, DataType::UInt64};
  return {{.name = "PRelu",
           .versions = {6, 7, 9, 16},
           .inputs = {{"X", "T"}, {"slope", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kTypes}},
           .traits = kElementwise,
           .infer = infer_prelu,
           .kernel = run_prelu}};
}

}  // namespace tessera::ops
