#include "quantized/region.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "base/activation_search.h"

namespace tessera::native {

using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

constexpr std::string_view kMicrosoftDomain = "com.microsoft";

bool is_of_known_domain(const Node& node) {
  return node.domain().empty() || node.domain() == kMicrosoftDomain;
}

template <class T>
std::vector<int32_t> widened(const Value& value) {
  const std::span<const T> elements = value.constant_as<T>();
  return {elements.begin(), elements.end()};
}

// The elements of a constant of integers; empty if it has another type or none.
std::vector<int32_t> constant_zero_points(const Value& value) {
  switch (value.type().data_type) {
    case TESSERA_INT8:
      return widened<int8_t>(value);
    case TESSERA_UINT8:
      return widened<uint8_t>(value);
    case TESSERA_INT16:
      return widened<int16_t>(value);
    case TESSERA_UINT16:
      return widened<uint16_t>(value);
    case TESSERA_INT32:
      return widened<int32_t>(value);
    default:
      return {};
  }
}

bool is_constant_of_known_type(const Value& value) {
  return value.is_constant() && value.constant() != nullptr && value.type().is_known();
}

std::vector<float> constant_scales(const Value& value) {
  if (!is_constant_of_known_type(value) || value.type().data_type != TESSERA_FLOAT32) return {};
  const std::span<const float> elements = value.constant_as<float>();
  const bool are_usable =
      std::ranges::all_of(elements, [](float scale) { return std::isfinite(scale) && scale > 0; });
  if (!are_usable) return {};
  return {elements.begin(), elements.end()};
}

// The only node that reads `value`, perhaps several times, if nothing else needs the value.
std::optional<Node> single_reader(const Graph& graph, const Value& value) {
  if (!value.is_present() || value.is_needed() || value.consumers().empty()) return std::nullopt;
  const int32_t first = value.consumers().front();
  const auto is_first = [first](int32_t reader) { return reader == first; };
  if (!std::ranges::all_of(value.consumers(), is_first)) return std::nullopt;
  return graph.node(first);
}

std::optional<Activation> limiting_function(const Node& node) {
  if (!node.domain().empty() || (node.op() != "Relu" && node.op() != "Clip")) return std::nullopt;
  try {
    const std::optional<Activation> function = activation_of(node);
    // Also false if a limit is NaN.
    const bool is_range = function && function->lower_limit() <= function->upper_limit();
    return is_range ? function : std::nullopt;
  } catch (const plugin::Failure&) {
    return std::nullopt;  // a bound is no constant
  }
}

bool is_quantized_type(int32_t data_type) {
  return is_byte_type(data_type) || data_type == TESSERA_INT16 || data_type == TESSERA_UINT16 ||
         data_type == TESSERA_INT32;
}

// Scales and zero points, without their axis.
std::optional<Quantization> read_constants(int32_t data_type, const Value& scale,
                                           const Value& zero_point) {
  if (!is_quantized_type(data_type)) return std::nullopt;
  Quantization found = {.data_type = data_type, .scales = constant_scales(scale)};
  const size_t count = found.scales.size();
  if (!zero_point.is_present()) {
    found.zero_points.assign(count, 0);
  } else if (is_constant_of_known_type(zero_point)) {
    found.zero_points = constant_zero_points(zero_point);
  }
  if (count == 0 || found.zero_points.size() != count) return std::nullopt;
  return found;
}

QuantizedInput input_of(const Graph& graph, const Node& node, const Value& value) {
  QuantizedInput input = {.value = value};
  if (value.producer() < 0) return input;
  const Node producer = graph.node(value.producer());
  if (!is_dequantize(producer)) return input;
  const std::optional<Node> reader = single_reader(graph, value);
  if (!reader || reader->id() != node.id()) return input;
  std::optional<Quantization> quantization = quantization_of(producer);
  if (!quantization) return input;
  input.integers = producer.input(0);
  input.dequantize = producer.id();
  input.quantization = *std::move(quantization);
  return input;
}

QuantizedOutput output_of(const Graph& graph, const Node& node) {
  QuantizedOutput output = {.value = node.output(0)};
  std::optional<Node> next = single_reader(graph, output.value);
  if (!next) return output;
  if (const std::optional<Activation> function = limiting_function(*next)) {
    // A Clip whose bound is the value itself is not a function of it.
    if (next->input(0).id() != output.value.id() || output.value.consumers().size() != 1) {
      return output;
    }
    output.activation = next;
    output.function = *function;
    output.value = next->output(0);
    next = single_reader(graph, output.value);
  }
  if (!next || !is_quantize(*next) || next->input(0).id() != output.value.id()) return output;
  std::optional<Quantization> quantization = quantization_of(*next);
  if (!quantization) return output;
  output.quantize = next;
  output.quantization = *std::move(quantization);
  output.value = next->output(0);
  return output;
}

}  // namespace

bool Quantization::has_zero_points() const {
  return std::ranges::any_of(zero_points, [](int32_t zero_point) { return zero_point != 0; });
}

IntegerLimits integer_limits(int32_t data_type) {
  switch (data_type) {
    case TESSERA_INT8:
      return {std::numeric_limits<int8_t>::min(), std::numeric_limits<int8_t>::max()};
    case TESSERA_UINT8:
      return {std::numeric_limits<uint8_t>::min(), std::numeric_limits<uint8_t>::max()};
    case TESSERA_INT16:
      return {std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max()};
    case TESSERA_UINT16:
      return {std::numeric_limits<uint16_t>::min(), std::numeric_limits<uint16_t>::max()};
    default:
      throw plugin::Failure(TESSERA_UNSUPPORTED, "quantises to integers of 8 or 16 bits only");
  }
}

int32_t quantized_number(float real, float scale, int32_t zero_point, IntegerLimits limits) {
  const auto lowest = static_cast<float>(limits.lowest - zero_point);
  const auto highest = static_cast<float>(limits.highest - zero_point);
  const float steps = real / scale;
  const float limited = steps > lowest ? std::min(steps, highest) : lowest;
  return static_cast<int32_t>(std::nearbyint(limited)) + zero_point;
}

bool is_dequantize(const Node& node) {
  return node.op() == "DequantizeLinear" && is_of_known_domain(node);
}

bool is_quantize(const Node& node) {
  return node.op() == "QuantizeLinear" && is_of_known_domain(node);
}

std::optional<Quantization> quantization_of(const Node& node) {
  const bool gives_integers = is_quantize(node);
  const Value real = gives_integers ? node.input(0) : node.output(0);
  const Value integers = gives_integers ? node.output(0) : node.input(0);
  const int32_t data_type = integers.type().data_type;
  // Each attribute is read, because the host refuses candidates of nodes with others.
  const plugin::Attributes attributes = node.attributes();
  const int64_t axis = attributes.get_int("axis", 1);
  const int64_t block = attributes.get_int("block_size");
  const int64_t precision = attributes.get_int("precision");
  attributes.find("output_dtype");  // the types say it
  attributes.find("saturate");      // of 8-bit floats
  constexpr int64_t kFloat32InOnnx = 1;
  if (precision != 0 && precision != kFloat32InOnnx) return std::nullopt;
  if (real.type().data_type != TESSERA_FLOAT32) return std::nullopt;
  if (gives_integers && data_type == TESSERA_INT32) return std::nullopt;
  std::optional<Quantization> found = read_constants(data_type, node.input(1), node.input(2));
  // A list of one scale is one scale.
  const int32_t rank = node.input(1).type().rank;
  if (!found || rank == 0 || (rank == 1 && found->scales.size() == 1)) return found;
  if (rank != 1 || block != 0 || integers.type().rank < 0) return std::nullopt;
  const int64_t counted = axis < 0 ? axis + integers.type().rank : axis;
  if (counted < 0 || counted >= integers.type().rank) return std::nullopt;
  found->axis = static_cast<int32_t>(counted);
  return found;
}

std::optional<Quantization> quantization_of(int32_t data_type, const Value& scale,
                                            const Value& zero_point) {
  std::optional<Quantization> found = read_constants(data_type, scale, zero_point);
  return found && found->scales.size() == 1 ? found : std::nullopt;
}

std::vector<int32_t> QuantizedRegion::nodes() const {
  std::vector<int32_t> all = {node.id()};
  for (const QuantizedInput& input : inputs) {
    if (input.is_quantized()) all.push_back(input.dequantize);
  }
  if (output.activation) all.push_back(output.activation->id());
  if (output.quantize) all.push_back(output.quantize->id());
  std::ranges::sort(all);
  // A node may read one value twice.
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

bool QuantizedRegion::has_inputs_of(int32_t data_type, size_t count) const {
  if (inputs.size() < count) return false;
  return std::all_of(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(count),
                     [&](const QuantizedInput& input) {
                       return input.is_quantized() && input.quantization.is_per_tensor() &&
                              input.quantization.data_type == data_type;
                     });
}

IntegerLimits QuantizedRegion::limits() const {
  const Quantization& quantization = output.quantization;
  const IntegerLimits all = integer_limits(quantization.data_type);
  const auto integer_of = [&](float real) {
    return quantized_number(real, quantization.scale(), quantization.zero_point(), all);
  };
  return {integer_of(output.function.lower_limit()), integer_of(output.function.upper_limit())};
}

QuantizedRegion region_around(const Graph& graph, const Node& node) {
  QuantizedRegion region = {.node = node, .inputs = {}, .output = output_of(graph, node)};
  for (size_t index = 0; index < node.input_count(); ++index) {
    region.inputs.push_back(input_of(graph, node, node.input(index)));
  }
  return region;
}

void for_each_of_microsoft(plugin::ProposeContext& context,
                           std::initializer_list<std::string_view> ops,
                           const std::function<void(const Node& node)>& offer) {
  for (const Node& node : context.graph().nodes()) {
    if (node.domain() != kMicrosoftDomain || std::ranges::find(ops, node.op()) == ops.end()) {
      continue;
    }
    if (!context.is_wanted(node)) continue;
    try {
      offer(node);
    } catch (const std::exception& exception) {
      context.refuse(node.id(), exception.what());
    }
  }
}

}  // namespace tessera::native
