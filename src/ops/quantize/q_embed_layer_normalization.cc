// QEmbedLayerNormalization of com.microsoft: the sum of the embeddings of a token, its position and
// its segment, normalised. All tables are bytes.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <string>

#include "ops/check_shape.h"
#include "ops/normalization/normalize.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

enum EmbeddingInput : size_t {
  kTokenIds,
  kSegmentIds,
  kTokenTable,
  kPositionTable,
  kSegmentTable,
  kGamma,
  kBeta,
  kTokenMask,
  kTokenScale,
};

// The scales of the five tables follow each other, and then their zero points.
constexpr size_t kTables = 5;
constexpr size_t kTableInputs[kTables] = {kTokenTable, kPositionTable, kSegmentTable, kGamma,
                                          kBeta};

size_t scale_of_table(size_t table) { return kTokenScale + table; }
size_t zero_of_table(size_t table) { return kTokenScale + kTables + table; }

void check_segments(const InferContext& context) {
  constexpr size_t kSegment = 2;
  const bool has_ids = context.has_input(kSegmentIds);
  for (const size_t index :
       {size_t{kSegmentTable}, scale_of_table(kSegment), zero_of_table(kSegment)}) {
    if (context.has_input(index) == has_ids) continue;
    context.fail(
        "expected all of 'segment_ids', 'segment_embedding', its scale and its zero point, or "
        "none");
  }
}

void infer_embedding(InferContext& context) {
  check_segments(context);
  context.set_output(0, DataType::Float32);
  context.set_output(1, DataType::Int32);
  std::optional<Dim> hidden;
  for (size_t table = 0; table < kTables; ++table) {
    check_tensor_scale(context, scale_of_table(table), zero_of_table(table));
    const size_t input = kTableInputs[table];
    const Shape* const shape = context.has_input(input) ? context.shape(input) : nullptr;
    if (shape == nullptr) continue;
    const size_t rank = input == kGamma || input == kBeta ? 1 : 2;
    if (shape->size() != rank) {
      context.fail_input(
          input, "expected rank " + std::to_string(rank) + ", found shape [" + text(*shape) + "]");
    }
    if (hidden && !can_be_equal({*hidden}, {shape->back()})) {
      context.fail_input(input, "expected a last axis of " + hidden->text() +
                                    " as the tables before, found shape [" + text(*shape) + "]");
    }
    if (!hidden || !hidden->is_known()) hidden = shape->back();
  }
  const Shape* const ids = context.shape(kTokenIds);
  if (ids == nullptr) return;
  if (ids->size() != 2) {
    context.fail_input(kTokenIds, "expected [batch, sequence], found [" + text(*ids) + "]");
  }
  check_shape(context, kSegmentIds, *ids);
  check_shape(context, kTokenMask, *ids);
  context.set_output(1, DataType::Int32, Shape{ids->front()});
  if (hidden) context.set_output(0, DataType::Float32, Shape{ids->front(), ids->back(), *hidden});
}

// Adds row `index` of a table, as real numbers, to `sums`.
void add_quantized_embedding(const KernelCall& call, size_t table, int64_t index,
                             std::span<double> sums) {
  const TensorView& rows = call.inputs[kTableInputs[table]];
  if (index < 0 || index >= rows.dims[0]) {
    call.fail("expected a row in [0, " + std::to_string(rows.dims[0]) +
              ") of an embedding, found " + std::to_string(index));
  }
  const TensorScale scale = tensor_scale_of(call, scale_of_table(table), zero_of_table(table));
  visit_byte(rows.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const row = rows.as<T>().data() + index * std::ssize(sums);
    for (size_t unit = 0; unit < sums.size(); ++unit) sums[unit] += scale.real_of(row[unit]);
  });
}

std::pmr::vector<double> real_vector(const KernelCall& call, size_t table) {
  const TensorView& bytes = call.inputs[kTableInputs[table]];
  const TensorScale scale = tensor_scale_of(call, scale_of_table(table), zero_of_table(table));
  std::pmr::vector<double> reals(static_cast<size_t>(bytes.elements), &call.scratch);
  visit_byte(bytes.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::ranges::transform(bytes.as<T>(), reals.begin(),
                           [&](T element) { return scale.real_of(element); });
  });
  return reals;
}

// The number of tokens of each sequence; 0 without a mask.
void count_tokens(const KernelCall& call) {
  const std::span<int32_t> counts = call.outputs[1].as<int32_t>();
  std::ranges::fill(counts, 0);
  if (!call.has_input(kTokenMask)) return;
  const int64_t length = call.inputs[kTokenMask].dims[1];
  const int32_t* row = call.inputs[kTokenMask].as<int32_t>().data();
  for (int32_t& count : counts) {
    count = static_cast<int32_t>(std::count(row, row + length, 1));
    row += length;
  }
}

void run_embedding(const KernelCall& call) {
  if (call.has_output(1)) count_tokens(call);
  if (call.outputs[0].elements == 0) return;
  const int64_t tokens = call.inputs[kTokenIds].elements;
  const int64_t length = call.inputs[kTokenIds].dims[1];
  const auto hidden = static_cast<size_t>(call.outputs[0].dims[2]);
  const std::pmr::vector<double> gamma = real_vector(call, 3);
  const std::pmr::vector<double> beta = real_vector(call, 4);
  const double epsilon = call.node.attributes.get_float("epsilon");
  const std::span<const int32_t> ids = call.inputs[kTokenIds].as<int32_t>();
  std::pmr::vector<double> all(static_cast<size_t>(tokens) * hidden, 0.0, &call.scratch);
  float* const output = call.outputs[0].as<float>().data();
  call.pool.parallel_for(tokens, 16, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const auto at = static_cast<size_t>(token);
      const std::span<double> sums = std::span(all).subspan(at * hidden, hidden);
      add_quantized_embedding(call, 0, ids[at], sums);
      add_quantized_embedding(call, 1, token % length, sums);
      if (call.has_input(kSegmentIds)) {
        add_quantized_embedding(call, 2, call.inputs[kSegmentIds].as<int32_t>()[at], sums);
      }
      const Moments moments = moments_of(std::span<const double>(sums));
      const double inverse = moments.inverse_deviation(epsilon);
      for (size_t unit = 0; unit < hidden; ++unit) {
        const double normalized = (sums[unit] - moments.mean) * inverse;
        output[at * hidden + unit] = static_cast<float>(normalized * gamma[unit] + beta[unit]);
      }
    }
  });
}

}  // namespace

std::vector<Op> q_embed_layer_normalization_ops() {
  constexpr Arity kOptional = Arity::Optional;
  return {{.name = "QEmbedLayerNormalization",
           .domain = "com.microsoft",
           .versions = {1},
           .inputs = {{"input_ids", "T1"},
                      {"segment_ids", "T1", kOptional},
                      {"word_embedding_quant", "T2"},
                      {"position_embedding_quant", "T2"},
                      {"segment_embedding", "T2", kOptional},
                      {"gamma_quant", "T2"},
                      {"beta_quant", "T2"},
                      {"mask", "T1", kOptional},
                      {"word_embedding_scale", "T"},
                      {"position_embedding_scale", "T"},
                      {"segment_embedding_scale", "T", kOptional},
                      {"gamma_scale", "T"},
                      {"beta_scale", "T"},
                      {"word_embedding_zero_point", "T2"},
                      {"position_embedding_zero_point", "T2"},
                      {"segment_embedding_zero_point", "T2", kOptional},
                      {"gamma_zero_point", "T2"},
                      {"beta_zero_point", "T2"}},
           .outputs = {{"layernorm_out", "T"}, {"mask_index_out", "T1"}},
           .type_variables = {{"T", {DataType::Float32}},
                              {"T1", {DataType::Int32}},
                              {"T2", kByteTypes}},
           .attributes = {{"epsilon", AttributeKind::Float, 1e-12F}},
           .infer = infer_embedding,
           .flops = normalization_flops,
           .kernel = run_embedding}};
}

}  // namespace tessera::ops
