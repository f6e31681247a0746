#include "ops/effects.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "ops/schema.h"

namespace tessera::ops {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// An attribute, or an optional input, that decides only types, or only elements of one output.
struct Exemption {
  std::string_view op;  // "*": every op
  std::string_view name;
  size_t output = kNone;  // whose elements it decides
};

constexpr Exemption kExemptions[] = {
    // Only how many axes of one element the output has.
    {"*", "keepdims"},
    // Of older versions: whether the operands' shapes may differ.
    {"*", "broadcast"},
    // Sizes and types that the node's inputs or outputs have.
    {"AveragePool", "ceil_mode"},
    {"Bernoulli", "dtype"},
    {"BitCast", "to"},
    {"BlackmanWindow", "output_datatype"},
    {"Cast", "to"},
    {"CenterCropPad", "axes"},
    {"Conv", "kernel_shape"},
    {"ConvTranspose", "kernel_shape"},
    {"DeformConv", "kernel_shape"},
    {"DepthToSpace", "blocksize"},
    {"EyeLike", "dtype"},
    {"Flatten", "axis"},
    {"GRU", "hidden_size"},
    {"HammingWindow", "output_datatype"},
    {"HannWindow", "output_datatype"},
    {"LSTM", "hidden_size"},
    {"LpPool", "ceil_mode"},
    {"MaxPool", "ceil_mode"},
    {"MaxRoiPool", "pooled_shape"},
    {"MelWeightMatrix", "output_datatype"},
    {"Multinomial", "dtype"},
    {"Multinomial", "sample_size"},
    {"RNN", "hidden_size"},
    {"RandomNormal", "dtype"},
    {"RandomNormal", "shape"},
    {"RandomNormalLike", "dtype"},
    {"RandomUniform", "dtype"},
    {"RandomUniform", "shape"},
    {"RandomUniformLike", "dtype"},
    {"Reshape", "allowzero"},
    {"Resize", "sizes"},
    {"RoiAlign", "output_height"},
    {"RoiAlign", "output_width"},
    {"STFT", "onesided"},
    {"Shape", "end"},
    {"SpaceToDepth", "blocksize"},
    {"Split", "num_outputs"},
    {"Split", "split"},
    {"Squeeze", "axes"},
    {"TopK", "k"},
    {"Unsqueeze", "axes"},
    // Of small floats only, of which plug-ins that do not know them get no nodes.
    {"Cast", "round_mode"},
    {"Cast", "saturate"},
    {"CastLike", "round_mode"},
    {"CastLike", "saturate"},
    // These attributes affect random numbers only: other results do not depend on
    // them. Inputs are copied for each value of is_test (dropout.cc).
    {"Dropout", "is_test"},
    {"Dropout", "ratio"},
    {"Dropout", "seed"},
    // Of float16 and bfloat16: in which type intermediate results are at least. All kernels compute
    // in float32 or better.
    {"GroupNormalization", "stash_type"},
    {"LayerNormalization", "stash_type"},
    {"RMSNormalization", "stash_type"},
    {"Range", "stash_type"},
    // How kernels may divide the sequence.
    {"LinearAttention", "chunk_size"},
    // Without it, any order is right, also that of the largest first.
    {"TopK", "sorted"},
    // The running mean and variance are outputs 1 and 2, which exist together.
    {"BatchNormalization", "momentum", 1},
    {"MaxPool", "storage_order", 1},
    {"Attention", "qk_matmul_output_mode", 3},
};

bool has_output(const Node& node, size_t index) {
  return index < node.outputs.size() && !node.outputs[index].is_none();
}

bool is_exempt(const Node& node, std::string_view name) {
  return std::ranges::any_of(kExemptions, [&](const Exemption& exemption) {
    if (exemption.name != name || (exemption.op != "*" && exemption.op != node.op)) return false;
    return exemption.output == kNone || !has_output(node, exemption.output);
  });
}

bool are_all(const Attribute& value, int64_t number) {
  const auto* numbers = std::get_if<std::vector<int64_t>>(&value);
  return numbers != nullptr &&
         std::ranges::all_of(*numbers, [&](int64_t one) { return one == number; });
}

// Only tf_crop_and_resize reads the region of a Resize.
bool is_unread_region(const Node& node, std::string_view input) {
  return node.op == "Resize" && input == "roi" &&
         node.attributes.get_string("coordinate_transformation_mode") != "tf_crop_and_resize";
}

// Given axes are not empty, except for constants of no elements, which plug-ins read with it.
bool is_unread_choice(const Node& node, std::string_view name) {
  if (name != "noop_with_empty_axes") return false;
  const auto* axes = node.attributes.find_ints("axes");
  const bool has_input = node.inputs.size() > 1 && !node.inputs[1].is_none();
  return has_input || (axes != nullptr && !axes->empty());
}

// Tensors count as different.
bool is_equal(const Attribute& value, const Attribute& other) {
  return std::visit(
      [&]<class T>(const T& one) {
        if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, std::vector<Tensor>>) {
          return false;
        } else {
          const T* right = std::get_if<T>(&other);
          return right != nullptr && one == *right;
        }
      },
      value);
}

// Lists whose defaults the standard states in words, because their length is that of the window.
bool is_default_of_window(std::string_view name, const Attribute& value) {
  if (name == "strides" || name == "dilations") return are_all(value, 1);
  if (name == "pads" || name == "output_padding") return are_all(value, 0);
  return false;
}

}  // namespace

bool attribute_has_effect(const Op& op, const Node& node, std::string_view name) {
  const Attribute& value = node.attributes.all().find(name)->second;
  for (const AttributeSchema& schema : op.attributes) {
    const bool is_it =
        schema.name == name && schema.since <= node.version && node.version <= schema.until;
    if (is_it && schema.default_value && is_equal(value, *schema.default_value)) return false;
  }
  if (!op.domain.empty()) return true;
  return !is_default_of_window(name, value) && !is_exempt(node, name) &&
         !is_unread_choice(node, name);
}

bool input_has_effect(const Op& op, const Node& node, size_t index) {
  if (index >= node.inputs.size() || node.inputs[index].is_none()) return false;
  const std::vector<Parameter> parameters = parameters_of(op.inputs, node.version);
  if (index >= parameters.size() || parameters[index].arity != Arity::Optional) return false;
  const std::string& name = parameters[index].name;
  return !op.domain.empty() || (!is_exempt(node, name) && !is_unread_region(node, name));
}

}  // namespace tessera::ops
