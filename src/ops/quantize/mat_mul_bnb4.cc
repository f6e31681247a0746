// MatMulBnb4 of com.microsoft: a product with weights of 4 bits, each of which selects one of 16
// numbers, times the largest magnitude of its block. Blocks lie along the flattened weights [N, K].
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <array>
#include <string>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/matmul/dense_operand.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

using CodeBook = std::array<double, 16>;

// A sign, two bits of exponent and one of mantissa, relative to the largest magnitude, 12.
constexpr CodeBook kFloatCodes = {
    0.0,  0.0625 / 12,  8.0 / 12,  12.0 / 12,  4.0 / 12,  6.0 / 12,  2.0 / 12,  3.0 / 12,
    -0.0, -0.0625 / 12, -8.0 / 12, -12.0 / 12, -4.0 / 12, -6.0 / 12, -2.0 / 12, -3.0 / 12};
// QLoRA (Dettmers and others, 2023), appendix E: quantiles of the normal distribution.
constexpr CodeBook kNormalCodes = {-1.0,
                                   -0.6961928009986877,
                                   -0.5250730514526367,
                                   -0.39491748809814453,
                                   -0.28444138169288635,
                                   -0.18477343022823334,
                                   -0.09105003625154495,
                                   0.0,
                                   0.07958029955625534,
                                   0.16093020141124725,
                                   0.24611230194568634,
                                   0.33791524171829224,
                                   0.44070982933044434,
                                   0.5626170039176941,
                                   0.7229568362236023,
                                   1.0};

constexpr int64_t kMaxCodeFeatures = (int64_t{1} << 31) - 1;
constexpr int64_t kMinCodeBlock = 16;

void check_code_attributes(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const auto check = [&](const char* attribute, bool is_right, const std::string& expected) {
    if (is_right) return;
    context.fail("attribute '" + std::string(attribute) + "': expected " + expected + ", found " +
                 std::to_string(attributes.get_int(attribute)));
  };
  for (const char* size : {"N", "K"}) {
    const int64_t given = attributes.get_int(size);
    check(size, given > 0 && given <= kMaxCodeFeatures, "a number in [1, 2^31)");
  }
  const int64_t block = attributes.get_int("block_size");
  check("block_size",
        block >= kMinCodeBlock && block <= kMaxCodeFeatures && (block & (block - 1)) == 0,
        "a power of two of at least 16");
  const int64_t kind = attributes.get_int("quant_type");
  check("quant_type", kind == 0 || kind == 1, "0 (FP4) or 1 (NF4)");
}

bool is_weight_transposed(const Node& node) { return node.attributes.get_int("transB") != 0; }

void infer_code_product(InferContext& context) {
  check_code_attributes(context);
  const Node& node = context.node();
  const int64_t rows = node.attributes.get_int("N");
  const int64_t columns = node.attributes.get_int("K");
  const int64_t weights = rows * columns;
  const int64_t block = node.attributes.get_int("block_size");
  check_shape(context, 1, {weights / 2 + weights % 2});
  check_shape(context, 2, {weights / block + (weights % block == 0 ? 0 : 1)});
  context.set_output(0, context.element(0));
  const Shape* const input = context.shape(0);
  if (input == nullptr) return;
  const int64_t depth = is_weight_transposed(node) ? columns : rows;
  if (input->empty() || (input->back().is_known() && input->back() != Dim(depth))) {
    context.fail_input(0, "expected a last axis of " + std::to_string(depth) +
                              " as the attributes 'K', 'N' and 'transB' say, found shape [" +
                              text(*input) + "]");
  }
  Shape output = *input;
  output.back() = is_weight_transposed(node) ? rows : columns;
  context.set_output(0, context.element(0), std::move(output));
}

// Reads rows of the weights as real numbers: MatrixOperand::read.
struct CodeRows {
  const CodeBook& codes;
  const uint8_t* bytes = nullptr;
  std::span<const double> magnitudes;
  int64_t row_length = 0;
  int64_t block = 0;

  void operator()(int64_t, int64_t row, int64_t begin, int64_t count, double* target) const {
    const int64_t first = row * row_length + begin;
    for (int64_t index = first; index < first + count;) {
      const int64_t end = std::min(first + count, (index / block + 1) * block);
      const double magnitude = magnitudes[static_cast<size_t>(index / block)];
      for (; index < end; ++index) {
        // The first of two weights is in the upper bits.
        const int code = index % 2 == 0 ? bytes[index / 2] >> 4 : bytes[index / 2] & 0xF;
        *target++ = codes[static_cast<size_t>(code)] * magnitude;
      }
    }
  }
};

void run_code_product(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const Attributes& attributes = call.node.attributes;
  const std::pmr::vector<double> magnitudes = to_doubles(call.inputs[2], call.scratch);
  const CodeRows weights = {
      .codes = attributes.get_int("quant_type") == 0 ? kFloatCodes : kNormalCodes,
      .bytes = call.inputs[1].as<uint8_t>().data(),
      .magnitudes = magnitudes,
      .row_length = attributes.get_int("K"),
      .block = attributes.get_int("block_size")};
  const int64_t width = call.outputs[0].dims.back();
  const int64_t depth = call.inputs[0].dims.back();
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ReadDense<double, T> rows = {call.inputs[0].as<T>().data(), depth};
    T* const output = call.outputs[0].as<T>().data();
    const auto store = [&](int64_t, int64_t row, int64_t column, int64_t count,
                           const double* sums) {
      std::transform(sums, sums + count, output + row * width + column, from_double<T>);
    };
    multiply_matrices<double>(call, {.rows = call.outputs[0].elements / width,
                                     .columns = width,
                                     .depth = depth,
                                     .left = {rows, true},
                                     .right = {weights, is_weight_transposed(call.node)},
                                     .store = store});
  });
}

int64_t code_product_flops(const Node& node, std::span<const Type> inputs,
                           std::span<const Type> outputs) {
  const Dim depth = inputs[0].shape->back();
  return multiply(flops_per_output(node, inputs, outputs), multiply(depth, 2)).value();
}

}  // namespace

std::vector<Op> mat_mul_bnb4_ops() {
  return {{.name = "MatMulBnb4",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"A", "T1"}, {"B", "T2"}, {"absmax", "T1"}},
           .outputs = {{"Y", "T1"}},
           .type_variables = {{"T1", {DataType::Float32, DataType::Float16, DataType::BFloat16}},
                              {"T2", {DataType::UInt8}}},
           .attributes = {{"K", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"N", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"block_size", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"quant_type", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"training_mode", AttributeKind::Int, int64_t{0}},
                          {"transB", AttributeKind::Int, int64_t{1}}},
           .infer = infer_code_product,
           .flops = code_product_flops,
           .kernel = run_code_product}};
}

}  // namespace tessera::ops
