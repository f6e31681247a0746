// Conv with one tap in nhwc, as a product of pixels by packed weights, fused with a following sum
// and activation.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/window.h"
#include "layout/feature_map.h"
#include "matmul/packed_product.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;
using plugin::WindowAxis;

namespace {

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

// What a kernel computes; ports are indices of inputs.
struct Work {
  PackedProduct product;
  std::optional<size_t> bias;
  std::optional<size_t> addend;
  Activation activation = Activation::None;
  float low = 0;
  float high = 0;
};

class PointwiseKernel : public plugin::Kernel {
 public:
  PointwiseKernel(const Work& work, int64_t threads) : work_(work), threads_(threads) {}

  int64_t workspace_bytes() const override {
    return packed_product_workspace_bytes(work_.product, threads_);
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    PackedOperands operands = {.left = inputs[0].as<const float>(),
                               .right = inputs[1].as<const float>(),
                               .to = outputs[0].as<float>()};
    operands.epilogue = {.bias = work_.bias ? inputs[*work_.bias].as<const float>() : nullptr,
                         .addend = work_.addend ? inputs[*work_.addend].as<const float>() : nullptr,
                         .addend_row_stride = work_.product.columns,
                         .addend_column_stride = 1,
                         .activation = work_.activation,
                         .low = work_.low,
                         .high = work_.high};
    run_packed_product(context, work_.product, threads_, operands, context.workspace());
  }

 private:
  Work work_;
  int64_t threads_;
};

// --- Offering ------------------------------------------------------------------------------------

// The nodes of a convolution and of what is fused with it.
struct Group {
  Node node;
  std::vector<int32_t> nodes;
  int32_t result = -1;  // value
  int32_t addend = -1;  // value
  Activation activation = Activation::None;
  float low = 0;
  float high = 0;
};

void check_types(const Node& node) {
  for (const Value& value : {node.input(0), node.input(1), node.output(0)}) {
    if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
      refuse("takes float32 tensors of known shape only");
    }
    if (value.type().elements() == 0) refuse("the convolution has no elements");
  }
  if (!node.input(1).is_constant()) refuse("packs constant weights only");
}

PackedProduct product_of(const Node& node) {
  check_types(node);
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> weights = node.input(1).type().dims;
  const std::vector<int64_t> output = node.output(0).type().dims;
  if (input.size() != 4 || node.attributes().get_int("group", 1) != 1) {
    refuse("is offered for 2-D convolutions with group = 1 only");
  }
  const Window window =
      window_of(node.attributes(), {weights.begin() + 2, weights.end()}, input, output);
  const WindowAxis& rows = window[1];
  const WindowAxis& columns = window[2];
  for (const WindowAxis& axis : {rows, columns}) {
    const bool is_inside = axis.pad_begin == 0 && (axis.output - 1) * axis.stride < axis.input;
    if (axis.kernel != 1 || !is_inside) refuse("is offered for one tap without padding only");
  }
  PackedProduct product = {.rows = output[0] * output[2] * output[3],
                           .columns = weights[0],
                           .depth = weights[1],
                           .left_row_stride = weights[1]};
  product.is_gathered = rows.stride != 1 || columns.stride != 1;
  product.gathered = {.rows_of_line = columns.output,
                      .lines_of_image = rows.output,
                      .row_stride = columns.stride * product.depth,
                      .line_stride = rows.stride * columns.input * product.depth,
                      .image_stride = rows.input * columns.input * product.depth};
  return product;
}

// Adds an input port, which must be the only one of its value, and returns its index.
size_t add_input(Candidate& candidate, int32_t value, const char* layout) {
  for (const plugin::InputPort& port : candidate.inputs) {
    if (port.value == value) refuse("reads different values only");
  }
  candidate.inputs.push_back({.value = value, .layout = layout});
  return candidate.inputs.size() - 1;
}

void offer(ProposeContext& context, const Group& group) {
  const Node& node = group.node;
  Work work = {.product = product_of(node),
               .activation = group.activation,
               .low = group.low,
               .high = group.high};
  const char* nhwc = layout_name(ChannelLayout::Nhwc);
  Candidate candidate;
  candidate.nodes = group.nodes;
  candidate.algorithm = "packed";
  add_input(candidate, node.input(0).id(), nhwc);
  const size_t weights = add_input(candidate, node.input(1).id(), TESSERA_LAYOUT_DEFAULT);
  candidate.inputs[weights].pack = panels_pack({.depth = work.product.depth,
                                                .columns = work.product.columns,
                                                .depth_stride = 1,
                                                .column_stride = work.product.depth});
  if (node.input(2).is_present()) {
    work.bias = add_input(candidate, node.input(2).id(), TESSERA_LAYOUT_DEFAULT);
  }
  candidate.outputs.push_back({.value = group.result, .layout = nhwc});
  if (group.addend >= 0) {
    work.addend = add_input(candidate, group.addend, nhwc);
    candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    candidate.outputs[0].in_place_input = static_cast<int32_t>(*work.addend);
  }
  candidate.workspace_bytes =
      packed_product_workspace_bytes(work.product, context.options().threads);
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.input(1).type().dense_bytes() +
                          node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(work.product.flops(), bytes);
  candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<PointwiseKernel>(work, options.threads);
  };
  context.add(std::move(candidate));
}

// Reads the activation from the last node of a match. Throws Failure if it is not supported.
void set_activation(const Node& last, Group& group) {
  if (last.op() == "Relu") {
    group.activation = Activation::Relu;
  } else if (last.op() == "HardSwish") {
    group.activation = Activation::HardSwish;
  } else if (last.op() == "Mul") {
    group.activation = Activation::Silu;
  } else if (last.op() == "Clip") {
    const plugin::ClipBounds bounds = plugin::clip_bounds(last);
    if (!bounds.min || !bounds.max) refuse("clips to constant bounds only");
    group.activation = Activation::Clip;
    group.low = static_cast<float>(*bounds.min);
    group.high = static_cast<float>(*bounds.max);
  }
}

void offer_matches(ProposeContext& context, const char* pattern) {
  for (const auto& match : context.graph().match(pattern)) {
    Group group = {.node = context.graph().node(match[0]), .nodes = match};
    std::sort(group.nodes.begin(), group.nodes.end());
    const Node last = context.graph().node(match.back());
    group.result = last.output(0).id();
    try {
      const Node second = context.graph().node(match[1]);
      if (second.op() == "Add") {
        const int32_t sum = group.node.output(0).id();
        const Value other = second.input(second.input(0).id() == sum ? 1 : 0);
        if (other.id() == sum || other.is_constant() ||
            other.type() != group.node.output(0).type()) {
          continue;
        }
        group.addend = other.id();
      }
      set_activation(last, group);
      offer(context, group);
    } catch (const Failure& failure) {
      context.refuse(match[0], failure.what());
    }
  }
}

}  // namespace

void propose_pointwise_convolutions(ProposeContext& context) {
  for (const char* pattern : {"c = Conv; s = Add(c, _); Relu(s)", "c = Conv; Add(c, _)",
                              "c = Conv; Relu(c)", "c = Conv; s = Sigmoid(c); Mul(c, s)",
                              "c = Conv; HardSwish(c)", "c = Conv; Clip(c, ...)"}) {
    offer_matches(context, pattern);
  }
  context.for_each({"Conv"}, [&](const Node& node) {
    offer(context, {.node = node, .nodes = {node.id()}, .result = node.output(0).id()});
  });
}

}  // namespace tessera::native
