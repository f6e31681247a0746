// If: runs one of two nested graphs. https://onnx.ai/onnx/operators/onnx__If.html
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/control_flow/bodies.h"
#include "ops/control_flow/pieces.h"
#include "ops/shape_rules.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

void infer_if(InferContext& context) {
  const Node& node = context.node();
  check_single(context, 0);
  for (size_t body = 0; body < node.bodies.size(); ++body) {
    const size_t found = body_of(node, body).outputs.size();
    if (found < node.outputs.size() || !body_of(node, body).inputs.empty()) {
      fail_body(node, body,
                "expected a graph without inputs that has " + std::to_string(node.outputs.size()) +
                    " outputs, as the node has, found " +
                    std::to_string(body_of(node, body).inputs.size()) + " inputs and " +
                    std::to_string(found) + " outputs");
    }
  }
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    const UnknownDim unknown = unknown_dims(context, output);
    const Type& first = body_output_type(node, 0, output);
    const Type& second = body_output_type(node, 1, output);
    const std::optional<Type> joined =
        join_types(outside_of_graph(first, unknown), outside_of_graph(second, unknown), unknown);
    if (!joined) {
      context.fail("expected branches that give the same type, found " + text(first) + " in " +
                   node.bodies[0].attribute + " and " + text(second) + " in " +
                   node.bodies[1].attribute + " for output " + std::to_string(output));
    }
    set_output_type(context, output, *joined);
  }
}

void run_if(const ValueCall& call) {
  const bool is_first =
      is_true(call, call.inputs[0]) == (call.node.bodies[0].attribute == "then_branch");
  std::vector<Tensor> results = call.bodies->run(is_first ? 0 : 1, {});
  for (size_t output = 0; output < call.outputs.size(); ++output) {
    call.outputs[output] = results[output].owned();
  }
}

}  // namespace

std::vector<Op> conditional_ops() {
  return {{.name = "If",
           .versions = {1, 11, 13, 16, 19, 21, 23, 24, 25},
           .inputs = {{"cond", "B"}},
           .outputs = {{"outputs", "V", Arity::Variadic}},
           .type_variables = {{"B", kBoolType}},
           .bodies = {"then_branch", "else_branch"},
           .infer = infer_if,
           .flops = no_flops,
           .value_kernel = run_if}};
}

}  // namespace tessera::ops
