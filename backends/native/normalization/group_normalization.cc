// InstanceNormalization and GroupNormalization in layouts with contiguous channels, fused with a
// following activation; also GroupNormalization as exporters write it: an InstanceNormalization of
// one long channel for each group, scaled and shifted by channel.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/divide_up.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "layout/feature_map.h"
#include "normalization/group_kernels.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Type;
using plugin::Value;

namespace {

// Pieces of a block of channels for each thread.
constexpr int64_t kPieces = 2;

// A factor and a shift; ports are indices of inputs.
struct Scaling {
  std::optional<size_t> factors;
  std::optional<size_t> shifts;
};

// The computation of some sizes.
struct GroupWork {
  FeatureMap map;
  int64_t groups = 1;  // of an image
  int64_t pieces = 1;  // of a block of channels

  int64_t group_channels() const { return map.channels / groups; }
  // Sums and squares of each piece of an image, then means, factors and shifts of all images.
  int64_t sum_doubles() const { return 2 * map.images * pieces * map.channels; }
  int64_t workspace_bytes() const {
    return sum_doubles() * static_cast<int64_t>(sizeof(double)) +
           3 * map.images * map.channels * static_cast<int64_t>(sizeof(float));
  }
};

// The number of channels is a constant in the kernel, the other sizes are those of each run.
struct GroupProblem {
  ChannelLayout layout = ChannelLayout::Nhwc;
  int64_t groups = 1;  // of an image
  double epsilon = 0;
  Scaling by_group;
  Scaling by_channel;
  Activation activation;
  int64_t wanted_pieces = 1;  // of the whole tensor

  GroupWork work_for(std::span<const int64_t> dims) const {
    GroupWork work = {.map = feature_map_of(layout, dims), .groups = groups};
    work.pieces =
        std::min(divide_up(wanted_pieces, work.map.images * work.map.blocks), work.map.pixels);
    return work;
  }
};

class PixelGroupKernel : public plugin::Kernel {
 public:
  PixelGroupKernel(const GroupProblem& problem, int64_t workspace_bytes)
      : problem_(problem), workspace_bytes_(workspace_bytes), loops_(find_group_loops()) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const GroupWork work = problem_.work_for(inputs[0].sizes());
    const FeatureMap& map = work.map;
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    auto* sums = static_cast<double*>(context.workspace());
    auto* means = reinterpret_cast<float*>(sums + work.sum_doubles());
    for_pieces(
        context, work, [&](int64_t start, int64_t parameter, int64_t piece, const PixelRun& run) {
          const int64_t image = parameter / map.channels;
          double* own =
              sums + 2 * (image * work.pieces + piece) * map.channels + parameter % map.channels;
          std::fill_n(own, run.channels, 0.0);
          std::fill_n(own + map.channels, run.channels, 0.0);
          loops_.add_moments(from + start, run, own, own + map.channels);
        });
    float* factors = means + map.images * map.channels;
    float* shifts = factors + map.images * map.channels;
    for (int64_t image = 0; image < map.images; ++image) {
      for (int64_t group = 0; group < work.groups; ++group) {
        prepare(inputs, work, sums, image, group, means, factors, shifts);
      }
    }
    for_pieces(context, work, [&](int64_t start, int64_t parameter, int64_t, const PixelRun& run) {
      loops_.normalize(from + start, run, means + parameter, factors + parameter,
                       shifts + parameter, problem_.activation, to + start);
    });
  }

 private:
  // Calls body(first element, first channel counted through all images, piece, pixels).
  template <class Body>
  void for_pieces(RunContext& context, const GroupWork& work, const Body& body) const {
    const FeatureMap& map = work.map;
    const int64_t pixels = divide_up(map.pixels, work.pieces);
    const int64_t grain = kGrain / (pixels * map.lanes) + 1;
    context.parallel_for(
        map.images * map.blocks * work.pieces, grain, [&](int64_t begin, int64_t end) {
          for (int64_t index = begin; index < end; ++index) {
            const int64_t piece = index % work.pieces;
            const int64_t block = index / work.pieces;
            const int64_t first = std::min(piece * pixels, map.pixels);
            const PixelRun run = {std::min(pixels, map.pixels - first), map.lanes, map.lanes};
            body((block * map.pixels + first) * map.lanes, block * map.lanes, piece, run);
          }
        });
  }

  // Computes the parameters of the channels of a group.
  void prepare(std::span<const Buffer> inputs, const GroupWork& work, const double* sums,
               int64_t image, int64_t group, float* means, float* factors, float* shifts) const {
    const int64_t channels = work.map.channels;
    const int64_t first = group * work.group_channels();
    double sum = 0;
    double square = 0;
    for (int64_t piece = 0; piece < work.pieces; ++piece) {
      const double* own = sums + 2 * (image * work.pieces + piece) * channels;
      for (int64_t channel = first; channel < first + work.group_channels(); ++channel) {
        sum += own[channel];
        square += own[channels + channel];
      }
    }
    const auto count = static_cast<double>(work.group_channels() * work.map.pixels);
    const double mean = sum / count;
    // A NaN stays one.
    const double variance = square / count - mean * mean;
    const double inverse = 1 / std::sqrt((variance < 0 ? 0 : variance) + problem_.epsilon);
    const auto given = [&](const std::optional<size_t>& port, int64_t index, double otherwise) {
      return port ? double{inputs[*port].as<const float>()[index]} : otherwise;
    };
    const double group_factor = given(problem_.by_group.factors, group, 1);
    const double group_shift = given(problem_.by_group.shifts, group, 0);
    for (int64_t channel = first; channel < first + work.group_channels(); ++channel) {
      const double factor = given(problem_.by_channel.factors, channel, 1);
      const double shift = given(problem_.by_channel.shifts, channel, 0);
      const int64_t position = image * channels + channel;
      means[position] = static_cast<float>(mean);
      factors[position] = static_cast<float>(inverse * group_factor * factor);
      shifts[position] = static_cast<float>(group_shift * factor + shift);
    }
  }

  GroupProblem problem_;
  int64_t workspace_bytes_;
  GroupLoops loops_;
};

// --- Offering ------------------------------------------------------------------------------------

// The nodes of a normalisation, and its parameters by value; -1: none.
struct Form {
  std::vector<int32_t> nodes;
  int32_t input = -1;
  int32_t result = -1;
  int64_t groups = 1;
  double epsilon = 0;
  int32_t group_factors = -1;
  int32_t group_shifts = -1;
  int32_t channel_factors = -1;
  int32_t channel_shifts = -1;
  Activation activation;
  // The lists of Reshapes, which the kernel does not read.
  std::vector<Value> lists;
  // The dimensions of the input for which these nodes are such a normalisation; nullopt: all of
  // them.
  std::optional<std::vector<tessera_built_for>> built_for = std::vector{kBuiltForChannels};
};

void offer_in(ProposeContext& context, const Form& form, ChannelLayout layout) {
  const std::vector<int64_t> dims = context.graph().value(form.input).type().dims;
  if (!differs_from_row_major(layout, dims)) return;
  GroupProblem problem = {
      .layout = layout,
      .groups = form.groups,
      .epsilon = form.epsilon,
      .activation = form.activation,
      .wanted_pieces = kPieces * std::max<int64_t>(context.options().threads, 1)};
  const GroupWork work = problem.work_for(dims);
  if (work.map.is_padded()) return;
  Candidate candidate;
  candidate.nodes = form.nodes;
  std::sort(candidate.nodes.begin(), candidate.nodes.end());
  candidate.algorithm = "pixels";
  candidate.inputs.push_back({.value = form.input, .layout = layout_name(layout)});
  const auto add = [&](int32_t value) -> std::optional<size_t> {
    if (value < 0) return std::nullopt;
    for (size_t port = 0; port < candidate.inputs.size(); ++port) {
      if (candidate.inputs[port].value == value) return port;
    }
    candidate.inputs.push_back({.value = value});
    return candidate.inputs.size() - 1;
  };
  problem.by_group = {add(form.group_factors), add(form.group_shifts)};
  problem.by_channel = {add(form.channel_factors), add(form.channel_shifts)};
  // A list that depends on sizes is no constant, so it must have a port.
  for (const Value& list : form.lists) {
    if (!list.is_constant()) add(list.id());
  }
  candidate.outputs.push_back({.value = form.result,
                               .layout = layout_name(layout),
                               .requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE,
                               .in_place_input = 0});
  candidate.built_for = form.built_for;
  candidate.workspace_bytes = work.workspace_bytes();
  candidate.workspace_for = [problem](std::span<const Buffer> inputs, std::span<const Buffer>) {
    return problem.work_for(inputs[0].sizes()).workspace_bytes();
  };
  const auto elements = static_cast<double>(work.map.elements());
  candidate.optimistic_seconds =
      context.optimistic_seconds(4 * elements, 2 * elements * sizeof(float));
  candidate.build = [problem,
                     workspace_bytes = work.workspace_bytes()](const plugin::BuildOptions&) {
    return std::make_unique<PixelGroupKernel>(problem, workspace_bytes);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer_form(ProposeContext& context, const Form& form) {
  const Value input = context.graph().value(form.input);
  check_usable(input);
  const Type type = input.type();
  if (type.dims.size() < 3 || type.elements() == 0) refuse("needs pixels to normalise");
  if (type.dims[1] % form.groups != 0) refuse("needs groups of equally many channels");
  for (const ChannelLayout layout : {ChannelLayout::Nhwc, ChannelLayout::Nchw16c}) {
    offer_in(context, form, layout);
  }
}

// Reads the activation from the nodes behind the normalisation.
void add_activation(ProposeContext& context, const std::vector<int32_t>& match, size_t first,
                    Form& form) {
  form.nodes.assign(match.begin(), match.end());
  const Node last = context.graph().node(match.back());
  form.result = last.output(0).id();
  if (match.size() == first) return;
  form.activation = {last.op() == "Relu" ? ActivationKind::Relu : ActivationKind::Silu};
}

Form form_of_node(ProposeContext& context, const std::vector<int32_t>& match) {
  constexpr int32_t kFirstPerChannelVersion = 21;
  const Node node = context.graph().node(match[0]);
  Form form = {.input = node.input(0).id(),
               .epsilon = node.attributes().get_float("epsilon", 1e-5F)};
  for (size_t index = 0; index < 3; ++index) check_usable(node.input(index));
  const bool is_instance = node.op() == "InstanceNormalization";
  const std::vector<int64_t> dims = node.input(0).type().dims;
  if (dims.size() < 3) refuse("needs pixels to normalise");
  form.groups = is_instance ? dims[1] : node.attributes().get_int("num_groups", 1);
  const bool is_by_channel = is_instance || node.version() >= kFirstPerChannelVersion;
  (is_by_channel ? form.channel_factors : form.group_factors) = node.input(1).id();
  (is_by_channel ? form.channel_shifts : form.group_shifts) = node.input(2).id();
  add_activation(context, match, 1, form);
  return form;
}

// The operand of `node` beside `value`, which must have one element for each channel.
int32_t by_channel(const Node& node, const Value& value, const Type& type) {
  const Value other = node.input(node.input(0).id() == value.id() ? 1 : 0);
  check_usable(other);
  const std::vector<int64_t> dims = other.type().dims;
  const size_t behind = type.dims.size() - 2;  // axes behind the channels
  const bool has_channels = dims.size() > behind && dims[dims.size() - 1 - behind] == type.dims[1];
  if (!has_channels || other.type().elements() != type.dims[1] || dims.size() > type.dims.size()) {
    refuse("is scaled and shifted by channel only");
  }
  return other.id();
}

// The dimensions of the input for which a Reshape to `shape` gives [images, groups, all others]. If
// only their elements are known, it may give this by chance, for the proposed sizes alone.
std::optional<std::vector<tessera_built_for>> built_for_groups(const Value& shape) {
  const auto sizes = plugin::constant_integers(shape);
  if (!sizes || sizes->size() != 3 || (*sizes)[1] <= 0 || (*sizes)[2] != -1) return std::nullopt;
  // 0: the number of images of the input.
  if ((*sizes)[0] == 0) return std::vector{kBuiltForChannels};
  return std::vector{kBuiltForImages, kBuiltForChannels};
}

// Reshape, InstanceNormalization, Reshape, Mul, Add.
constexpr size_t kWrittenNodes = 5;
constexpr const char* kWritten =
    "r = Reshape(_, ...); n = InstanceNormalization(r, ...); b = Reshape(n, ...); m = Mul(b, _); "
    "a = Add(m, _)";

Form form_as_written(ProposeContext& context, const std::vector<int32_t>& match) {
  const auto node = [&](size_t index) { return context.graph().node(match[index]); };
  Form form = {.input = node(0).input(0).id(),
               .epsilon = node(1).attributes().get_float("epsilon", 1e-5F)};
  check_usable(node(0).input(0));
  const Type type = node(0).input(0).type();
  const Type grouped = node(0).output(0).type();
  if (!grouped.is_known() || type.dims.size() < 3 || grouped.dims.size() != 3 ||
      grouped.dims[0] != type.dims[0] || node(2).output(0).type() != type ||
      node(4).output(0).type() != type || grouped.dims[1] == 0) {
    refuse("normalises groups of channels of each image only");
  }
  form.groups = grouped.dims[1];
  form.built_for = built_for_groups(node(0).input(1));
  form.lists = {node(0).input(1), node(2).input(1)};
  form.group_factors = node(1).input(1).id();
  form.group_shifts = node(1).input(2).id();
  for (const size_t index : {size_t{1}, size_t{2}}) check_usable(node(1).input(index));
  form.channel_factors = by_channel(node(3), node(2).output(0), type);
  form.channel_shifts = by_channel(node(4), node(3).output(0), type);
  add_activation(context, match, kWrittenNodes, form);
  return form;
}

}  // namespace

void propose_group_normalizations(ProposeContext& context) {
  const auto offer_matches = [&](const std::string& pattern, auto form_of) {
    const auto matches = context.graph().match(pattern);
    for (const auto& match : matches) {
      try {
        offer_form(context, form_of(context, match));
      } catch (const Failure& failure) {
        context.refuse(match.back(), failure.what());
      }
    }
    return !matches.empty();
  };
  // A pattern that is not found alone is not searched with activations: it does not occur.
  const auto offer_with_activations = [&](const std::string& pattern, auto form_of) {
    if (!offer_matches(pattern, form_of)) return false;
    offer_matches(pattern + "; Relu(a)", form_of);
    offer_matches(pattern + "; s = Sigmoid(a); Mul(a, s)", form_of);
    return true;
  };
  offer_with_activations("a = GroupNormalization", form_of_node);
  if (offer_with_activations("a = InstanceNormalization", form_of_node)) {
    offer_with_activations(kWritten, form_as_written);
  }
}

}  // namespace tessera::native
