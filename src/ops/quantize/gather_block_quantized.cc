// GatherBlockQuantized of com.microsoft: slices of weights of 2, 4 or 8 bits, as real numbers. The
// weights have a scale and a zero point for each block along an axis.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <string>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/quantize/packed_bits.h"

namespace tessera::ops {
namespace {

constexpr int64_t kMinGatheredBlock = 16;

// The last axis of bytes holds several weights in each byte, so it is that of the blocks, and the
// slices are those of the first axis.
void check_gathered_attributes(const InferContext& context, const Shape* data) {
  const Attributes& attributes = context.node().attributes;
  const auto fail = [&](const char* attribute, const std::string& expected) {
    context.fail("attribute '" + std::string(attribute) + "': expected " + expected + ", found " +
                 std::to_string(attributes.get_int(attribute)));
  };
  const int64_t bits = attributes.get_int("bits");
  if (bits != 2 && bits != 4 && bits != 8) fail("bits", "2, 4 or 8");
  const int64_t block = attributes.get_int("block_size");
  if (block < kMinGatheredBlock || (block & (block - 1)) != 0) {
    fail("block_size", "a power of two of at least 16");
  }
  if (data == nullptr) return;
  const auto rank = static_cast<int64_t>(data->size());
  const int64_t gather_axis = context.normalized_axis(attributes.get_int("gather_axis"), rank);
  const int64_t quantize_axis = context.normalized_axis(attributes.get_int("quantize_axis"), rank);
  if (gather_axis != 0) fail("gather_axis", "0 for data of uint8");
  if (gather_axis == quantize_axis) fail("quantize_axis", "another axis than 'gather_axis'");
  if (bits < 8 && quantize_axis != rank - 1) {
    context.fail_unsupported(
        "blocks of packed weights have kernels along the last axis only, found 'quantize_axis' " +
        std::to_string(quantize_axis) + " of rank " + std::to_string(rank));
  }
}

Dim blocks_of(const Dim& length, int64_t block, const Dim& unknown) {
  if (!length.is_known()) return unknown;
  return length.value() / block + (length.value() % block == 0 ? 0 : 1);
}

// The data's shape with one element for each weight.
Shape weights_shape(const InferContext& context, const Shape& data) {
  Shape weights = data;
  weights.back() = multiply(weights.back(), 8 / context.node().attributes.get_int("bits"));
  return weights;
}

void check_gathered_scales(const InferContext& context, const Shape& data) {
  const Attributes& attributes = context.node().attributes;
  const int64_t bits = attributes.get_int("bits");
  const auto axis = static_cast<size_t>(context.normalized_axis(attributes.get_int("quantize_axis"),
                                                                static_cast<int64_t>(data.size())));
  const Shape* const scales = context.shape(2);
  Shape expected = weights_shape(context, data);
  const bool has_rank = scales != nullptr && scales->size() == data.size();
  expected[axis] = blocks_of(expected[axis], attributes.get_int("block_size"),
                             has_rank ? (*scales)[axis] : expected[axis]);
  check_shape(context, 2, expected);
  if (expected[axis].is_known()) expected[axis] = packed_bytes(expected[axis].value(), bits);
  check_shape(context, 3, expected);
}

void infer_block_gather(InferContext& context) {
  const Shape* const data = context.shape(0);
  const Shape* const indices = context.shape(1);
  check_gathered_attributes(context, data);
  context.set_output(0, context.element(2));
  if (data == nullptr) return;
  check_gathered_scales(context, *data);
  if (indices == nullptr) return;
  const Shape weights = weights_shape(context, *data);
  Shape output = *indices;
  output.insert(output.end(), weights.begin() + 1, weights.end());
  context.set_output(0, context.element(2), std::move(output));
}

// The weights as lines along the axis of the blocks and the axes after it: `lines` for each slice,
// each of `length` indices with `inner` elements.
struct GatheredBlocks {
  int64_t bits = 0;
  int64_t block = 0;
  int64_t lines = 1;
  int64_t length = 1;
  int64_t inner = 1;
  int64_t blocks = 1;

  int64_t slice_elements() const { return lines * length * inner; }
};

GatheredBlocks gathered_blocks_of(const KernelCall& call) {
  const Attributes& attributes = call.node.attributes;
  const std::span<const int64_t> dims = call.inputs[0].dims;
  int64_t axis = attributes.get_int("quantize_axis");
  if (axis < 0) axis += call.inputs[0].rank();
  const auto at = static_cast<size_t>(axis);
  GatheredBlocks form = {.bits = attributes.get_int("bits"),
                         .block = attributes.get_int("block_size"),
                         .lines = element_count(dims.subspan(1, at - 1)),
                         .length = dims[at],
                         .inner = element_count(dims.subspan(at + 1)),
                         .blocks = call.inputs[2].dims[at]};
  // Packed weights are those of the last axis.
  if (form.bits < 8) form.length *= 8 / form.bits;
  return form;
}

// Writes the weights of the slice at `index` of the data.
template <class T>
void read_slice(const KernelCall& call, const GatheredBlocks& form, int64_t index, T* target) {
  const int64_t line_bytes = packed_bytes(form.length, form.bits) * form.inner;
  const int64_t zero_bytes = packed_bytes(form.blocks, form.bits) * form.inner;
  const uint8_t* const bytes = call.inputs[0].as<uint8_t>().data();
  const T* const scales = call.inputs[2].as<T>().data();
  const uint8_t* const zeros = call.has_input(3) ? call.inputs[3].as<uint8_t>().data() : nullptr;
  for (int64_t line = index * form.lines; line < (index + 1) * form.lines; ++line) {
    for (int64_t row = 0; row < form.length; ++row) {
      const int64_t block = row / form.block;
      for (int64_t column = 0; column < form.inner; ++column) {
        const int64_t weight =
            packed_at(bytes + line * line_bytes, row * form.inner + column, form.bits);
        const int64_t scale = block * form.inner + column;
        const int64_t zero = zeros == nullptr
                                 ? int64_t{1} << (form.bits - 1)
                                 : packed_at(zeros + line * zero_bytes, scale, form.bits);
        const double factor = to_double(scales[line * form.blocks * form.inner + scale]);
        *target++ = from_double<T>(static_cast<double>(weight - zero) * factor);
      }
    }
  }
}

void run_block_gather(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const GatheredBlocks form = gathered_blocks_of(call);
  const int64_t slice = form.slice_elements();
  const int64_t dim = call.inputs[0].dims[0];
  const int64_t grain = std::max<int64_t>(1, kElementGrain / slice);
  visit_floating(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const target = output.as<T>().data();
    call.pool.parallel_for(call.inputs[1].elements, grain, [&](int64_t begin, int64_t end) {
      for (int64_t position = begin; position < end; ++position) {
        const int64_t index = integer_at(call.inputs[1], position);
        T* const result = target + position * slice;
        // "Unlike ONNX Gather, an out-of-range index produces zeros."
        if (index < -dim || index >= dim) {
          std::fill_n(result, slice, T(0.0F));
        } else {
          read_slice(call, form, index < 0 ? index + dim : index, result);
        }
      }
    });
  });
}

}  // namespace

std::vector<Op> gather_block_quantized_ops() {
  return {{.name = "GatherBlockQuantized",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"data", "T1"},
                      {"indices", "Tind"},
                      {"scales", "T2"},
                      {"zero_points", "T1", Arity::Optional}},
           .outputs = {{"output", "T2"}},
           .type_variables = {{"T1", {DataType::UInt8}},
                              {"T2", {DataType::Float32, DataType::Float16, DataType::BFloat16}},
                              {"Tind", kIndexTypes}},
           .attributes = {{"bits", AttributeKind::Int, int64_t{4}},
                          {"block_size", AttributeKind::Int, int64_t{128}},
                          {"gather_axis", AttributeKind::Int, int64_t{0}},
                          {"quantize_axis", AttributeKind::Int, int64_t{1}}},
           .infer = infer_block_gather,
           .flops = no_flops,
           .kernel = run_block_gather}};
}

}  // namespace tessera::ops
