// BitCast: the bits of the elements as those of another type of the same size.
#include <algorithm>
#include <cstring>
#include <string>

#include "ops/onnx_types.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_bit_cast(InferContext& context) {
  const DataType target = element_type_of(context, "to", kAllTypes);
  const DataType source = context.element(0);
  if (source != DataType::Undefined && element_bytes(source) != element_bytes(target)) {
    context.fail("attribute 'to': expected an element type of " +
                 std::to_string(8 * element_bytes(source)) + " bits, like " +
                 std::string(name(source)) + ", found " + std::string(name(target)));
  }
  context.set_output(0, target, context.input(0).type.shape);
}

void run_bit_cast(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const int64_t size = element_bytes(input.type);
  const auto* source = static_cast<const uint8_t*>(input.data);
  auto* target = static_cast<uint8_t*>(call.outputs[0].data);
  // A bool has two values only: any other byte is true.
  const bool is_to_bool = call.outputs[0].type == DataType::Bool;
  call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    if (is_to_bool) {
      std::transform(source + begin, source + end, target + begin,
                     [](uint8_t byte) { return static_cast<uint8_t>(byte != 0 ? 1 : 0); });
    } else {
      std::memcpy(target + begin * size, source + begin * size,
                  static_cast<size_t>((end - begin) * size));
    }
  });
}

}  // namespace

std::vector<Op> bit_cast_ops() {
  return {{.name = "BitCast",
           .versions = {26},
           .inputs = {{"input", "T1"}},
           .outputs = {{"output", "T2"}},
           .type_variables = {{"T1", kAllTypes}, {"T2", kAllTypes}},
           .attributes = {{"to", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
           .traits = kElementwise,
           .infer = infer_bit_cast,
           .flops = no_flops,
           .kernel = run_bit_cast}};
}

}  // namespace tessera::ops
