// Finds a convolution of each channel alone between convolutions of one tap, and offers them as one
// kernel.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/activation_search.h"
#include "base/families.h"
#include "convolution/convolution_group.h"
#include "convolution/depthwise.h"
#include "convolution/depthwise_strips.h"
#include "layout/feature_map.h"
#include "matmul/packed_product.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Candidate;
using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

// Smaller values stay in the cache between two kernels anyway.
constexpr int64_t kMinSavedBytes = 512 * 1024;

// Strips of one row that are larger would not stay in the cache either.
constexpr int64_t kMaxStripBytes = 1024 * 1024;

// The nodes that a kernel computes, and their values.
struct StripsGroup {
  std::vector<int32_t> nodes;  // ascending
  Node depthwise;
  std::optional<Node> expand;
  std::optional<Node> project;
  int32_t input = -1;   // value
  int32_t addend = -1;  // value; -1: none
  int32_t result = -1;  // value
  Activation expand_activation;
  Activation depthwise_activation;
  Activation project_activation;
};

// The activation that follows a convolution, and its nodes.
struct Tail {
  std::vector<int32_t> nodes;
  Value result;
  Activation activation;
};

// Finds the groups around each depthwise convolution: with both neighbours, and with each of them.
class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph) {}

  std::vector<StripsGroup> run() {
    std::vector<Node> pointwise;
    std::vector<Node> depthwise;
    for (const Node& node : graph_.nodes()) {
      if (!is_convolution(node)) continue;
      const ConvolutionShape shape = shape_of(node);
      if (is_pointwise(shape)) pointwise.push_back(node);
      if (is_depthwise(shape)) depthwise.push_back(node);
    }
    if (depthwise.empty()) return {};
    activations_ = find_activations(graph_);
    for (const Node& node : pointwise) {
      const Tail tail = tail_of(node.output(0));
      const std::optional<Node> reader = plugin::only_reader(graph_, tail.result);
      if (reader && reader->input(0).id() == tail.result.id()) {
        expands_.insert({reader->id(), {node, tail}});
      }
    }
    for (const Node& node : depthwise) add_groups(node);
    return std::move(groups_);
  }

 private:
  static bool is_convolution(const Node& node) {
    if (node.op() != "Conv" || !node.domain().empty()) return false;
    try {
      return node.input(0).type().dims.size() == 4 && shape_of(node).images > 0;
    } catch (const Failure&) {
      return false;
    }
  }

  static bool is_pointwise(const ConvolutionShape& shape) {
    const auto is_plain = [](const plugin::WindowAxis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.input == axis.output;
    };
    return shape.groups == 1 && is_plain(shape.rows) && is_plain(shape.columns);
  }

  static bool is_depthwise(const ConvolutionShape& shape) {
    return shape.groups == shape.in_channels && shape.groups == shape.out_channels &&
           shape.groups > 1 &&
           find_depthwise_row({.rows = shape.rows, .columns = shape.columns}) != nullptr;
  }

  Tail tail_of(const Value& value) const {
    const auto found = activations_.find(value.id());
    if (found != activations_.end()) {
      const FoundActivation& activation = found->second;
      return {activation.nodes, graph_.value(activation.result), activation.activation};
    }
    const std::optional<Node> reader = plugin::only_reader(graph_, value);
    const bool is_known = reader && reader->input(0).id() == value.id() &&
                          (reader->op() == "Relu" || reader->op() == "HardSwish" ||
                           (reader->op() == "Clip" && has_constant_bounds(*reader)));
    if (!is_known) return {{}, value, {}};
    return {{reader->id()}, reader->output(0), *activation_of(*reader)};
  }

  static bool has_constant_bounds(const Node& clip) {
    const plugin::ClipBounds bounds = plugin::clip_bounds(clip);
    return bounds.min && bounds.max;
  }

  void add_groups(const Node& depthwise) {
    const Tail tail = tail_of(depthwise.output(0));
    // The loops know no other function of x.
    if (tail.activation.kind > ActivationKind::HardSwish) return;
    StripsGroup group = {.nodes = tail.nodes,
                         .depthwise = depthwise,
                         .input = depthwise.input(0).id(),
                         .result = tail.result.id(),
                         .depthwise_activation = tail.activation};
    group.nodes.push_back(depthwise.id());
    const std::optional<StripsGroup> projected = with_projection(group, tail.result);
    if (projected) add(*projected);
    const auto expand = expands_.find(depthwise.id());
    if (expand == expands_.end()) return;
    add(with_expansion(group, expand->second));
    if (projected) add(with_expansion(*projected, expand->second));
  }

  std::optional<StripsGroup> with_projection(StripsGroup group, const Value& value) const {
    const std::optional<Node> project = plugin::only_reader(graph_, value);
    if (!project || !is_convolution(*project) || project->input(0).id() != value.id() ||
        !is_pointwise(shape_of(*project))) {
      return std::nullopt;
    }
    group.nodes.push_back(project->id());
    group.project = project;
    Value result = project->output(0);
    const std::optional<Node> sum = plugin::only_reader(graph_, result);
    if (sum && sum->op() == "Add") {
      const Value other = sum->input(sum->input(0).id() == result.id() ? 1 : 0);
      if (!other.is_constant() && other.type() == result.type()) {
        group.nodes.push_back(sum->id());
        group.addend = other.id();
        result = sum->output(0);
      }
    }
    const Tail tail = tail_of(result);
    group.nodes.insert(group.nodes.end(), tail.nodes.begin(), tail.nodes.end());
    group.project_activation = tail.activation;
    group.result = tail.result.id();
    return group;
  }

  static StripsGroup with_expansion(StripsGroup group, const std::pair<Node, Tail>& expand) {
    const auto& [node, tail] = expand;
    group.nodes.push_back(node.id());
    group.nodes.insert(group.nodes.end(), tail.nodes.begin(), tail.nodes.end());
    group.expand = node;
    group.expand_activation = tail.activation;
    group.input = node.input(0).id();
    return group;
  }

  void add(StripsGroup group) {
    std::ranges::sort(group.nodes);
    groups_.push_back(std::move(group));
  }

  const Graph& graph_;
  std::map<int32_t, FoundActivation> activations_;
  std::map<int32_t, std::pair<Node, Tail>> expands_;  // by the node that reads the result
  std::vector<StripsGroup> groups_;
};

// --- Offering ------------------------------------------------------------------------------------

size_t add_port(Candidate& candidate, const Value& value, const char* layout,
                std::optional<plugin::Pack> pack = std::nullopt) {
  const auto port = static_cast<size_t>(plugin::input_port(candidate, value, std::move(pack)));
  std::string& known = candidate.inputs[port].layout;
  if (known != TESSERA_LAYOUT_DEFAULT && known != layout) {
    throw Failure(TESSERA_UNSUPPORTED, "needs '" + value.name() + "' in two layouts");
  }
  known = layout;
  return port;
}

std::optional<size_t> add_bias(Candidate& candidate, const Node& node) {
  if (!node.input(2).is_present()) return std::nullopt;
  return add_port(candidate, node.input(2), TESSERA_LAYOUT_DEFAULT);
}

PointwiseStage add_stage(Candidate& candidate, const Node& node, const Activation& activation) {
  const ConvolutionShape shape = shape_of(node);
  const PanelSource source = {.depth = shape.in_channels,
                              .columns = shape.out_channels,
                              .depth_stride = 1,
                              .column_stride = shape.in_channels};
  PointwiseStage stage = {.in_channels = shape.in_channels,
                          .out_channels = shape.out_channels,
                          .activation = activation};
  stage.weights = add_port(candidate, node.input(1), TESSERA_LAYOUT_DEFAULT, panels_pack(source));
  stage.bias = add_bias(candidate, node);
  return stage;
}

// Channels and weights are those of the proposal.
void add_sizes(Candidate& candidate, const Graph& graph, const DepthwiseStrips& strips,
               int64_t threads) {
  candidate.workspace_bytes = strips.workspace_bytes(threads);
  candidate.workspace_for = workspace_for(strips, threads);
  candidate.built_for.emplace();
  for (size_t port = 0; port < candidate.inputs.size(); ++port) {
    const size_t rank = graph.value(candidate.inputs[port].value).type().dims.size();
    const bool is_map = port == 0 || port == strips.addend;
    for (size_t axis = is_map ? 1 : 0; axis < (is_map ? 2 : rank); ++axis) {
      candidate.built_for->push_back({static_cast<int32_t>(port), static_cast<int32_t>(axis)});
    }
  }
}

void offer(ProposeContext& context, const StripsGroup& group) {
  if (!context.is_wanted(group.nodes)) return;
  const Graph& graph = context.graph();
  const char* nhwc = layout_name(ChannelLayout::Nhwc);
  const ConvolutionShape shape = shape_of(group.depthwise);
  DepthwiseStrips strips = {.padding = shape.padding, .channels = shape.in_channels};
  strips.depthwise = {.rows = shape.rows,
                      .columns = shape.columns,
                      .from_pixel = shape.in_channels,
                      .to_pixel = shape.in_channels,
                      .activation = group.depthwise_activation};
  strips.set_sizes(shape.sizes());
  Candidate candidate;
  candidate.nodes = group.nodes;
  candidate.algorithm = "strips";
  add_port(candidate, graph.value(group.input), nhwc);
  if (group.expand) strips.expand = add_stage(candidate, *group.expand, group.expand_activation);
  strips.depthwise_weights = add_port(candidate, group.depthwise.input(1), TESSERA_LAYOUT_DEFAULT,
                                      taps_first_pack(strips.depthwise, shape.in_channels));
  strips.depthwise_bias = add_bias(candidate, group.depthwise);
  if (group.project) {
    strips.project = add_stage(candidate, *group.project, group.project_activation);
  }
  if (group.addend >= 0) strips.addend = add_port(candidate, graph.value(group.addend), nhwc);
  if (strips.saved_bytes() < kMinSavedBytes) return;
  if (strips.workspace_bytes(1) > kMaxStripBytes) return;
  candidate.outputs.push_back({.value = group.result, .layout = nhwc});
  add_sizes(candidate, graph, strips, context.options().threads);
  const auto bytes = static_cast<double>(graph.value(group.input).type().dense_bytes() +
                                         graph.value(group.result).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(strips.flops(), bytes);
  candidate.build = [strips](const plugin::BuildOptions& options) {
    return make_strips_kernel(strips, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_depthwise_strips(ProposeContext& context) {
  for (const StripsGroup& group : Search(context.graph()).run()) {
    try {
      offer(context, group);
    } catch (const Failure& failure) {
      context.refuse(group.depthwise.id(), failure.what());
    }
  }
}

}  // namespace tessera::native
