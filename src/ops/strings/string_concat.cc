// StringConcat: each string of one tensor, followed by that of another one, with broadcasting.
// https://onnx.ai/onnx/operators/onnx__StringConcat.html
#include <string>

#include "ops/broadcast.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_concatenation(InferContext& context) {
  context.set_output(0, DataType::String, broadcast_inputs(context));
}

void run_concatenation(const ValueCall& call) {
  const Tensor& left = call.inputs[0];
  const Tensor& right = call.inputs[1];
  const std::optional<Shape> shape = broadcast(shape_from(left.dims()), shape_from(right.dims()));
  if (!shape) {
    call.fail("expected shapes that can be broadcast, found " + dims_text(left.dims()) + " and " +
              dims_text(right.dims()));
  }
  Tensor output(DataType::String, dims_from(*shape));
  const std::span<const std::string> lefts = left.as<std::string>();
  const std::span<const std::string> rights = right.as<std::string>();
  const std::span<std::string> results = output.mutable_as<std::string>();
  const BroadcastLoop loop(output.dims(), {left.dims(), right.dims()});
  loop.for_each_run(0, output.elements(), [&](const BroadcastLoop::Run& run) {
    for (int64_t index = 0; index < run.length; ++index) {
      results[static_cast<size_t>(run.output + index)] =
          lefts[static_cast<size_t>(run.inputs[0] + index * loop.step(0))] +
          rights[static_cast<size_t>(run.inputs[1] + index * loop.step(1))];
    }
  });
  call.outputs[0] = std::move(output);
}

}  // namespace

std::vector<Op> string_concat_ops() {
  return {{.name = "StringConcat",
           .versions = {20},
           .inputs = {{"X", "T"}, {"Y", "T"}},
           .outputs = {{"Z", "T"}},
           .type_variables = {{"T", kStringType}},
           .infer = infer_concatenation,
           .value_kernel = run_concatenation}};
}

}  // namespace tessera::ops
