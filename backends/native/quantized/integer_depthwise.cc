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
  IntegerDepthwiseLoops loops;

  int64_t row_groups() const { return divide_up(shape.rows.kernel, loops.row_group); }
  // One matrix, whose columns are channels, with a step for each group and tap of a row.
  RightPanels panels() const {
    return {.count = 1,
            .columns = shape.in_channels,
            .panel = loops.block,
            .panels = divide_up(shape.in_channels, loops.block),
            .steps = row_groups() * shape.columns.kernel,
            .unit = static_cast<int64_t>(sizeof(int32_t))};
  }
  // A pixel of the padding; pointers to the pixels of a row of outputs, for each slot.
  int64_t padding_bytes() const { return divide_up(shape.in_channels, kLine) * kLine; }
  int64_t column_bytes() const { return divide_up(epilogue_bytes(panels()), kLine) * kLine; }
  int64_t slot_bytes(const ByteConvolution& sized) const {
    return row_groups() * loops.row_group * sized.columns.reach() *
           static_cast<int64_t>(sizeof(void*));
  }
  int64_t slots(const ByteConvolution& sized, int64_t threads) const {
    const int64_t rows = sized.images * sized.rows.output;
    const double flops = 2 * static_cast<double>(rows * sized.columns.output * shape.in_channels) *
                         static_cast<double>(shape.taps());
    const auto worth = static_cast<int64_t>(flops / kGrainFlops) + 1;
    return std::clamp<int64_t>(std::min(threads, worth), 1, std::max<int64_t>(rows, 1));
  }
  int64_t workspace(const ByteConvolution& sized, int64_t threads) const {
    return column_bytes() + padding_bytes() + slots(sized, threads) * slot_bytes(sized);
  }
};

// Packs weights [channels, 1, rows, columns]: see IntegerDepthwise.
class DepthwisePacking {
 public:
  explicit DepthwisePacking(const DepthwiseWork& depthwise)
      : panels_(depthwise.panels()),
        loops_(depthwise.loops),
        zero_(depthwise.right_zero),
        is_signed_(depthwise.shape.is_right_signed),
        rows_(depthwise.shape.rows.kernel),
        row_taps_(depthwise.shape.columns.kernel) {}

  void run(const uint8_t* from, uint8_t* to) const {
    std::memset(to, 0, static_cast<size_t>(panels_.bytes()));
    for (int64_t panel = 0; panel < panels_.panels; ++panel, to += panels_.panel_bytes()) {
      const int64_t first = panel * panels_.panel;
      for (int64_t position = 0; position < panels_.panel; ++position) {
        const int64_t within = loops_.channel_at(position);
        if (first + within >= panels_.columns) continue;
        pack_channel(from + (first + within) * rows_ * row_taps_, position,
                     to + within * kStepBytes, to);
      }
    }
  }

 private:
  static constexpr auto kStepBytes = static_cast<int64_t>(sizeof(int32_t));

  void pack_channel(const uint8_t* from, int64_t position, uint8_t* sum_to, uint8_t* panel) const {
    int32_t sum = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t group = row / loops_.row_group;
      for (int64_t tap = 0; tap < row_taps_; ++tap, ++from) {
        const int32_t weight = (is_signed_ ? static_cast<int8_t>(*from) : *from) - zero_;
        sum += weight;
        const int64_t step = 1 + group * row_taps_ + tap;
        uint8_t* const to = panel + (step * panels_.panel + position) * kStepBytes;
        if (loops_.has_byte_weights()) {
          to[row % loops_.row_group] = static_cast<uint8_t>(weight);
        } else {
          const auto word = static_cast<int16_t>(weight);
          std::memcpy(to + row % loops_.row_group * 2, &word, sizeof(word));
        }
      }
    }
    std::memcpy(sum_to, &sum, sizeof(sum));
  }

  RightPanels panels_;
  IntegerDepthwiseLoops loops_;
  int32_t zero_;
  bool is_signed_;
  int64_t rows_;
  int64_t row_taps_;
};

plugin::Pack depthwise_weights(const DepthwiseWork& depthwise) {
  plugin::Pack pack;
  const ByteConvolution& shape = depthwise.shape;
  pack.id = "byte_depthwise" + std::to_string(depthwise.loops.block) + "x" +
            std::to_string(depthwise.loops.row_group) + "_" + std::to_string(shape.rows.kernel) +
            "_" + std::to_string(shape.columns.kernel) + "_" + std::to_string(depthwise.right_zero);
  pack.bytes = depthwise.panels().bytes();
  pack.pack = [packing = DepthwisePacking(depthwise)](RunContext&, const Buffer& from, void* to) {
    packing.run(from.as<const uint8_t>(), static_cast<uint8_t*>(to));
  };
  return pack;
}

class IntegerDepthwiseKernel : public plugin::Kernel {
 public:
  IntegerDepthwiseKernel(DepthwiseWork depthwise, int64_t threads)
      : depthwise_(std::move(depthwise)), threads_(threads) {}

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
    int32_t zero = work.left_zero(inputs);
    std::memset(padding, zero, static_cast<size_t>(shape.in_channels));
    const Buffer& weights = inputs[work.ports.of(kRight)];
    // Signed elements become unsigned ones then.
    if (depthwise_.loops.has_byte_weights() && work.is_left_signed) zero += 128;
    IntegerDepthwise part = {.reach = shape.columns.reach(),
                             .row_groups = depthwise_.row_groups(),
                             .row_taps = shape.columns.kernel,
                             .stride = shape.columns.stride,
                             .dilation = shape.columns.dilation,
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
          depthwise_.loops.run(own);
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
    const int64_t taps = depthwise_.row_groups() * depthwise_.loops.row_group;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t in_row = top + tap * rows.dilation;
      const bool has_row = tap < rows.kernel && in_row >= 0 && in_row < rows.input;
      // None of the pixels of a row of padding are inside.
      const int64_t end = has_row ? columns.input : 0;
      const uint8_t* pixel = image + in_row * line - columns.pad_begin * shape.in_channels;
      for (int64_t in_column = -columns.pad_begin; in_column < columns.reach() - columns.pad_begin;
           ++in_column, pixel += shape.in_channels) {
        *pixels++ = in_column >= 0 && in_column < end ? pixel : padding;
      }
    }
  }

  DepthwiseWork depthwise_;
  int64_t threads_;
};

// Whether all weights minus their zero point are int8.
bool fit_bytes(const plugin::Value& weights, int32_t zero) {
  if (weights.constant() == nullptr) return false;
  const auto fits = [zero](int32_t weight) {
    return weight - zero >= -128 && weight - zero <= 127;
  };
  return weights.type().data_type == TESSERA_INT8
             ? std::ranges::all_of(weights.constant_as<int8_t>(), fits)
             : std::ranges::all_of(weights.constant_as<uint8_t>(), fits);
}

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
  DepthwiseWork depthwise = {
      .work = {}, .shape = shape, .right_zero = one_right_zero(offer), .loops = {}};
  depthwise.loops =
      find_integer_depthwise_loops(fit_bytes(offer.input(kRight), depthwise.right_zero));
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
