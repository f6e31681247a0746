// Softmax, LogSoftmax, and the normalisations by mean and variance: of a layer, of the groups or
// channels of an instance, and of a batch whose statistics are given.
#include <algorithm>
#include <string>

#include "codegen/lowering/lower_op.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;
using Builder = ExpressionBuilder;

// --- Softmax -------------------------------------------------------------------------------------

// Reduces the axes [axis, end) of input 0; `end` is the rank if it is negative.
std::string place_rows(const Graph& graph, const Node& node, int64_t axis, int64_t end,
                       FusionRole& role) {
  place_first(graph, node, role);
  const auto rank = static_cast<int64_t>(role.input_dims[0].size());
  if (end < 0) end = rank;
  if (axis < 0 || axis > end || end > rank) return "has an axis that its input lacks";
  role.reduced_axes.assign(static_cast<size_t>(rank), false);
  std::fill(role.reduced_axes.begin() + axis, role.reduced_axes.begin() + end, true);
  return "";
}

int64_t axis_of(const Graph& graph, const Node& node) {
  const auto rank = static_cast<int64_t>(dims_of(graph, node.inputs[0]).size());
  const int64_t axis = node.attributes.get_int("axis");
  return axis < 0 ? axis + rank : axis;
}

// Up to version 12, all axes from `axis` on are one row.
std::string place_flattened_softmax(const Graph& graph, const Node& node, FusionRole& role) {
  return place_rows(graph, node, axis_of(graph, node), -1, role);
}

std::string place_softmax(const Graph& graph, const Node& node, FusionRole& role) {
  const int64_t axis = axis_of(graph, node);
  return place_rows(graph, node, axis, axis + 1, role);
}

struct SoftmaxTerms {
  Id shifted = -1;  // minus the maximum
  Id power = -1;
  Id sum = -1;  // of the powers
};

SoftmaxTerms softmax_terms(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  SoftmaxTerms terms;
  terms.shifted = builder.subtract(x, lowering.reduce(Operation::ReduceMax, x));
  terms.power = exp(builder, terms.shifted);
  terms.sum = lowering.reduce(Operation::ReduceSum, terms.power);
  return terms;
}

Id lower_softmax(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const SoftmaxTerms terms = softmax_terms(lowering);
  // One division for a row.
  const Id inverse = builder.divide(builder.number(builder.type(terms.sum), 1), terms.sum);
  return builder.multiply(terms.power, inverse);
}

Id lower_log_softmax(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const SoftmaxTerms terms = softmax_terms(lowering);
  return builder.subtract(terms.shifted, log(builder, terms.sum));
}

// --- Mean and variance ---------------------------------------------------------------------------

Id epsilon_of(const Lowering& lowering, DataType type) {
  return lowering.builder.number(
      type, static_cast<double>(lowering.node.attributes.get_float("epsilon")));
}

// Sums of more elements lose digits in float32, where they may run through one after the other.
constexpr int64_t kLongestSum = 256;

// The mean of the row. The elements of long rows are added up in float64.
Id mean_of(const Lowering& lowering, Id x) {
  Builder& builder = lowering.builder;
  const DataType type = builder.type(x);
  const int64_t count = lowering.reduced_elements();
  const DataType wide = count > kLongestSum ? DataType::Float64 : type;
  const Id sum = lowering.reduce(Operation::ReduceSum, builder.convert(x, wide));
  const Id mean = builder.divide(sum, builder.number(wide, static_cast<double>(count)));
  return builder.convert(mean, type);
}

// (x - mean) / sqrt(variance + epsilon). The variance is the mean of (x - mean)^2, which does not
// cancel if the mean is far from zero.
Id normalized(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const DataType type = builder.type(x);
  const Id centred = builder.subtract(x, mean_of(lowering, x));
  const Id variance = mean_of(lowering, builder.multiply(centred, centred));
  const Id deviation = builder.square_root(builder.add(variance, epsilon_of(lowering, type)));
  return builder.multiply(centred, builder.divide(builder.number(type, 1), deviation));
}

Id lower_moments(const Lowering& lowering) {
  const Id x = normalized(lowering);
  const Id scale = lowering.number(1);
  return lowering.has_input(2) ? lowering.builder.fused_multiply_add(x, scale, lowering.number(2))
                               : lowering.builder.multiply(x, scale);
}

std::string place_layer(const Graph& graph, const Node& node, FusionRole& role) {
  place_broadcast(graph, node, role);
  return place_rows(graph, node, axis_of(graph, node), -1, role);
}

// Gives the inputs from 1 on, which are vectors, one element for each channel (axis 1).
void place_channels(const Graph& graph, const Node& node, FusionRole& role) {
  const size_t rank = dims_of(graph, node.inputs[0]).size();
  for (size_t index = 1; index < node.inputs.size(); ++index) {
    std::vector<int64_t> dims(rank, 1);
    dims[1] = element_count(dims_of(graph, node.inputs[index]));
    role.input_dims[index] = std::move(dims);
  }
}

std::string place_instance(const Graph& graph, const Node& node, FusionRole& role) {
  place_channels(graph, node, role);
  return place_rows(graph, node, 2, -1, role);
}

// A group of several, but not all, channels needs an axis for the groups, and one for the channels
// of a group. The parameters are those of groups (version 18) or of channels.
void place_groups_of_channels(const Graph& graph, const Node& node, int64_t groups,
                              FusionRole& role) {
  std::vector<int64_t> dims = dims_of(graph, node.inputs[0]);
  const int64_t channels = dims[1] / groups;
  dims[1] = groups;
  dims.insert(dims.begin() + 2, channels);
  for (size_t index = 1; index < node.inputs.size(); ++index) {
    std::vector<int64_t> parameter(dims.size(), 1);
    parameter[1] = groups;
    if (element_count(dims_of(graph, node.inputs[index])) != groups) parameter[2] = channels;
    role.input_dims[index] = std::move(parameter);
  }
  role.reduced_axes.assign(dims.size(), true);
  std::fill_n(role.reduced_axes.begin(), 2, false);
  role.input_dims[0] = dims;
  role.space_dims = std::move(dims);
}

std::string place_group(const Graph& graph, const Node& node, FusionRole& role) {
  const int64_t groups = node.attributes.get_int("num_groups");
  const int64_t channels = dims_of(graph, node.inputs[0])[1];
  if (groups != 1 && groups != channels) {
    if (groups < 1 || channels % groups != 0) return "has groups that do not divide its channels";
    place_groups_of_channels(graph, node, groups, role);
    return "";
  }
  place_channels(graph, node, role);
  return place_rows(graph, node, groups == 1 ? 1 : 2, -1, role);
}

// --- Given statistics ----------------------------------------------------------------------------

bool is_training(const Node& node) {
  if (const int64_t* mode = node.attributes.find_int("training_mode")) return *mode != 0;
  if (const int64_t* is_test = node.attributes.find_int("is_test")) return *is_test == 0;
  return std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                     [](ValueId output) { return !output.is_none(); });
}

std::string place_batch(const Graph& graph, const Node& node, FusionRole& role) {
  if (is_training(node)) return "computes the statistics of the batch";
  const std::vector<int64_t> dims = dims_of(graph, node.inputs[0]);
  place_first(graph, node, role);
  for (size_t index = 1; index < node.inputs.size(); ++index) {
    const DataType type = graph[node.inputs[index]].type.element;
    if (type == DataType::Float64 && graph[node.inputs[0]].type.element != type) {
      return "has statistics of float64 for elements of another type";
    }
    // Channels, or (spatial = 0) channels and all further axes; a vector is one channel.
    std::vector<int64_t> parameter = dims_of(graph, node.inputs[index]);
    if (dims.size() > 1) {
      parameter.insert(parameter.begin(), 1);
      parameter.resize(dims.size(), 1);
    }
    role.input_dims[index] = std::move(parameter);
  }
  return "";
}

Id lower_batch(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const DataType type = builder.type(x);
  const auto parameter = [&](size_t index) {
    return builder.convert(lowering.number(index), type);
  };
  const Id variance = builder.add(parameter(4), epsilon_of(lowering, type));
  const Id factor = builder.divide(parameter(1), builder.square_root(variance));
  const Id centred = builder.subtract(x, parameter(3));
  return builder.fused_multiply_add(centred, factor, parameter(2));
}

// --- The table -----------------------------------------------------------------------------------

constexpr FusionRow normalization_op(std::string_view name, Id (*lower)(const Lowering&),
                                     std::string (*place)(const Graph&, const Node&, FusionRole&),
                                     ErrorBound float32, ErrorBound float64) {
  return {name, FusionKind::Normalization, ops::kFloatTypes, lower, place, float32, float64};
}

constexpr FusionRow since(int version, FusionRow row) {
  row.since = version;
  return row;
}

constexpr FusionRow until(int version, FusionRow row) {
  row.until = version;
  return row;
}

// Differences from the maximum are rounded to float32, whose error exp multiplies by the
// difference.
constexpr ErrorBound kSoftmaxBound = {5, 0x1p-5};
constexpr ErrorBound kLogSoftmaxBound = {3, 1};
// The error of the mean counts for elements near it, and the shift may cancel the rest.
constexpr ErrorBound kMomentsBound = {6, 4};

constexpr FusionRow kNormalizationRows[] = {
    {.op = "BatchNormalization",
     .kind = FusionKind::Elementwise,
     .types = ops::kFloatTypes,
     .lower = lower_batch,
     .place = place_batch,
     .float32 = kMomentsBound,
     .float64 = kMomentsBound},
    normalization_op("GroupNormalization", lower_moments, place_group, kMomentsBound,
                     kMomentsBound),
    normalization_op("InstanceNormalization", lower_moments, place_instance, kMomentsBound,
                     kMomentsBound),
    normalization_op("LayerNormalization", lower_moments, place_layer, kMomentsBound,
                     kMomentsBound),
    until(12, normalization_op("LogSoftmax", lower_log_softmax, place_flattened_softmax,
                               kLogSoftmaxBound, kLogSoftmaxBound)),
    since(13, normalization_op("LogSoftmax", lower_log_softmax, place_softmax, kLogSoftmaxBound,
                               kLogSoftmaxBound)),
    until(12, normalization_op("Softmax", lower_softmax, place_flattened_softmax, kSoftmaxBound,
                               kSoftmaxBound)),
    since(13,
          normalization_op("Softmax", lower_softmax, place_softmax, kSoftmaxBound, kSoftmaxBound)),
};

}  // namespace

std::span<const FusionRow> normalization_rows() { return kNormalizationRows; }

}  // namespace tessera::codegen
