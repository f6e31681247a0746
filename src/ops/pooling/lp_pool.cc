// LpPool: the Lp norm of each window. Padding counts as zeros, which add nothing.
#include "ops/convert_element.h"
#include "ops/lp_norm.h"
#include "ops/op.h"
#include "ops/pooling/pool.h"

namespace tessera::ops {
namespace {

void infer_lp_pool(InferContext& context) {
  check_lp_order(context);
  context.set_output(0, context.element(0), pooled_shape(context));
}

void run_lp_pool(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const TensorView& input = call.inputs[0];
  const Window window = pool_window(call);
  const int64_t p = call.node.attributes.get_int("p");
  const int64_t outputs = output_count(window);
  const int64_t channel_elements = input_count(window);
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    for_each_output(
        call, window, input.dims[0] * input.dims[1],
        [&](int64_t channel, int64_t index, const OutputWindow& place) {
          const T* elements = source + channel * channel_elements;
          const auto visit_elements = [&](const auto& visit) {
            visit_offsets(place, [&](int64_t offset) { visit(to_double(elements[offset])); });
          };
          target[channel * outputs + index] = from_double<T>(lp_norm(visit_elements, p));
        });
  });
}

}  // namespace

std::vector<Op> lp_pool_ops() {
  return {{.name = "LpPool",
           .versions = {2, 11, 18, 22},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"auto_pad", AttributeKind::String, "NOTSET"},
                          {"ceil_mode", AttributeKind::Int, int64_t{0}, 18},
                          {"dilations", AttributeKind::Ints, std::nullopt, 18},
                          {"kernel_shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
                          {"p", AttributeKind::Int, int64_t{2}},
                          {"pads", AttributeKind::Ints, std::nullopt},
                          {"strides", AttributeKind::Ints, std::nullopt}},
           .traits = kBoundsMagnitude,
           .infer = infer_lp_pool,
           .flops = pool_flops,
           .kernel = run_lp_pool}};
}

}  // namespace tessera::ops
