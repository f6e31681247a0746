// ConvTranspose in nhwc. The outputs whose coordinates have the same remainders by the strides read
// the input through the same taps, so each such class of outputs is a convolution with stride 1: a
// product of patches by packed weights. Its results are then copied between those of the others.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/divide_up.h"
#include "base/families.h"
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

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// The minimum number of bytes that a thread copies.
constexpr int64_t kGrainBytes = 64 * 1024;

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

// An axis of a transposed convolution.
struct TransposedAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad_begin = 0;

  // The first tap that the outputs of a class read; the others follow `stride` taps apart.
  int64_t first_tap(int64_t index) const { return (index + pad_begin) % stride; }

  // The class of the outputs index, index + stride, ... as a convolution, whose taps are those of
  // the class in descending order. It has none if there are fewer taps than classes.
  WindowAxis of_class(int64_t index) const {
    const int64_t first = first_tap(index);
    WindowAxis axis = {.input = input, .output = divide_up(output - index, stride)};
    axis.kernel = first < kernel ? divide_up(kernel - first, stride) : 0;
    axis.pad_begin = axis.kernel - 1 - (index + pad_begin - first) / stride;
    return axis;
  }
};

struct Work {
  TransposedAxis rows;
  TransposedAxis columns;
  int64_t images = 1;
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  bool has_bias = false;

  int64_t class_rows() const { return std::min(rows.stride, rows.output); }
  int64_t class_columns() const { return std::min(columns.stride, columns.output); }

  PackedProduct product(int64_t row, int64_t column) const {
    const PatchRows patches = {rows.of_class(row), columns.of_class(column), in_channels};
    return {.rows = images * patches.rows.output * patches.columns.output,
            .columns = out_channels,
            .depth = patches.length(),
            .is_gathered = true,
            .gathered = patches};
  }
  // Calls body(product, row, column) for each class.
  template <class Body>
  void for_classes(const Body& body) const {
    for (int64_t row = 0; row < class_rows(); ++row) {
      for (int64_t column = 0; column < class_columns(); ++column) {
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
  TransposedKernel(const Work& work, int64_t threads) : work_(work), threads_(threads) {}

  int64_t workspace_bytes() const override { return work_.workspace_bytes(threads_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    auto* results = static_cast<float*>(context.workspace());
    const float* weights = inputs[1].as<const float>();
    float* to = outputs[0].as<float>();
    work_.for_classes([&](const PackedProduct& product, int64_t row, int64_t column) {
      PackedOperands operands = {
          .left = inputs[0].as<const float>(), .right = weights, .to = results};
      if (work_.has_bias) operands.epilogue.bias = inputs[2].as<const float>();
      run_packed_product(context, product, threads_, operands,
                         results + work_.result_bytes() / kFloatBytes);
      copy_results(context, product.gathered, results, row, column, to);
      weights += packed_floats({product.depth, product.columns});
    });
  }

 private:
  void copy_results(RunContext& context, const PatchRows& patches, const float* from, int64_t row,
                    int64_t column, float* to) const {
    const int64_t channels = work_.out_channels;
    const int64_t width = patches.columns.output;
    const int64_t lines = work_.images * patches.rows.output;
    const int64_t grain = kGrainBytes / (width * channels * kFloatBytes + 1) + 1;
    context.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t image = line / patches.rows.output;
        const int64_t to_line =
            image * work_.rows.output + line % patches.rows.output * work_.rows.stride + row;
        const float* result = from + line * width * channels;
        float* target = to + (to_line * work_.columns.output + column) * channels;
        for (int64_t pixel = 0; pixel < width; ++pixel) {
          std::copy_n(result, channels, target);
          result += channels;
          target += work_.columns.stride * channels;
        }
      }
    });
  }

  Work work_;
  int64_t threads_;
};

// --- Offering ------------------------------------------------------------------------------------

Work work_of(const Node& node) {
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
  Work work = {.images = input[0],
               .in_channels = input[1],
               .out_channels = output[1],
               .has_bias = node.input(2).is_present()};
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
  return work;
}

// Weights [in_channels, out_channels, rows, columns] as the panels of each class.
plugin::Pack transposed_pack(const Work& work) {
  plugin::Pack pack;
  pack.id = "transposed_" + panels_pack({1, work.out_channels}).id;
  for (const TransposedAxis& axis : {work.rows, work.columns}) {
    for (const int64_t number : {axis.stride, axis.pad_begin % axis.stride,
                                 std::min(axis.stride, axis.output), axis.kernel}) {
      pack.id.append("_").append(std::to_string(number));
    }
  }
  work.for_classes([&](const PackedProduct& product, int64_t, int64_t) {
    pack.bytes += packed_floats({product.depth, product.columns}) * kFloatBytes;
  });
  pack.pack = [work](RunContext& context, const Buffer& from, void* to) {
    auto* target = static_cast<float*>(to);
    const int64_t taps = work.rows.kernel * work.columns.kernel;
    std::vector<float> matrix;
    work.for_classes([&](const PackedProduct& product, int64_t row, int64_t column) {
      const PatchRows& patches = product.gathered;
      matrix.clear();
      for (int64_t line = 0; line < product.depth; ++line) {
        const int64_t channel = line % work.in_channels;
        const int64_t tap = line / work.in_channels;
        const int64_t from_end_row = patches.rows.kernel - 1 - tap / patches.columns.kernel;
        const int64_t from_end_column = patches.columns.kernel - 1 - tap % patches.columns.kernel;
        const int64_t place =
            (work.rows.first_tap(row) + from_end_row * work.rows.stride) * work.columns.kernel +
            work.columns.first_tap(column) + from_end_column * work.columns.stride;
        for (int64_t out = 0; out < work.out_channels; ++out) {
          matrix.push_back(
              from.as<const float>()[(channel * work.out_channels + out) * taps + place]);
        }
      }
      const PanelSource source = {product.depth, product.columns, product.columns};
      pack_panels(context, source, matrix.data(), target);
      target += packed_floats(source);
    });
  };
  return pack;
}

void offer(ProposeContext& context, const Node& node) {
  const Work work = work_of(node);
  const char* nhwc = layout_name(ChannelLayout::Nhwc);
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "packed";
  for (const size_t index : {size_t{0}, size_t{1}, size_t{2}}) {
    const Value value = node.input(index);
    if (!value.is_present()) continue;
    for (const plugin::InputPort& port : candidate.inputs) {
      if (port.value == value.id()) refuse("reads different values only");
    }
    candidate.inputs.push_back({.value = value.id()});
  }
  candidate.inputs[0].layout = nhwc;
  candidate.inputs[1].pack = transposed_pack(work);
  candidate.outputs.push_back({.value = node.output(0).id(), .layout = nhwc});
  candidate.workspace_bytes = work.workspace_bytes(context.options().threads);
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.input(1).type().dense_bytes() +
                          3 * node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(work.flops(), bytes);
  candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<TransposedKernel>(work, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_transposed_convolutions(ProposeContext& context) {
  context.for_each({"ConvTranspose"}, [&](const Node& node) { offer(context, node); });
}

}  // namespace tessera::native
