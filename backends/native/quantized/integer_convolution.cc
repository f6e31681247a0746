// Convolutions of bytes: ConvInteger and QLinearConv, as products of the patches that the outputs
// read by packed weights; a convolution of each channel alone is in integer_depthwise.cc.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/refusal.h"
#include "layout/feature_map.h"
#include "quantized/integer_convolution.h"
#include "quantized/integer_left.h"
#include "quantized/integer_offer.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;

namespace {

// Inputs with fewer channels are read as they are, because converting them takes as long as the
// convolution.
constexpr int64_t kMaxRowMajorChannels = 4;

// The order of roles is that of IntegerRole.
constexpr IntegerRoles kConvInteger = {{0, 1, -1, 2, -1, 3, -1, -1, -1, -1}};
constexpr IntegerRoles kQLinearConv = {{0, 3, 1, 2, 4, 5, 8, -1, 6, 7}};

SizedProduct sized_convolution(const ByteConvolution& shape, const IntegerWork& work) {
  const int64_t pixels = shape.rows.input * shape.columns.input;
  const int64_t group_inputs = shape.in_channels / shape.groups;
  const int64_t group_outputs = shape.out_channels / shape.groups;
  SizedProduct sized;
  IntegerProduct& product = sized.product;
  product.count = shape.groups;
  product.rows = shape.images * shape.rows.output * shape.columns.output;
  product.columns = group_outputs;
  product.patches = {.rows = shape.rows,
                     .columns = shape.columns,
                     .channels = group_inputs,
                     .channel_stride = shape.is_row_major ? pixels : 1,
                     .pixel_stride = shape.is_row_major ? 1 : shape.in_channels,
                     .image_stride = pixels * shape.in_channels,
                     .pixel_channels = shape.in_channels};
  product.depth = product.patches.length();
  product.has_patches = shape.is_row_major || !product.patches.is_plain();
  product.left_row_stride = shape.in_channels;
  product.left_stride = group_inputs * product.patches.channel_stride;
  product.right_stride = 1;
  product.to_stride = group_outputs;
  product.to_row_stride = shape.out_channels;
  const int64_t taps = shape.rows.kernel * shape.columns.kernel;
  sized.right = {.count = shape.groups,
                 .depth = product.depth,
                 .columns = group_outputs,
                 .depth_stride = taps,
                 .column_stride = product.depth,
                 .parts = taps,
                 .runs = LeftAccess(product, work.loops, work.is_left_signed).runs(),
                 .matrix_stride = group_outputs * product.depth,
                 .is_signed = shape.is_right_signed};
  return sized;
}

void offer_patches(ProposeContext& context, IntegerOffer offer, ByteConvolution shape,
                   const char* left_layout, const char* result_layout) {
  IntegerWork& work = offer.work;
  work.is_packed = true;
  work.has_columns_by_matrix = true;
  work.loops = find_integer_loops(has_small_weights(offer.input(kRight)));
  const SizedProduct sized = sized_convolution(shape, work);
  check_depth(offer, sized.product.depth);
  Candidate candidate = integer_candidate(offer, "bytes_packed", left_layout, result_layout,
                                          right_pack(sized.right, work.loops));
  const int32_t channels = shape.is_channels_last ? offer.input(kLeft).type().rank - 1 : 1;
  candidate.built_for->push_back({work.ports.at[kLeft], channels});
  work.sized = [shape, sizes = work](std::span<const Buffer> inputs,
                                     std::span<const Buffer> outputs) {
    const std::span<const int64_t> left = inputs[sizes.ports.of(kLeft)].sizes();
    return sized_convolution(shape.resized(left, outputs[0].sizes()), sizes);
  };
  add_integer_candidate(context, std::move(candidate), offer, sized);
}

void offer_node(ProposeContext& context, const Node& node, const IntegerRoles& inputs) {
  offer_integer_convolution(context, offer_of_node(node, inputs));
}

}  // namespace

void ByteConvolution::set_sizes(std::span<const int64_t> input, std::span<const int64_t> output) {
  const size_t first = is_channels_last ? 1 : 2;
  const bool is_lines = input.size() == 3;
  images = input[0];
  native::set_sizes(rows, padding, is_lines ? 1 : input[first], is_lines ? 1 : output[first]);
  native::set_sizes(columns, padding, input[first + (is_lines ? 0 : 1)],
                    output[first + (is_lines ? 0 : 1)]);
}

ByteConvolution byte_convolution_of(const IntegerOffer& offer) {
  std::vector<int64_t> input = offer.input(kLeft).type().dims;
  const std::vector<int64_t> weights = offer.input(kRight).type().dims;
  std::vector<int64_t> output = offer.result.type().dims;
  if (!offer.input(kRight).is_constant()) refuse("packs constant weights only");
  if (input.size() != 3 && input.size() != 4) refuse("is offered for 1-D and 2-D convolutions");
  const plugin::Attributes attributes = offer.node.attributes();
  attributes.find("kernel_shape");  // the weights say it
  ByteConvolution shape;
  shape.is_channels_last = attributes.get_int("channels_last", 0) != 0;
  if (shape.is_channels_last) {
    for (std::vector<int64_t>* dims : {&input, &output}) {
      std::rotate(dims->begin() + 1, dims->end() - 1, dims->end());
    }
  }
  const Window window = window_of(attributes, {weights.begin() + 2, weights.end()}, input, output);
  shape.images = input[0];
  shape.in_channels = input[1];
  shape.out_channels = output[1];
  shape.groups = attributes.get_int("group", 1);
  shape.rows = window[1];
  shape.columns = window[2];
  shape.padding = padding_rule_of(attributes);
  shape.is_right_signed = offer.work.is_right_signed;
  if (offer.input(kLeft).type().elements() == 0) refuse("the convolution has no elements");
  return shape;
}

void offer_integer_convolution(ProposeContext& context, const IntegerOffer& offer) {
  ByteConvolution shape = byte_convolution_of(offer);
  check_by_column(offer, shape.out_channels);
  const char* const nhwc = layout_name(ChannelLayout::Nhwc);
  if (shape.is_depthwise()) {
    try {
      return offer_integer_depthwise(context, offer, shape);
    } catch (const plugin::Failure& failure) {
      context.refuse(offer.node.id(), failure.what());
    }
  }
  if (shape.is_channels_last) {
    return offer_patches(context, offer, shape, TESSERA_LAYOUT_DEFAULT, TESSERA_LAYOUT_DEFAULT);
  }
  offer_patches(context, offer, shape, nhwc, nhwc);
  if (shape.in_channels > kMaxRowMajorChannels) return;
  shape.is_row_major = true;
  offer_patches(context, offer, shape, TESSERA_LAYOUT_DEFAULT, nhwc);
}

void propose_integer_convolutions(ProposeContext& context) {
  context.for_each({"ConvInteger"},
                   [&](const Node& node) { offer_node(context, node, kConvInteger); });
  for (const Node& node : context.graph().nodes()) {
    const bool has_domain = node.domain().empty() || node.domain() == "com.microsoft";
    if (!has_domain || node.op() != "QLinearConv" || !context.is_wanted(node)) continue;
    try {
      offer_node(context, node, kQLinearConv);
    } catch (const std::exception& failure) {
      context.refuse(node.id(), failure.what());
    }
  }
}

}  // namespace tessera::native
