#include "convolution/convolution_group.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/activation_search.h"
#include "base/families.h"
#include "base/refusal.h"
#include "base/window.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

constexpr const char* kPatterns[] = {
    "c = Conv; s = Add(c, _); Relu(s)",    "c = Conv; Add(c, _)",    "c = Conv; Relu(c)",
    "c = Conv; s = Sigmoid(c); Mul(c, s)", "c = Conv; HardSwish(c)", "c = Conv; Clip(c, ...)",
};

// The other operand of a sum if it has the type of the convolution's output; else -1.
int32_t addend_of(const Node& convolution, const Node& sum) {
  const Value output = convolution.output(0);
  const Value other = sum.input(sum.input(0).id() == output.id() ? 1 : 0);
  const bool is_like =
      other.id() != output.id() && !other.is_constant() && other.type() == output.type();
  return is_like ? other.id() : -1;
}

using Offer = void (*)(ProposeContext& context, const ConvolutionGroup& group);
constexpr Offer kOffers[] = {offer_depthwise, offer_depthwise_planes, offer_direct, offer_packed,
                             offer_winograd};

void offer_all(ProposeContext& context, const ConvolutionGroup& group) {
  for (const Offer offer : kOffers) {
    try {
      offer(context, group);
    } catch (const Failure& failure) {
      context.refuse(group.node.id(), failure.what());
    }
  }
}

void offer_match(ProposeContext& context, const std::vector<int32_t>& match) {
  const Node last = context.graph().node(match.back());
  ConvolutionGroup group = {
      .node = context.graph().node(match[0]), .nodes = match, .result = last.output(0).id()};
  std::sort(group.nodes.begin(), group.nodes.end());
  if (!context.is_wanted(group.nodes)) return;
  const Node second = context.graph().node(match[1]);
  if (second.op() == "Add") {
    group.addend = addend_of(group.node, second);
    if (group.addend < 0) return;
  }
  group.activation = activation_of(last).value_or(Activation{});
  offer_all(context, group);
}

}  // namespace

void propose_fused_convolutions(ProposeContext& context) {
  for (const char* pattern : kPatterns) {
    for (const auto& match : context.graph().match(pattern)) {
      try {
        offer_match(context, match);
      } catch (const Failure& failure) {
        context.refuse(match[0], failure.what());
      }
    }
  }
  context.for_each({"Conv"}, [&](const Node& node) {
    offer_all(context, {.node = node, .nodes = {node.id()}, .result = node.output(0).id()});
  });
}

ConvolutionShape shape_of(const Node& node) {
  for (const Value& value : {node.input(0), node.input(1), node.output(0)}) {
    if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
      refuse("takes float32 tensors of known shape only");
    }
    if (value.type().elements() == 0) refuse("the convolution has no elements");
  }
  if (!node.input(1).is_constant()) refuse("packs constant weights only");
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> weights = node.input(1).type().dims;
  const std::vector<int64_t> output = node.output(0).type().dims;
  if (input.size() != 3 && input.size() != 4) refuse("is offered for 1-D and 2-D convolutions");
  const Window window =
      window_of(node.attributes(), {weights.begin() + 2, weights.end()}, input, output);
  return {.images = input[0],
          .in_channels = input[1],
          .out_channels = output[1],
          .groups = node.attributes().get_int("group", 1),
          .rows = window[1],
          .columns = window[2],
          .padding = padding_rule_of(node.attributes())};
}

ConvolutionSizes sizes_of(const plugin::Buffer& input, const plugin::Buffer& output) {
  const bool is_lines = input.rank == 3;
  return {.images = input.dims[0],
          .in_rows = is_lines ? 1 : input.dims[2],
          .in_columns = input.dims[is_lines ? 2 : 3],
          .out_rows = is_lines ? 1 : output.dims[2],
          .out_columns = output.dims[is_lines ? 2 : 3]};
}

GroupCandidate candidate_of(const ConvolutionGroup& group, std::string algorithm,
                            const char* input_layout, const char* output_layout,
                            std::optional<plugin::Pack> pack, Addend addend) {
  GroupCandidate made;
  Candidate& candidate = made.candidate;
  candidate.nodes = group.nodes;
  candidate.algorithm = std::move(algorithm);
  const auto add = [&](int32_t value, const char* layout) {
    for (const plugin::InputPort& port : candidate.inputs) {
      if (port.value == value) refuse("reads different values only");
    }
    candidate.inputs.push_back({.value = value, .layout = layout});
    return candidate.inputs.size() - 1;
  };
  add(group.node.input(0).id(), input_layout);
  const size_t weights = add(group.node.input(1).id(), TESSERA_LAYOUT_DEFAULT);
  candidate.inputs[weights].pack = std::move(pack);
  candidate.built_for.emplace();
  candidate.built_for->push_back({0, 1});
  for (size_t axis = 0; axis < group.node.input(1).type().dims.size(); ++axis) {
    candidate.built_for->push_back({static_cast<int32_t>(weights), static_cast<int32_t>(axis)});
  }
  const Value bias = group.node.input(2);
  if (bias.is_present()) made.bias = add(bias.id(), TESSERA_LAYOUT_DEFAULT);
  candidate.outputs.push_back({.value = group.result, .layout = output_layout});
  if (group.addend < 0) return made;
  made.addend = add(group.addend, output_layout);
  if (addend == Addend::Overwritten) {
    candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    candidate.outputs[0].in_place_input = static_cast<int32_t>(*made.addend);
  }
  return made;
}

}  // namespace tessera::native
