#include "convolution/convolution_group.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/families.h"
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

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

// Reads the activation from the last node of a match.
void set_activation(const Node& last, ConvolutionGroup& group) {
  if (last.op() == "Relu") {
    group.activation = {ActivationKind::Relu};
  } else if (last.op() == "HardSwish") {
    group.activation = {ActivationKind::HardSwish};
  } else if (last.op() == "Mul") {
    group.activation = {ActivationKind::Silu};
  } else if (last.op() == "Clip") {
    const plugin::ClipBounds bounds = plugin::clip_bounds(last);
    if (!bounds.min || !bounds.max) refuse("clips to constant bounds only");
    group.activation = {ActivationKind::Clip, static_cast<float>(*bounds.min),
                        static_cast<float>(*bounds.max)};
  }
}

// The other operand of a sum if it has the type of the convolution's output; else -1.
int32_t addend_of(const Node& convolution, const Node& sum) {
  const Value output = convolution.output(0);
  const Value other = sum.input(sum.input(0).id() == output.id() ? 1 : 0);
  const bool is_like =
      other.id() != output.id() && !other.is_constant() && other.type() == output.type();
  return is_like ? other.id() : -1;
}

using Offer = void (*)(ProposeContext& context, const ConvolutionGroup& group);
constexpr Offer kOffers[] = {offer_depthwise, offer_direct, offer_packed, offer_winograd};

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
  set_activation(last, group);
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

size_t add_input(Candidate& candidate, int32_t value, const char* layout) {
  for (const plugin::InputPort& port : candidate.inputs) {
    if (port.value == value) refuse("reads different values only");
  }
  candidate.inputs.push_back({.value = value, .layout = layout});
  return candidate.inputs.size() - 1;
}

size_t add_addend(Candidate& candidate, const ConvolutionGroup& group, const char* layout) {
  const size_t port = add_input(candidate, group.addend, layout);
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = static_cast<int32_t>(port);
  return port;
}

void check_convolution_types(const Node& node) {
  for (const Value& value : {node.input(0), node.input(1), node.output(0)}) {
    if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
      refuse("takes float32 tensors of known shape only");
    }
    if (value.type().elements() == 0) refuse("the convolution has no elements");
  }
  if (!node.input(1).is_constant()) refuse("packs constant weights only");
}

}  // namespace tessera::native
