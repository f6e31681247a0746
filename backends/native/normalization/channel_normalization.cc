// Normalization of channels: BatchNormalization with given statistics in every layout, fused with a
// following Relu; InstanceNormalization and GroupNormalization with their own statistics; LRN.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/divide_up.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "copy/staging.h"
#include "layout/feature_map.h"
#include "normalization/normalization_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// The minimum number of contiguous elements for which parameters are stored one by one.
constexpr int64_t kMinPeriod = 64;

void allow_in_place(Candidate& candidate) {
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
}

// A candidate and the port of each input of the node; two inputs that are one value have one port.
struct Ports {
  explicit Ports(const Node& node) : candidate(plugin::candidate_for(node)) {
    candidate.outputs.resize(1);
    for (size_t index = 0; index < node.input_count(); ++index) {
      for (size_t port = 0; port < candidate.inputs.size(); ++port) {
        if (candidate.inputs[port].value == node.input(index).id()) input_ports.push_back(port);
      }
    }
  }

  Candidate candidate;
  std::vector<size_t> input_ports;  // of each input of the node
};

// --- BatchNormalization --------------------------------------------------------------------------

// Since version 14 an attribute says so, before that the number of outputs, in version 6 is_test.
bool is_training(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  if (attributes.has("training_mode")) return attributes.get_int("training_mode") != 0;
  if (attributes.has("is_test")) return attributes.get_int("is_test") == 0;
  return false;
}

// The number of channels is a constant in the kernel, the other sizes are those of each run.
struct BatchProblem {
  std::optional<ChannelLayout> layout;  // nullopt: row-major
  double epsilon = 0;
  bool has_relu = false;
  std::vector<size_t> input_ports;  // of each input of the node

  FeatureMap map_of(std::span<const int64_t> dims) const {
    if (layout) return feature_map_of(*layout, dims);
    const FeatureMap map = row_major_feature_map(dims);
    // The channels of a single pixel are contiguous.
    if (map.pixels == 1) {
      return {.images = 1, .pixels = dims[0], .lanes = dims[1], .channels = dims[1]};
    }
    return map;
  }
};

// The number of pixels for which parameters are stored, if there are so many.
int64_t max_repeats_of(const FeatureMap& map) {
  return map.lanes == 1 ? 1 : divide_up(kMinPeriod, map.lanes);
}

class BatchKernel : public plugin::Kernel {
 public:
  BatchKernel(BatchProblem problem, int64_t workspace_bytes)
      : problem_(std::move(problem)),
        workspace_bytes_(workspace_bytes),
        loops_(find_normalization_loops()) {}

  // For any number of pixels.
  static int64_t workspace_for(const FeatureMap& map) {
    return 3 * map.blocks * map.lanes * max_repeats_of(map) * static_cast<int64_t>(sizeof(float));
  }
  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const FeatureMap map = problem_.map_of(inputs[0].sizes());
    const int64_t repeats = std::min(max_repeats_of(map), map.pixels);
    const int64_t period = map.lanes * repeats;
    const int64_t floats = map.blocks * period;
    float* means = static_cast<float*>(context.workspace());
    float* factors = means + floats;
    float* shifts = factors + floats;
    prepare(inputs, map, repeats, means, factors, shifts);
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    const int64_t block = map.pixels * map.lanes;
    // Pieces of a block, each of whole periods, small enough for staging.
    const int64_t piece = std::max<int64_t>(1, StagedWriter::kFloats / period) * period;
    const StagedWriter writer(map.images * map.blocks * block, to == from);
    const int64_t pieces = (block + piece - 1) / piece;
    const int64_t grain = kGrain / std::min(piece, block) + 1;
    const int64_t count = map.images * map.blocks * pieces;
    context.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t which = index / pieces % map.blocks;
        const int64_t first = index % pieces * piece;
        const int64_t start = index / pieces * block + first;
        const int64_t length = std::min(piece, block - first);
        writer.write(to + start, 0, 1, length, [&](int64_t, int64_t, float* target) {
          if (map.lanes == 1) {
            loops_.affine(from + start, target, length,
                          {means[which], factors[which], shifts[which], problem_.has_relu});
          } else {
            loops_.periodic(from + start, target, length,
                            {means + which * period, factors + which * period,
                             shifts + which * period, period, problem_.has_relu});
          }
        });
      }
      writer.finish();
    });
  }

 private:
  // The parameters of each lane, repeated for the pixels of a period. Padding stays zero.
  void prepare(std::span<const Buffer> inputs, const FeatureMap& map, int64_t repeats, float* means,
               float* factors, float* shifts) const {
    const auto given = [&](size_t index) {
      return inputs[problem_.input_ports[index]].as<const float>();
    };
    const int64_t period = map.lanes * repeats;
    for (int64_t lane = 0; lane < map.blocks * map.lanes; ++lane) {
      Affine one = {0, 0, 0, false};
      if (lane < map.channels) {
        const double deviation = std::sqrt(double{given(4)[lane]} + problem_.epsilon);
        one = {given(3)[lane], static_cast<float>(given(1)[lane] / deviation), given(2)[lane],
               false};
      }
      int64_t position = lane / map.lanes * period + lane % map.lanes;
      for (int64_t repeat = 0; repeat < repeats; ++repeat, position += map.lanes) {
        means[position] = one.mean;
        factors[position] = one.factor;
        shifts[position] = one.shift;
      }
    }
  }

  BatchProblem problem_;
  int64_t workspace_bytes_;
  NormalizationLoops loops_;
};

void check_batch_normalization(const Node& node) {
  if (is_training(node)) refuse("normalises by given statistics only");
  for (size_t index = 1; index < node.output_count(); ++index) {
    if (node.output(index).is_present()) refuse("computes no batch statistics (training mode)");
  }
  if (node.attributes().get_int("spatial", 1) == 0) {
    refuse("has one mean and variance for each channel only");
  }
  for (size_t index = 0; index < 5; ++index) check_usable(node.input(index));
  if (node.input(0).type().rank < 2) refuse("needs batch and channels");
}

void add_batch_normalization(ProposeContext& context, const Node& node,
                             std::optional<ChannelLayout> layout, const Node* relu) {
  Ports ports(node);
  Candidate& candidate = ports.candidate;
  if (layout) candidate.inputs[0].layout = candidate.outputs[0].layout = layout_name(*layout);
  if (relu != nullptr) {
    candidate.nodes.push_back(relu->id());
    std::sort(candidate.nodes.begin(), candidate.nodes.end());
    candidate.outputs[0].value = relu->output(0).id();
  }
  const BatchProblem problem = {.layout = layout,
                                .epsilon = double{node.attributes().get_float("epsilon", 1e-5F)},
                                .has_relu = relu != nullptr,
                                .input_ports = ports.input_ports};
  const plugin::Type type = node.input(0).type();
  const FeatureMap map = problem.map_of(type.dims);
  candidate.algorithm = map.lanes == 1 ? "channels" : "pixels";
  allow_in_place(candidate);
  candidate.built_for = std::vector{kBuiltForChannels};
  const int64_t workspace_bytes = BatchKernel::workspace_for(map);
  candidate.workspace_bytes = workspace_bytes;
  const auto elements = static_cast<double>(type.elements());
  candidate.optimistic_seconds =
      context.optimistic_seconds(2 * elements, 2 * elements * sizeof(float));
  candidate.build = [problem, workspace_bytes](const plugin::BuildOptions&) {
    return std::make_unique<BatchKernel>(problem, workspace_bytes);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer_batch_normalization(ProposeContext& context, const Node& node, const Node* relu) {
  check_batch_normalization(node);
  const std::vector<int64_t> dims = node.input(0).type().dims;
  if (node.input(0).type().elements() == 0) refuse("there are no elements to normalise");
  for (const ChannelLayout layout : kChannelLayouts) {
    if (!differs_from_row_major(layout, dims)) continue;
    add_batch_normalization(context, node, layout, relu);
  }
  add_batch_normalization(context, node, std::nullopt, relu);
}

// --- InstanceNormalization and GroupNormalization ------------------------------------------------

// The number of channels is a constant in the kernel, the other sizes are those of each run.
struct Groups {
  int64_t groups = 1;    // of an image
  int64_t channels = 1;  // of a group
  bool is_per_channel = true;
  double epsilon = 0;
};

class GroupKernel : public plugin::Kernel {
 public:
  GroupKernel(const Groups& groups, std::vector<size_t> input_ports)
      : groups_(groups), input_ports_(std::move(input_ports)), loops_(find_normalization_loops()) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const FeatureMap map = row_major_feature_map(inputs[0].sizes());
    const float* from = inputs[0].as<const float>();
    const float* scale = inputs[input_ports_[1]].as<const float>();
    const float* shift = inputs[input_ports_[2]].as<const float>();
    float* to = outputs[0].as<float>();
    const int64_t length = map.pixels;  // of a channel
    const int64_t rows = map.images * groups_.groups;
    const int64_t row_length = groups_.channels * length;
    const StagedWriter writer(rows * row_length, to == from);
    context.parallel_for(rows, kGrain / row_length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t group = row % groups_.groups;
        const Moments moments = loops_.moments(from + row * row_length, row_length);
        const double inverse = 1 / std::sqrt(moments.variance + groups_.epsilon);
        for (int64_t channel = 0; channel < groups_.channels; ++channel) {
          const int64_t position =
              groups_.is_per_channel ? group * groups_.channels + channel : group;
          const int64_t start = row * row_length + channel * length;
          const Affine affine = affine_of(moments, scale[position] * inverse, shift[position]);
          writer.write(to + start, 0, length, 1, [&](int64_t first, int64_t last, float* target) {
            loops_.affine(from + start + first, target, last - first, affine);
          });
        }
      }
      writer.finish();
    });
  }

 private:
  Groups groups_;
  std::vector<size_t> input_ports_;
  NormalizationLoops loops_;
};

void offer_groups(ProposeContext& context, const Node& node) {
  constexpr int32_t kFirstPerChannelVersion = 21;
  for (size_t index = 0; index < 3; ++index) check_usable(node.input(index));
  const plugin::Type type = node.input(0).type();
  if (type.elements() == 0) refuse("there are no elements to normalise");
  const int64_t channels = type.dims[1];
  Groups groups;
  const bool is_instance = node.op() == "InstanceNormalization";
  groups.groups = is_instance ? channels : node.attributes().get_int("num_groups", 1);
  groups.is_per_channel = is_instance || node.version() >= kFirstPerChannelVersion;
  groups.channels = channels / groups.groups;
  groups.epsilon = node.attributes().get_float("epsilon", 1e-5F);
  Ports ports(node);
  ports.candidate.algorithm = "rows";
  allow_in_place(ports.candidate);
  ports.candidate.built_for = std::vector{kBuiltForChannels};
  const auto elements = static_cast<double>(type.elements());
  ports.candidate.optimistic_seconds =
      context.optimistic_seconds(4 * elements, 2 * elements * sizeof(float));
  ports.candidate.build = [groups, input_ports = ports.input_ports](const plugin::BuildOptions&) {
    return std::make_unique<GroupKernel>(groups, input_ports);
  };
  accept_any_address(context.graph(), ports.candidate);
  context.add(std::move(ports.candidate));
}

// --- LRN -----------------------------------------------------------------------------------------

// Pixels that are processed at a time, so that their neighbours are in the first-level cache.
constexpr int64_t kTile = 256;

// Without neighbours for which there are no channels.
LocalResponse within(LocalResponse response, int64_t channels) {
  response.before = std::min(channels, response.before);
  response.after = std::min(channels, response.after);
  return response;
}

class LocalResponseKernel : public plugin::Kernel {
 public:
  explicit LocalResponseKernel(const LocalResponse& response)
      : response_(response), loops_(find_normalization_loops()) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const FeatureMap map = row_major_feature_map(inputs[0].sizes());
    const LocalResponse response = within(response_, map.channels);
    const int64_t tiles = (map.pixels + kTile - 1) / kTile;
    const int64_t width = std::min(kTile, map.pixels);
    const int64_t grain = kGrain / (4 * width * map.channels) + 1;
    context.parallel_for(map.images * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t pixel = index % tiles * kTile;
        const int64_t start = index / tiles * map.channels * map.pixels + pixel;
        loops_.local_response(inputs[0].as<const float>() + start, outputs[0].as<float>() + start,
                              0, map.channels, map.channels, map.pixels,
                              std::min(kTile, map.pixels - pixel), response);
      }
    });
  }

 private:
  LocalResponse response_;
  NormalizationLoops loops_;
};

void offer_local_response(ProposeContext& context, const Node& node) {
  check_usable(node.input(0));
  const plugin::Type type = node.input(0).type();
  if (type.elements() == 0) refuse("there are no elements to normalise");
  const plugin::Attributes attributes = node.attributes();
  const int64_t size = attributes.get_int("size", 1);
  const LocalResponse response = {
      .before = (size - 1) / 2,
      .after = size - 1 - (size - 1) / 2,
      .factor = attributes.get_float("alpha", 1e-4F) / static_cast<float>(size),
      .bias = attributes.get_float("bias", 1),
      .exponent = attributes.get_float("beta", 0.75F)};
  Candidate candidate = plugin::candidate_for(node);
  candidate.algorithm = "channels";
  candidate.built_for = std::vector<tessera_built_for>();
  const auto elements = static_cast<double>(type.elements());
  const LocalResponse used = within(response, type.dims[1]);
  candidate.optimistic_seconds =
      context.optimistic_seconds(elements * static_cast<double>(2 * (used.before + used.after) + 8),
                                 2 * elements * sizeof(float));
  candidate.build = [response](const plugin::BuildOptions&) {
    return std::make_unique<LocalResponseKernel>(response);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_channel_normalizations(ProposeContext& context) {
  for (const auto& match : context.graph().match("b = BatchNormalization; Relu(b)")) {
    const Node relu = context.graph().node(match[1]);
    try {
      offer_batch_normalization(context, context.graph().node(match[0]), &relu);
    } catch (const Failure& failure) {
      context.refuse(match[0], failure.what());
    }
  }
  context.for_each({"BatchNormalization"},
                   [&](const Node& node) { offer_batch_normalization(context, node, nullptr); });
  context.for_each({"GroupNormalization", "InstanceNormalization"},
                   [&](const Node& node) { offer_groups(context, node); });
  context.for_each({"LRN"}, [&](const Node& node) { offer_local_response(context, node); });
}

}  // namespace tessera::native
