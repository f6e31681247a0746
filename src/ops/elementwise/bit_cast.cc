// BitCast: the bits of the elements as those of another type of the same size.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/tensor/small_types.h"
#include "ops/onnx_types.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// The small types were there before the op was.
constexpr TypeSet kBitTypes =
    kAllTypes | kFloat8Types | kInt4Types | kFloat4Type | kPowerType | kInt2Types;

void infer_bit_cast(InferContext& context) {
  const DataType target = element_type_of(context, "to", kBitTypes);
  const DataType source = context.element(0);
  if (source != DataType::Undefined && element_bits(source) != element_bits(target)) {
    context.fail("attribute 'to': expected an element type of " +
                 std::to_string(element_bits(source)) + " bits, like " + std::string(name(source)) +
                 ", found " + std::string(name(target)));
  }
  context.set_output(0, target, context.input(0).type.shape);
}

// The byte of an element of which `bits` are those in a file: a bool has two values only, any other
// byte is true; integers of less than a byte are extended to one.
uint8_t element_byte(DataType type, uint8_t bits) {
  if (type == DataType::Bool) return bits != 0 ? 1 : 0;
  if (type == DataType::Float4E2M1) return bits & 0xFU;
  const bool is_packed_integer = is_small(type) && element_bits(type) < 8;
  return is_packed_integer ? static_cast<uint8_t>(small_integer(type, bits)) : bits;
}

void run_bit_cast(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const int64_t size = element_bytes(input.type);
  const auto* source = static_cast<const uint8_t*>(input.data);
  auto* target = static_cast<uint8_t*>(call.outputs[0].data);
  const DataType type = call.outputs[0].type;
  call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    if (type == DataType::Bool || is_small(type)) {
      std::transform(source + begin, source + end, target + begin,
                     [&](uint8_t byte) { return element_byte(type, byte); });
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
           .type_variables = {{"T1", kBitTypes}, {"T2", kBitTypes}},
           .attributes = {{"to", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
           .traits = kElementwise,
           .infer = infer_bit_cast,
           .flops = no_flops,
           .kernel = run_bit_cast}};
}

}  // namespace tessera::ops
