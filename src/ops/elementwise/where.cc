// Where: all three inputs are broadcast.
#include "ops/broadcast.h"
#include "ops/shape_arithmetic.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

void infer_where(InferContext& context) {
  const DataType element =
      context.element(1) != DataType::Undefined ? context.element(1) : context.element(2);
  context.set_output(0, element, broadcast_inputs(context));
  set_elementwise_elements(context, [](const std::vector<Dim>& arguments) -> std::optional<Dim> {
    const Dim& condition = arguments[0];
    if (condition.is_known()) return condition.value() != 0 ? arguments[1] : arguments[2];
    if (arguments[1] == arguments[2]) return arguments[1];
    return expression("where", arguments);
  });
}

void run_where(const KernelCall& call) {
  const MutableTensorView& result = call.outputs[0];
  const BroadcastLoop loop(
      result.dims, {call.inputs[0].dims, call.inputs[1].dims, call.inputs[2].dims}, &call.scratch);
  const uint8_t* condition = call.inputs[0].as<uint8_t>().data();
  visit_size(result.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* yes = call.inputs[1].as<T>().data();
    const T* no = call.inputs[2].as<T>().data();
    T* output = result.as<T>().data();
    call.pool.parallel_for(result.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      loop.for_each_run(begin, end, [&](const BroadcastLoop::Run& run) {
        for (int64_t index = 0; index < run.length; ++index) {
          const bool is_yes = condition[run.inputs[0] + index * loop.step(0)] != 0;
          output[run.output + index] = is_yes ? yes[run.inputs[1] + index * loop.step(1)]
                                              : no[run.inputs[2] + index * loop.step(2)];
        }
      });
    });
  });
}

}  // namespace

std::vector<Op> where_ops() {
  return {{.name = "Where",
           .versions = {9, 16},
           .inputs = {{"condition", "B"}, {"X", "T"}, {"Y", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"B", kBoolType}, {"T", kAllTypesAndStrings}},
           .traits = kElementwise,
           .infer = infer_where,
           .flops = no_flops,
           .kernel = run_where}};
}

}  // namespace tessera::ops
