// Bernoulli: 1 with the probability that the input's element is, else 0.
#include "ops/convert_element.h"
#include "ops/onnx_types.h"
#include "ops/op.h"
#include "ops/random/random_numbers.h"

namespace tessera::ops {
namespace {

void infer_bernoulli(InferContext& context) {
  const bool has_type = context.node().attributes.has("dtype");
  context.set_output(0,
                     has_type ? element_type_of(context, "dtype", kAllTypes) : context.element(0),
                     context.input(0).type.shape);
}

template <class From, class To>
void draw_events(const KernelCall& call, uint64_t seed) {
  const From* probabilities = call.inputs[0].as<From>().data();
  To* target = call.outputs[0].as<To>().data();
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      // False for NaN. Numbers outside of [0, 1], which ONNX forbids, count as the nearest one.
      const bool is_event = uniform_number(seed, index) < to_double(probabilities[index]);
      target[index] = from_double<To>(is_event ? 1 : 0);
    }
  });
}

void run_bernoulli(const KernelCall& call) {
  const uint64_t seed = float_seed(call.node);
  visit_floating(call.inputs[0].type, [&](auto from) {
    using From = typename decltype(from)::type;
    if (call.outputs[0].type == DataType::Bool) return draw_events<From, uint8_t>(call, seed);
    visit_numeric(call.outputs[0].type,
                  [&](auto to) { draw_events<From, typename decltype(to)::type>(call, seed); });
  });
}

}  // namespace

std::vector<Op> bernoulli_ops() {
  return {{.name = "Bernoulli",
           .versions = {15, 22},
           .inputs = {{"input", "T1"}},
           .outputs = {{"output", "T2"}},
           .type_variables = {{"T1", kFloatTypes}, {"T2", kAllTypes}},
           .attributes = {{"dtype", AttributeKind::Int, std::nullopt},
                          {"seed", AttributeKind::Float, std::nullopt}},
           .traits = kElementwise | kRandom,
           .infer = infer_bernoulli,
           .kernel = run_bernoulli}};
}

}  // namespace tessera::ops
