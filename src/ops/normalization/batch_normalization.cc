// BatchNormalization: normalises each channel by given statistics or, in training mode, by those of
// the batch. Training mode is set by is_test (version 6), the number of outputs (7 and 9), or
// training_mode (since 14).
#include <algorithm>
#include <cmath>

#include "ops/check_shape.h"
#include "ops/normalization/normalize.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr int kFirstTrainingModeVersion = 14;

bool is_training(const Node& node) {
  if (const int64_t* mode = node.attributes.find_int("training_mode")) return *mode != 0;
  if (const int64_t* is_test = node.attributes.find_int("is_test")) return *is_test == 0;
  return std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                     [](ValueId output) { return !output.is_none(); });
}

// Up to version 7, every element of a feature map can have statistics of its own (spatial = 0).
bool is_per_element(const Node& node) {
  const int64_t* spatial = node.attributes.find_int("spatial");
  return spatial != nullptr && *spatial == 0;
}

// The shape of scale, shift and statistics: the channels, and also the other axes if each element
// has its own. A vector is one batch of a single channel.
Shape parameter_shape(const InferContext& context, const Shape& input) {
  if (input.size() < 2) return {1};
  const auto end = is_per_element(context.node()) ? input.end() : input.begin() + 2;
  return {input.begin() + 1, end};
}

void infer_batch_normalization(InferContext& context) {
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(0), context.input(0).type.shape);
  std::optional<Shape> parameters;
  if (input != nullptr) {
    if (input->empty()) context.fail_input(0, "expected a batch, found a scalar");
    parameters = parameter_shape(context, *input);
    for (size_t index = 1; index < 5; ++index) check_shape(context, index, *parameters);
  }
  // Outputs mean, var, saved_mean, saved_var; since version 14, running_mean and running_var.
  for (size_t index = 1; index < 5; ++index) {
    context.set_output(index, context.element(index % 2 == 1 ? 3 : 4), parameters);
  }
}

// The input as [batch, channels, length]; each channel has one mean and one variance.
struct Channels {
  int64_t batch = 1;
  int64_t channels = 1;
  int64_t length = 1;
};

Channels channels_of(const Node& node, std::span<const int64_t> dims) {
  Channels result;
  result.batch = dims[0];
  if (dims.size() < 2) return result;
  result.channels = dims[1];
  (is_per_element(node) ? result.channels : result.length) *= element_count(dims.subspan(2));
  return result;
}

struct Statistics {
  std::pmr::vector<double> means;
  std::pmr::vector<double> variances;
};

template <class T>
Statistics batch_statistics(const KernelCall& call, const Channels& shape) {
  const T* source = call.inputs[0].as<T>().data();
  const auto count = static_cast<size_t>(shape.channels);
  Statistics result = {std::pmr::vector<double>(count, &call.scratch),
                       std::pmr::vector<double>(count, &call.scratch)};
  call.pool.parallel_for(shape.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      const auto visit_all = [&](const auto& visit) {
        for (int64_t picture = 0; picture < shape.batch; ++picture) {
          const T* row = source + (picture * shape.channels + channel) * shape.length;
          for (int64_t index = 0; index < shape.length; ++index) visit(to_double(row[index]));
        }
      };
      const Moments moments = moments_of(visit_all, shape.batch * shape.length);
      result.means[static_cast<size_t>(channel)] = moments.mean;
      result.variances[static_cast<size_t>(channel)] = moments.variance;
    }
  });
  return result;
}

template <class T>
void normalize(const KernelCall& call, const Channels& shape, const Statistics& statistics) {
  const std::pmr::vector<double> scale = to_doubles(call.inputs[1], call.scratch);
  const std::pmr::vector<double> shift = to_doubles(call.inputs[2], call.scratch);
  const double epsilon = call.node.attributes.get_float("epsilon");
  const T* source = call.inputs[0].as<T>().data();
  T* target = call.outputs[0].as<T>().data();
  const int64_t grain = 4096 / shape.length + 1;
  call.pool.parallel_for(shape.batch * shape.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto channel = static_cast<size_t>(row % shape.channels);
      const double mean = statistics.means[channel];
      const double factor = scale[channel] / std::sqrt(statistics.variances[channel] + epsilon);
      for (int64_t index = row * shape.length; index < (row + 1) * shape.length; ++index) {
        target[index] = from_double<T>((to_double(source[index]) - mean) * factor + shift[channel]);
      }
    }
  });
}

// Sets `given` to given * momentum + found * (1 - momentum).
void update(std::span<double> given, std::span<const double> found, double momentum) {
  for (size_t index = 0; index < given.size(); ++index) {
    given[index] = given[index] * momentum + found[index] * (1 - momentum);
  }
}

void run_batch_normalization(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const Channels shape = channels_of(call.node, input.dims);
  Statistics given = {to_doubles(call.inputs[3], call.scratch),
                      to_doubles(call.inputs[4], call.scratch)};
  const auto store = [&](size_t index, const Statistics& statistics) {
    if (call.has_output(index)) store_doubles(statistics.means, call.outputs[index]);
    if (call.has_output(index + 1)) store_doubles(statistics.variances, call.outputs[index + 1]);
  };
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (!is_training(call.node)) {
      if (input.elements > 0) normalize<T>(call, shape, given);
      store(1, given);
      store(3, given);
      return;
    }
    const Statistics found = batch_statistics<T>(call, shape);
    if (input.elements > 0) normalize<T>(call, shape, found);
    const double momentum = call.node.attributes.get_float("momentum");
    update(given.means, found.means, momentum);
    update(given.variances, found.variances, momentum);
    store(1, given);
    store(3, found);
  });
}

}  // namespace

std::vector<Op> batch_normalization_ops() {
  constexpr int kNew = kFirstTrainingModeVersion;
  constexpr Arity kOptional = Arity::Optional;
  return {{.name = "BatchNormalization",
           .versions = {6, 7, 9, 14, 15},
           .inputs = {{"X", "T"},
                      {"scale", "T", Arity::Required, 1, 14},
                      {"B", "T", Arity::Required, 1, 14},
                      {"scale", "T1", Arity::Required, 15},
                      {"B", "T1", Arity::Required, 15},
                      {"mean", "T", Arity::Required, 1, kNew - 1},
                      {"var", "T", Arity::Required, 1, kNew - 1},
                      {"input_mean", "T2", Arity::Required, kNew},
                      {"input_var", "T2", Arity::Required, kNew}},
           .outputs = {{"Y", "T"},
                       {"mean", "T", kOptional, 1, kNew - 1},
                       {"var", "T", kOptional, 1, kNew - 1},
                       {"saved_mean", "T", kOptional, 1, kNew - 1},
                       {"saved_var", "T", kOptional, 1, kNew - 1},
                       {"running_mean", "T2", kOptional, kNew},
                       {"running_var", "T2", kOptional, kNew}},
           .type_variables = {{"T", kFloatTypes}, {"T1", kFloatTypes}, {"T2", kFloatTypes}},
           .attributes = {{"epsilon", AttributeKind::Float, 1e-5F},
                          {"is_test", AttributeKind::Int, int64_t{0}, 1, 6},
                          {"momentum", AttributeKind::Float, 0.9F},
                          {"spatial", AttributeKind::Int, int64_t{1}, 1, 8},
                          {"training_mode", AttributeKind::Int, int64_t{0}, kNew}},
           .infer = infer_batch_normalization,
           .flops = normalization_flops,
           .kernel = run_batch_normalization}};
}

}  // namespace tessera::ops
