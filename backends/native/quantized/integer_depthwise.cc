// Convolutions of bytes in which each channel is convolved alone, in nhwc.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/divide_up.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "layout/feature_map.h"
#include "quantized/integer_convolution.h"
#include "quantized/integer_depthwise_kernels.h"
#include "quantized/integer_epilogue.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

constexpr int64_t kMaxDepthwiseTaps = 128;
constexpr int64_t kLine = 64;

struct DepthwiseWork {
  IntegerWork work;
  ByteConvolution shape;
  int32_t right_zero = 0;
  int64_t lanes = 1;

  // An even number.
  int64_t taps() const { return divide_up(shape.taps(), 2) * 2; }
  // One matrix, whose columns are channels, with steps of two taps.
  RightPanels panels() const {
    return {.count = 1,
            .columns = shape.in_channels,
            .panel = lanes,
            .panels = divide_up(shape.in_channels, lanes),
            .steps = taps() / 2,
            .unit = static_cast<int64_t>(sizeof(int32_t))};
  }
  // A pixel of the padding; pointers to the pixels of a row of outputs, for each slot.
  int64_t padding_bytes() const { return divide_up(shape.in_channels, kLine) * kLine; }
  int64_t column_bytes() const { return divide_up(epilogue_bytes(panels()), kLine) * kLine; }
  int64_t slot_bytes(const ByteConvolution& sized) const {
    return taps() * sized.columns.output * static_cast<int64_t>(sizeof(void*));
  }
  int64_t slots(const ByteConvolution& sized, int64_t threads) const {
    const int64_t rows = sized.images * sized.rows.output;
    const double flops = 2 * static_cast<double>(rows * sized.columns.output * shape.in_channels) *
                         static_cast<double>(taps());
    const auto worth = static_cast<int64_t>(flops / kGrainFlops) + 1;
    return std::clamp<int64_t>(std::min(threads, worth), 1, std::max<int64_t>(rows, 1));
  }
  int64_t workspace(const ByteConvolution& sized, int64_t threads) const {
    return column_bytes() + padding_bytes() + slots(sized, threads) * slot_bytes(sized);
  }
};

// Weights [channels, 1, rows, columns]: see IntegerDepthwise.
plugin::Pack depthwise_weights(const DepthwiseWork& depthwise) {
  plugin::Pack pack;
  pack.id = "byte_depthwise" + std::to_string(depthwise.lanes) + "_" +
            std::to_string(depthwise.shape.taps()) + "_" + std::to_string(depthwise.right_zero);
  pack.bytes = depthwise.panels().bytes();
  pack.pack = [panels = depthwise.panels(), taps = depthwise.shape.taps(),
               zero = depthwise.right_zero, is_signed = depthwise.shape.is_right_signed](
                  RunContext&, const Buffer& from, void* to) {
    std::memset(to, 0, static_cast<size_t>(panels.bytes()));
    for (int64_t channel = 0; channel < panels.columns; ++channel) {
      const int64_t lane = channel % panels.panel;
      auto* const panel = static_cast<uint8_t*>(to) + channel / panels.panel * panels.panel_bytes();
      int32_t sum = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = channel * taps + tap;
        const int32_t weight =
            is_signed ? from.as<const int8_t>()[at] : from.as<const uint8_t>()[at];
        const auto word = static_cast<int16_t>(weight - zero);
        sum += word;
        const int64_t word_at = ((1 + tap / 2) * panels.panel + lane) * 2 + tap % 2;
        std::memcpy(panel + word_at * 2, &word, sizeof(word));
      }
      std::memcpy(panel + lane * 4, &sum, sizeof(sum));
    }
  };
  return pack;
}

class IntegerDepthwiseKernel : public plugin::Kernel {
 public:
  IntegerDepthwiseKernel(DepthwiseWork depthwise, int64_t threads)
      : depthwise_(std::move(depthwise)),
        threads_(threads),
        loops_(find_integer_depthwise_loops()) {}

  int64_t workspace_bytes() const override {
    return depthwise_.workspace(depthwise_.shape, threads_);
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const IntegerWork& work = depthwise_.work;
    const Buffer& left = inputs[work.ports.of(kLeft)];
    const ByteConvolution shape = depthwise_.shape.resized(left.sizes(), outputs[0].sizes());
    auto* const columns = static_cast<uint8_t*>(context.workspace());
    uint8_t* const padding = columns + depthwise_.column_bytes();
    uint8_t* const slots = padding + depthwise_.padding_bytes();
    const int32_t zero = work.left_zero(inputs);
    std::memset(padding, zero, static_cast<size_t>(shape.in_channels));
    const Buffer& weights = inputs[work.ports.of(kRight)];
    IntegerDepthwise part = {.taps = depthwise_.taps(),
                             .outputs = shape.columns.output,
                             .channels = shape.in_channels,
                             .is_left_signed = work.is_left_signed,
                             .weights = weights.as<const int8_t>(),
                             .to_stride = shape.out_channels,
                             .to_bytes = plugin::element_bytes(outputs[0].data_type)};
    part.epilogue = prepare_epilogue(work, inputs, depthwise_.panels(), weights.data, zero,
                                     work.left_scale(inputs), columns);
    const int64_t rows = shape.images * shape.rows.output;
    const int64_t count = depthwise_.slots(shape, threads_);
    const int64_t slot_bytes = depthwise_.slot_bytes(shape);
    context.parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        auto* const pixels = reinterpret_cast<const uint8_t**>(slots + slot * slot_bytes);
        IntegerDepthwise own = part;
        own.pixels = pixels;
        for (int64_t row = rows * slot / count; row < rows * (slot + 1) / count; ++row) {
          find_pixels(shape, left.as<const uint8_t>(), padding, row, pixels);
          own.to = outputs[0].as<uint8_t>() +
                   row * shape.columns.output * shape.out_channels * part.to_bytes;
          loops_.run(own);
        }
      }
    });
  }

 private:
  // The pixels that the outputs of a row read.
  void find_pixels(const ByteConvolution& shape, const uint8_t* from, const uint8_t* padding,
                   int64_t row, const uint8_t** pixels) const {
    const plugin::WindowAxis& rows = shape.rows;
    const plugin::WindowAxis& columns = shape.columns;
    const int64_t top = row % rows.output * rows.stride - rows.pad_begin;
    const int64_t line = columns.input * shape.in_channels;
    const uint8_t* const image = from + row / rows.output * rows.input * line;
    const bool is_odd = shape.taps() % 2 != 0;
    for (int64_t column = 0; column < columns.output; ++column) {
      const int64_t start = column * columns.stride - columns.pad_begin;
      for (int64_t tap = 0; tap < rows.kernel; ++tap) {
        const int64_t in_row = top + tap * rows.dilation;
        const bool has_row = in_row >= 0 && in_row < rows.input;
        for (int64_t across = 0; across < columns.kernel; ++across) {
          const int64_t in_column = start + across * columns.dilation;
          const bool is_inside = has_row && in_column >= 0 && in_column < columns.input;
          *pixels++ = is_inside ? image + in_row * line + in_column * shape.in_channels : padding;
        }
      }
      if (is_odd) *pixels++ = padding;
    }
  }

  DepthwiseWork depthwise_;
  int64_t threads_;
  IntegerDepthwiseLoops loops_;
};

// The zero point of all weights.
int32_t one_right_zero(const IntegerOffer& offer) {
  if (offer.work.constants) {
    const std::vector<int32_t>& zeros = offer.work.constants->right_zeros;
    if (zeros.empty()) return 0;
    if (std::ranges::count(zeros, zeros.front()) == std::ssize(zeros)) return zeros.front();
    refuse("takes one zero point for all weights");
  }
  const plugin::Value& zero = offer.input(kRightZero);
  if (!zero.is_present()) return 0;
  if (!zero.is_constant() || zero.constant() == nullptr) refuse("takes constant zero points");
  const std::span<const uint8_t> zeros = zero.constant_as<uint8_t>();
  if (std::ranges::count(zeros, zeros.front()) != std::ssize(zeros)) {
    refuse("takes one zero point for all weights");
  }
  return offer.work.is_right_signed ? static_cast<int8_t>(zeros.front()) : zeros.front();
}

}  // namespace

void offer_integer_depthwise(ProposeContext& context, IntegerOffer offer,
                             const ByteConvolution& shape) {
  if (shape.taps() > kMaxDepthwiseTaps) refuse("has too many taps");
  DepthwiseWork depthwise = {.work = {},
                             .shape = shape,
                             .right_zero = one_right_zero(offer),
                             .lanes = find_integer_depthwise_loops().lanes};
  const char* const layout =
      shape.is_channels_last ? TESSERA_LAYOUT_DEFAULT : layout_name(ChannelLayout::Nhwc);
  offer.work.has_centred_right = true;
  offer.work.is_packed = true;
  Candidate candidate =
      integer_candidate(offer, "bytes_depthwise", layout, layout, depthwise_weights(depthwise));
  depthwise.work = offer.work;
  const int32_t channels = shape.is_channels_last ? offer.input(kLeft).type().rank - 1 : 1;
  candidate.built_for->push_back({offer.work.ports.at[kLeft], channels});
  const int64_t threads = context.options().threads;
  candidate.workspace_bytes = depthwise.workspace(shape, threads);
  candidate.workspace_for = [depthwise, threads](std::span<const Buffer> inputs,
                                                 std::span<const Buffer> outputs) {
    const Buffer& left = inputs[depthwise.work.ports.of(kLeft)];
    return depthwise.workspace(depthwise.shape.resized(left.sizes(), outputs[0].sizes()), threads);
  };
  const auto bytes = static_cast<double>(offer.input(kLeft).type().dense_bytes() +
                                         offer.result.type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(0, bytes);
  candidate.build = [depthwise](const plugin::BuildOptions& options) {
    return std::make_unique<IntegerDepthwiseKernel>(depthwise, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace tessera::native
