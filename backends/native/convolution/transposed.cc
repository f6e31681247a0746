// ConvTranspose.
//
// In nhwc, for many output channels: the outputs whose coordinates have the same remainders by the
// strides read the input through the same taps, so each such class of outputs is a convolution with
// stride 1: a product of patches by packed weights. Its results are then copied between those of
// the other classes.
//
// In row-major order, for few output channels or pixels: each tap of each output channel is a row
// of one product, of the weights by the input, and each output is the sum of some of its elements.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "convolution/convolution_group.h"
#include "layout/feature_map.h"
#include "matmul/gemm_kernels.h"
#include "matmul/packed_product.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;
using plugin::WindowAxis;

namespace {

// With more of both, adding up takes longer than copying the classes.
constexpr int64_t kMostChannelsOfSums = 16;
constexpr int64_t kMostPixelsOfSums = 16;
constexpr int64_t kMostBytesOfSums = int64_t{32} << 20;  // of the product

// An axis of a transposed convolution.
struct TransposedAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad_begin = 0;

  // Set `first` of the taps has first, first + stride, ...
  int64_t sets() const { return std::min(stride, kernel); }
  int64_t set_size(int64_t first) const {
    return first < kernel ? divide_up(kernel - first, stride) : 0;
  }
  // The taps of all sets before set `first`.
  int64_t taps_before(int64_t first) const {
    return first * (kernel / stride) + std::min(first, kernel % stride);
  }

  // The set of taps that the outputs of a class read.
  int64_t first_tap(int64_t index) const { return (index + pad_begin) % stride; }

  // The class of the outputs index, index + stride, ... as a convolution, whose taps are those of
  // their set in descending order. It has none if there are fewer taps than classes.
  WindowAxis of_class(int64_t index) const {
    const int64_t first = first_tap(index);
    WindowAxis axis = {.input = input, .output = divide_up(output - index, stride)};
    axis.kernel = set_size(first);
    axis.pad_begin = axis.kernel - 1 - (index + pad_begin - first) / stride;
    return axis;
  }
};

struct TransposedWork {
  ConvolutionSizes sizes;
  TransposedAxis rows;
  TransposedAxis columns;
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  bool has_bias = false;

  void set_sizes(const ConvolutionSizes& other) {
    sizes = other;
    rows.input = sizes.in_rows;
    rows.output = sizes.out_rows;
    columns.input = sizes.in_columns;
    columns.output = sizes.out_columns;
  }
  int64_t pixels() const { return rows.input * columns.input; }
  // The taps of all output channels.
  int64_t tap_rows() const { return out_channels * rows.kernel * columns.kernel; }

  PackedProduct product(int64_t row, int64_t column) const {
    const PatchRows patches = {rows.of_class(row), columns.of_class(column), in_channels};
    return {.rows = sizes.images * patches.rows.output * patches.columns.output,
            .columns = out_channels,
            .depth = patches.length(),
            .is_gathered = true,
            .gathered = patches};
  }
  // Packed weights have the sets of taps one after the other, whatever the sizes.
  int64_t packed_weights(int64_t taps) const {
    return taps * packed_floats({in_channels, out_channels});
  }
  // The packed weights before those of a class.
  int64_t weights_before(int64_t row, int64_t column) const {
    const int64_t row_set = rows.first_tap(row);
    const int64_t column_set = columns.first_tap(column);
    return packed_weights(rows.taps_before(row_set) * columns.kernel +
                          rows.set_size(row_set) * columns.taps_before(column_set));
  }
  // Calls body(product, row, column) for each class.
  template <class Body>
  void for_classes(const Body& body) const {
    const int64_t class_rows = std::min(rows.stride, rows.output);
    const int64_t class_columns = std::min(columns.stride, columns.output);
    for (int64_t row = 0; row < class_rows; ++row) {
      for (int64_t column = 0; column < class_columns; ++column) {
        body(product(row, column), row, column);
      }
    }
  }
  double flops() const {
    double sum = 0;
    for_classes([&](const PackedProduct& product, int64_t, int64_t) { sum += product.flops(); });
    return sum;
  }
  // The results of a class; the first one is the largest.
  int64_t result_bytes() const {
    const PackedProduct first = product(0, 0);
    return first.rows * first.columns * kFloatBytes;
  }
  // The product whose elements are added up, of one image.
  int64_t sums_bytes() const { return tap_rows() * pixels() * kFloatBytes; }
  int64_t workspace_bytes(int64_t threads) const {
    int64_t gathered = 0;
    for_classes([&](const PackedProduct& product, int64_t, int64_t) {
      gathered = std::max(gathered, packed_product_workspace_bytes(product, threads));
    });
    return result_bytes() + gathered;
  }
};

class TransposedKernel : public plugin::Kernel {
 public:
  TransposedKernel(const TransposedWork& work, int64_t threads) : work_(work), threads_(threads) {}

  int64_t workspace_bytes() const override { return work_.workspace_bytes(threads_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], work_,
                  [&](const TransposedWork& work) { run_work(context, work, inputs, outputs); });
  }

 private:
  void run_work(RunContext& context, const TransposedWork& work, std::span<const Buffer> inputs,
                std::span<const Buffer> outputs) const {
    auto* results = static_cast<float*>(context.workspace());
    const float* weights = inputs[1].as<const float>();
    float* to = outputs[0].as<float>();
    work.for_classes([&](const PackedProduct& product, int64_t row, int64_t column) {
      PackedOperands operands = {.left = inputs[0].as<const float>(),
                                 .right = weights + work.weights_before(row, column),
                                 .to = results};
      if (work.has_bias) operands.epilogue.bias = inputs[2].as<const float>();
      run_packed_product(context, product, threads_, operands,
                         results + work.result_bytes() / kFloatBytes);
      copy_results(context, work, product.gathered, results, row, column, to);
    });
  }

  static void copy_results(RunContext& context, const TransposedWork& work,
                           const PatchRows& patches, const float* from, int64_t row, int64_t column,
                           float* to) {
    const int64_t channels = work.out_channels;
    const int64_t width = patches.columns.output;
    const int64_t lines = work.sizes.images * patches.rows.output;
    const int64_t grain = kGrainBytes / (width * channels * kFloatBytes + 1) + 1;
    context.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t image = line / patches.rows.output;
        const int64_t to_line =
            image * work.rows.output + line % patches.rows.output * work.rows.stride + row;
        const float* result = from + line * width * channels;
        float* target = to + (to_line * work.columns.output + column) * channels;
        for (int64_t pixel = 0; pixel < width; ++pixel) {
          std::copy_n(result, channels, target);
          result += channels;
          target += work.columns.stride * channels;
        }
      }
    });
  }

  TransposedWork work_;
  int64_t threads_;
};

// A run of products whose elements are added up.
class SumsRun {
 public:
  SumsRun(const TransposedWork& work, const GemmLoops& loops) : work_(work), loops_(loops) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) const {
    const auto* from = inputs[0].as<const float>();
    const auto* weights = inputs[1].as<const float>();
    const float* bias = work_.has_bias ? inputs[2].as<const float>() : nullptr;
    auto* results = static_cast<float*>(context.workspace());
    auto* to = outputs[0].as<float>();
    for (int64_t image = 0; image < work_.sizes.images; ++image) {
      multiply(context, from, weights, results);
      add_up(context, results, bias, to);
      from += work_.in_channels * work_.pixels();
      to += work_.out_channels * work_.rows.output * work_.columns.output;
    }
  }

 private:
  // results[channel, tap][pixel]. Of one pixel, the weights are the right matrix, because its
  // columns are contiguous.
  void multiply(RunContext& context, const float* from, const float* weights,
                float* results) const {
    const bool is_one = work_.pixels() == 1;
    const int64_t rows = is_one ? 1 : work_.tap_rows();
    const int64_t columns = is_one ? work_.tap_rows() : work_.pixels();
    const int64_t row_blocks = divide_up(rows, kRowBlock);
    const int64_t parts = row_blocks * divide_up(columns, loops_.panel);
    const double flops = 2.0 * static_cast<double>(work_.in_channels) * static_cast<double>(rows) *
                         static_cast<double>(columns);
    const auto grain = static_cast<int64_t>(kGrainFlops * static_cast<double>(parts) / flops) + 1;
    context.parallel_for(parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t row = part % row_blocks * kRowBlock;
        const int64_t column = part / row_blocks * loops_.panel;
        loops_.columns({.left = is_one ? from : weights + row,
                        .left_row_stride = 1,
                        .left_depth_stride = is_one ? 1 : work_.tap_rows(),
                        .right = (is_one ? weights : from) + column,
                        .right_depth_stride = columns,
                        .rows = std::min(kRowBlock, rows - row),
                        .columns = std::min(loops_.panel, columns - column),
                        .depth = work_.in_channels,
                        .to = results + row * columns + column,
                        .to_row_stride = columns});
      }
    });
  }

  void add_up(RunContext& context, const float* results, const float* bias, float* to) const {
    const int64_t lines = work_.out_channels * work_.rows.output;
    const int64_t grain = kGrainBytes / (work_.columns.output * kFloatBytes + 1) + 1;
    context.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t channel = line / work_.rows.output;
        float* target = to + line * work_.columns.output;
        std::fill_n(target, work_.columns.output, bias == nullptr ? 0 : bias[channel]);
        add_taps(results, channel, line % work_.rows.output, target);
      }
    });
  }

  // Adds to the line of outputs what the lines of inputs contribute by their taps.
  void add_taps(const float* results, int64_t channel, int64_t output, float* target) const {
    const TransposedAxis& rows = work_.rows;
    const TransposedAxis& columns = work_.columns;
    for (int64_t tap = rows.first_tap(output); tap < rows.kernel; tap += rows.stride) {
      const int64_t input = (output + rows.pad_begin - tap) / rows.stride;
      if (output + rows.pad_begin < tap || input >= rows.input) continue;
      const int64_t first = (channel * rows.kernel + tap) * columns.kernel;
      for (int64_t across = 0; across < columns.kernel; ++across) {
        // The inputs whose outputs, at stride * input + shift, are in the line.
        const int64_t shift = across - columns.pad_begin;
        const int64_t begin = shift < 0 ? divide_up(-shift, columns.stride) : 0;
        const int64_t room = columns.output - shift;
        const int64_t end =
            room <= 0 ? 0 : std::min(columns.input, divide_up(room, columns.stride));
        const float* from = results + ((first + across) * rows.input + input) * columns.input;
        for (int64_t index = begin; index < end; ++index) {
          target[index * columns.stride + shift] += from[index];
        }
      }
    }
  }

  // Rows that are multiplied with a panel before the next rows.
  static constexpr int64_t kRowBlock = 96;
  const TransposedWork& work_;
  const GemmLoops& loops_;
};

class SumsKernel : public plugin::Kernel {
 public:
  explicit SumsKernel(const TransposedWork& work) : work_(work), loops_(find_gemm_loops()) {}

  int64_t workspace_bytes() const override { return work_.sums_bytes(); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], work_, [&](const TransposedWork& work) {
      SumsRun(work, loops_).run(context, inputs, outputs);
    });
  }

 private:
  TransposedWork work_;
  GemmLoops loops_;
};

// --- Offering ------------------------------------------------------------------------------------

TransposedWork transposed_work(const Node& node) {
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
  const size_t axes = input.size() - 2;
  const plugin::Attributes attributes = node.attributes();
  if ((axes != 1 && axes != 2) || attributes.get_int("group", 1) != 1) {
    refuse("is offered for 1-D and 2-D transposed convolutions with group = 1 only");
  }
  for (const int64_t dilation : attributes.get_ints("dilations")) {
    if (dilation != 1) refuse("is offered without dilation only");
  }
  TransposedWork work = {
      .in_channels = input[1], .out_channels = output[1], .has_bias = node.input(2).is_present()};
  // The output's size contains it; only auto_pad and output_shape would need it again.
  static_cast<void>(attributes.has("output_padding"));
  const bool is_shape_given = !attributes.get_ints("output_shape").empty();
  if (!plugin::has_explicit_pads(attributes) || is_shape_given) {
    refuse("takes explicit padding only");
  }
  const std::vector<int64_t> pads = plugin::attribute_list(attributes, "pads", 2 * axes, 0);
  const std::vector<int64_t> strides = attributes.get_ints("strides");
  for (size_t axis = 0; axis < axes; ++axis) {
    TransposedAxis& of = axis + 1 == axes ? work.columns : work.rows;
    of = {.input = input[2 + axis],
          .output = output[2 + axis],
          .kernel = weights[2 + axis],
          .stride = strides.empty() ? 1 : strides[axis],
          .pad_begin = pads[axis]};
  }
  work.set_sizes({.images = input[0],
                  .in_rows = work.rows.input,
                  .in_columns = work.columns.input,
                  .out_rows = work.rows.output,
                  .out_columns = work.columns.output});
  return work;
}

// The weights of a set of row taps by a set of column taps, both in descending order, as a matrix
// [taps and in_channels, out_channels].
std::vector<float> matrix_of_sets(const TransposedWork& work, const float* weights, int64_t row_set,
                                  int64_t column_set) {
  const int64_t taps = work.rows.kernel * work.columns.kernel;
  std::vector<float> matrix;
  for (int64_t row = work.rows.set_size(row_set); row-- > 0;) {
    for (int64_t column = work.columns.set_size(column_set); column-- > 0;) {
      const int64_t place = (row_set + row * work.rows.stride) * work.columns.kernel + column_set +
                            column * work.columns.stride;
      for (int64_t channel = 0; channel < work.in_channels; ++channel) {
        for (int64_t out = 0; out < work.out_channels; ++out) {
          matrix.push_back(weights[(channel * work.out_channels + out) * taps + place]);
        }
      }
    }
  }
  return matrix;
}

// Weights [in_channels, out_channels, rows, columns] as the panels of each pair of sets.
plugin::Pack transposed_pack(const TransposedWork& work) {
  plugin::Pack pack;
  pack.id = "transposed_" + panels_pack({1, work.out_channels}).id;
  for (const TransposedAxis& axis : {work.rows, work.columns}) {
    for (const int64_t number : {axis.stride, axis.kernel}) {
      pack.id.append("_").append(std::to_string(number));
    }
  }
  const int64_t taps = work.rows.kernel * work.columns.kernel;
  pack.bytes = work.packed_weights(taps) * kFloatBytes;
  pack.pack = [work](RunContext& context, const Buffer& from, void* to) {
    auto* target = static_cast<float*>(to);
    std::vector<float> matrix;
    for (int64_t row = 0; row < work.rows.sets(); ++row) {
      for (int64_t column = 0; column < work.columns.sets(); ++column) {
        matrix = matrix_of_sets(work, from.as<const float>(), row, column);
        const int64_t set_taps = work.rows.set_size(row) * work.columns.set_size(column);
        const PanelSource source = {set_taps * work.in_channels, work.out_channels,
                                    work.out_channels};
        pack_panels(context, source, matrix.data(), target);
        target += packed_floats(source);
      }
    }
  };
  return pack;
}

// A candidate that reads input, weights and bias in `layout` where they have one.
Candidate candidate_of(const Node& node, const char* algorithm, const char* layout) {
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = algorithm;
  for (const size_t index : {size_t{0}, size_t{1}, size_t{2}}) {
    const Value value = node.input(index);
    if (!value.is_present()) continue;
    for (const plugin::InputPort& port : candidate.inputs) {
      if (port.value == value.id()) refuse("reads different values only");
    }
    candidate.inputs.push_back({.value = value.id()});
  }
  candidate.inputs[0].layout = layout;
  candidate.built_for.emplace();
  candidate.built_for->push_back({0, 1});
  for (size_t axis = 0; axis < node.input(1).type().dims.size(); ++axis) {
    candidate.built_for->push_back({1, static_cast<int32_t>(axis)});
  }
  candidate.outputs.push_back({.value = node.output(0).id(), .layout = layout});
  return candidate;
}

double bytes_of(const Node& node) {
  return static_cast<double>(node.input(0).type().dense_bytes() +
                             node.input(1).type().dense_bytes() +
                             node.output(0).type().dense_bytes());
}

void offer_sums(ProposeContext& context, const Node& node, const TransposedWork& work) {
  if (work.out_channels > kMostChannelsOfSums && work.pixels() > kMostPixelsOfSums) return;
  if (work.sums_bytes() > kMostBytesOfSums) return;
  // Measurements of one form do not apply to the other: with one pixel, nearly all reads are of
  // weights.
  const char* algorithm = work.pixels() == 1 ? "one_pixel" : "sums";
  Candidate candidate = candidate_of(node, algorithm, TESSERA_LAYOUT_DEFAULT);
  candidate.workspace_bytes = work.sums_bytes();
  candidate.workspace_for = [work](std::span<const Buffer> inputs,
                                   std::span<const Buffer> outputs) {
    TransposedWork other = work;
    other.set_sizes(sizes_of(inputs[0], outputs[0]));
    return other.sums_bytes();
  };
  const double flops = 2.0 * static_cast<double>(work.sizes.images * work.in_channels) *
                       static_cast<double>(work.tap_rows() * work.pixels());
  const double bytes =
      bytes_of(node) + 2 * static_cast<double>(work.sizes.images * candidate.workspace_bytes);
  candidate.optimistic_seconds = context.optimistic_seconds(flops, bytes);
  candidate.build = [work](const plugin::BuildOptions&) {
    return std::make_unique<SumsKernel>(work);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer(ProposeContext& context, const Node& node) {
  const TransposedWork work = transposed_work(node);
  offer_sums(context, node, work);
  Candidate candidate = candidate_of(node, "packed", layout_name(ChannelLayout::Nhwc));
  candidate.inputs[1].pack = transposed_pack(work);
  const int64_t threads = context.options().threads;
  candidate.workspace_bytes = work.workspace_bytes(threads);
  candidate.workspace_for = workspace_for(work, threads);
  const double bytes =
      bytes_of(node) + 2 * static_cast<double>(node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(work.flops(), bytes);
  candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<TransposedKernel>(work, options.threads);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_transposed_convolutions(ProposeContext& context) {
  context.for_each({"ConvTranspose"}, [&](const Node& node) { offer(context, node); });
}

}  // namespace tessera::native
