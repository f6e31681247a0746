// Ops that are others under another name, and ops on 16-bit floating-point types, which are
// computed in float32.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ops/domains.h"
#include "rewrite/lower_functions.h"

namespace tessera {
namespace {

bool is_narrow(DataType element) {
  return element == DataType::Float16 || element == DataType::BFloat16;
}

// The results are rounded once, as those of the op's kernel.
bool write_in_float32(NodeBuilder& builder) {
  const std::vector<ValueId>& given = builder.replaced().inputs;
  if (given.empty() || !is_narrow(builder.element_of(given[0]))) return false;
  std::vector<ValueId> inputs;
  for (const ValueId id : given) inputs.push_back(id.is_none() ? id : widened(builder, id));
  const std::vector<ValueId> outputs = builder.repeat(std::move(inputs));
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (!builder.has_output(index)) continue;
    give_as(builder, index, outputs[index], builder.element_of(builder.replaced().outputs[index]));
  }
  return true;
}

bool write_resize_in_float32(NodeBuilder& builder) {
  // Nearest elements are copied, whatever their type.
  if (builder.replaced().attributes.get_string("mode") == "nearest") return false;
  return write_in_float32(builder);
}

// The same op of ONNX's own domain, with the same inputs and attributes. Its rule takes no other
// ranks of the inputs behind the first one.
bool write_standard_op(NodeBuilder& builder, int64_t rank) {
  const Node& node = builder.replaced();
  for (size_t index = 1; index < node.inputs.size(); ++index) {
    if (builder.has_input(index) && builder.rank_of(builder.input(index)) != rank) return false;
  }
  builder.give(0, builder.add(node.op, node.inputs, node.attributes));
  return true;
}

bool write_pad(NodeBuilder& builder) {
  return !builder.has_input(2) && write_standard_op(builder, 1);
}

bool write_range(NodeBuilder& builder) {
  return builder.has_input(2) && builder.rank_of(builder.input(0)) == 0 &&
         write_standard_op(builder, 0);
}

// Its pads become an attribute if they are known and decide the size of the output alone.
bool write_conv_transpose(NodeBuilder& builder) {
  Attributes attributes = builder.replaced().attributes;
  if (attributes.has("output_shape") || attributes.get_string("auto_pad") != "NOTSET") return false;
  if (builder.has_input(2)) {
    const std::optional<std::vector<int64_t>> pads = builder.integers_of(builder.input(2));
    if (!pads) return false;
    attributes.set("pads", *pads);
  }
  std::vector<ValueId> inputs = {builder.input(0), builder.input(1)};
  if (builder.has_input(3)) inputs.push_back(builder.input(3));
  builder.give(0, builder.add("ConvTranspose", inputs, std::move(attributes)));
  return true;
}

bool write_trilu(NodeBuilder& builder) { return write_standard_op(builder, 0); }

constexpr FunctionLowering kPlainLowerings[] = {
    {"", "AveragePool", write_in_float32},
    {"", "Conv", write_in_float32},
    {"", "ConvTranspose", write_in_float32},
    {"", "Einsum", write_in_float32},
    {"", "GRU", write_in_float32},
    {"", "Gemm", write_in_float32},
    {"", "GlobalAveragePool", write_in_float32},
    {"", "GlobalMaxPool", write_in_float32},
    {"", "GroupNormalization", write_in_float32},
    {"", "InstanceNormalization", write_in_float32},
    {"", "LRN", write_in_float32},
    {"", "LSTM", write_in_float32},
    {"", "LayerNormalization", write_in_float32},
    {"", "LogSoftmax", write_in_float32},
    {"", "MatMul", write_in_float32},
    {"", "MaxPool", write_in_float32},
    {"", "RNN", write_in_float32},
    {"", "ReduceL1", write_in_float32},
    {"", "ReduceL2", write_in_float32},
    {"", "ReduceLogSum", write_in_float32},
    {"", "ReduceLogSumExp", write_in_float32},
    {"", "ReduceMax", write_in_float32},
    {"", "ReduceMean", write_in_float32},
    {"", "ReduceMin", write_in_float32},
    {"", "ReduceProd", write_in_float32},
    {"", "ReduceSum", write_in_float32},
    {"", "ReduceSumSquare", write_in_float32},
    {"", "Resize", write_resize_in_float32},
    {"", "Softmax", write_in_float32},
    {ops::kMicrosoftDomain, "ConvTransposeWithDynamicPads", write_conv_transpose},
    {ops::kMicrosoftDomain, "Pad", write_pad},
    {ops::kMicrosoftDomain, "Range", write_range},
    {ops::kMicrosoftDomain, "Trilu", write_trilu},
};

}  // namespace

std::span<const FunctionLowering> plain_lowerings() { return kPlainLowerings; }

}  // namespace tessera
