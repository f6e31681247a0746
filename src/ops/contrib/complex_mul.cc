// ComplexMul and ComplexMulConj: products of complex numbers, which are the last axis: [real,
// imaginary]. The axes before it broadcast.
#include "ops/broadcast.h"
#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

void infer_complex_mul(InferContext& context) {
  for (const size_t index : {size_t{0}, size_t{1}}) {
    const Shape* shape = context.shape(index);
    if (shape != nullptr && (shape->empty() || !can_be_equal({shape->back()}, {Dim(2)}))) {
      context.fail_input(index,
                         "expected 2 elements along the last axis, found [" + text(*shape) + "]");
    }
  }
  std::optional<Shape> output = broadcast_inputs(context);
  if (output) output->back() = 2;
  context.set_output(0, context.element(0), output);
}

template <bool kIsConjugate>
void run_complex_mul(const KernelCall& call) {
  const auto numbers = [](std::span<const int64_t> dims) { return dims.first(dims.size() - 1); };
  const BroadcastLoop loop(numbers(call.outputs[0].dims),
                           {numbers(call.inputs[0].dims), numbers(call.inputs[1].dims)},
                           &call.scratch);
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* left = call.inputs[0].as<T>().data();
    const T* right = call.inputs[1].as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    const auto multiply_run = [&](const BroadcastLoop::Run& run) {
      for (int64_t index = 0; index < run.length; ++index) {
        const T* x = left + 2 * (run.inputs[0] + index * loop.step(0));
        const T* y = right + 2 * (run.inputs[1] + index * loop.step(1));
        const double real = to_double(y[0]);
        const double imaginary = kIsConjugate ? -to_double(y[1]) : to_double(y[1]);
        T* product = target + 2 * (run.output + index);
        product[0] = from_double<T>(to_double(x[0]) * real - to_double(x[1]) * imaginary);
        product[1] = from_double<T>(to_double(x[0]) * imaginary + to_double(x[1]) * real);
      }
    };
    call.pool.parallel_for(
        call.outputs[0].elements / 2, kElementGrain,
        [&](int64_t begin, int64_t end) { loop.for_each_run(begin, end, multiply_run); });
  });
}

Op complex_op(const char* name, ReferenceKernel kernel) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"A", "T"}, {"B", "T"}},
          .outputs = {{"C", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .infer = infer_complex_mul,
          .kernel = kernel};
}

}  // namespace

std::vector<Op> complex_mul_ops() {
  return {complex_op("ComplexMul", run_complex_mul<false>),
          complex_op("ComplexMulConj", run_complex_mul<true>)};
}

}  // namespace tessera::ops
