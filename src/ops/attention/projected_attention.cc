// Attention of com.microsoft: queries, keys and values are one projection of the input. That of
// ONNX's own domain is in attention.cc.
#include <algorithm>
#include <memory_resource>
#include <string>
#include <vector>

#include "ops/attention/heads.h"
#include "ops/attention/padded_attention.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/check_shape.h"
#include "ops/domains.h"
#include "ops/matmul/matrix_product.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// Positions of inputs.
constexpr size_t kWeights = 1;
constexpr size_t kBias = 2;
constexpr size_t kMaskIndex = 3;
constexpr size_t kPast = 4;
constexpr size_t kScoreBias = 5;

// --- Rule ----------------------------------------------------------------------------------------

// The widths of the projections to queries, keys and values.
struct ProjectedWidths {
  Dim query;
  Dim key;
  Dim value;
};

void refuse_unsupported_projection(const InferContext& context) {
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    if (context.node().attributes.get_int(name) == 0) continue;
    context.fail_unsupported("attribute '" + std::string(name) + "' has no kernel");
  }
  constexpr size_t kPastLength = 6;
  if (context.has_input(kPastLength)) {
    context.fail_unsupported("input 'past_sequence_length' has no kernel");
  }
}

// `width` is that of all three.
ProjectedWidths projected_widths(const InferContext& context, const Dim& width) {
  const std::vector<int64_t>* sizes = context.node().attributes.find_ints("qkv_hidden_sizes");
  if (sizes == nullptr || sizes->empty()) {
    if (width.is_known() && width.value() % 3 != 0) {
      context.fail_input(
          kWeights, "expected a second dimension that is a multiple of 3, found " + width.text());
    }
    const Dim third = floor_divide(width, 3);
    return {third, third, third};
  }
  const bool is_legal = sizes->size() == 3 &&
                        std::ranges::all_of(*sizes, [](int64_t size) { return size >= 0; }) &&
                        (*sizes)[0] == (*sizes)[1];
  if (!is_legal) {
    context.fail(
        "attribute 'qkv_hidden_sizes': expected 3 sizes, of which the first two are "
        "equal, found " +
        dims_text(*sizes));
  }
  const Dim sum = add(add((*sizes)[0], (*sizes)[1]), (*sizes)[2]);
  if (!can_be_equal({width}, {sum})) {
    context.fail_input(kWeights, "expected " + sum.text() +
                                     " along axis 1 as 'qkv_hidden_sizes' says, found " +
                                     width.text());
  }
  return {(*sizes)[0], (*sizes)[1], (*sizes)[2]};
}

void infer_projected_attention(InferContext& context) {
  refuse_unsupported_projection(context);
  const int64_t heads = required_heads(context, "num_heads");
  const DataType type = context.element(0);
  context.set_output(0, type);
  context.set_output(1, type);
  const Shape* input = shape_of_rank(context, 0, 3, "batch, positions, input size");
  const Shape* weights = shape_of_rank(context, kWeights, 2, "input size, projections");
  if (input == nullptr || weights == nullptr) return;
  check_dim(context, kWeights, 0, (*input)[2]);
  if (context.has_input(kBias)) check_shape(context, kBias, {(*weights)[1]});
  const ProjectedWidths widths = projected_widths(context, (*weights)[1]);
  const Dim& batch = (*input)[0];
  const Dim& queries = (*input)[1];
  const Dim head_size = head_size_of(context, kWeights, widths.query, heads);
  const Dim value_size = head_size_of(context, kWeights, widths.value, heads);
  context.set_output(0, type, Shape{batch, queries, widths.value});
  Dim total = queries;
  if (context.has_input(kPast)) {
    const Shape* past = shape_of_rank(context, kPast, 5, "2, batch, heads, positions, head size");
    if (past == nullptr) return;
    check_shape(context, kPast, {2, batch, heads, (*past)[3], head_size});
    total = add((*past)[3], queries);
  }
  const bool has_cache = context.has_input(kPast) ||
                         (context.output_count() > 1 && !context.node().outputs[1].is_none());
  if (has_cache && !can_be_equal({head_size}, {value_size})) {
    context.fail("expected keys and values of equal sizes with a cache, found " + head_size.text() +
                 " and " + value_size.text());
  }
  const ScoreDims scores = {batch, heads, queries, total};
  check_padding_mask(context, kMaskIndex, scores);
  check_score_bias(context, kScoreBias, scores);
  context.set_output(1, type, Shape{2, batch, heads, total, head_size});
}

// --- Kernel --------------------------------------------------------------------------------------

// Writes input times weights plus bias to `projected`, a row for each position of each batch.
void project(const KernelCall& call, double* projected) {
  const TensorView& input = call.inputs[0];
  const TensorView& weights = call.inputs[kWeights];
  const int64_t depth = weights.dims[0];
  const int64_t width = weights.dims[1];
  const HeadView rows = {input.type, input.data, 0, 0, depth};
  const HeadView columns = {weights.type, weights.data, 0, 0, width};
  std::pmr::vector<double> biases(static_cast<size_t>(width), &call.scratch);
  if (call.has_input(kBias)) {
    const HeadView bias = {call.inputs[kBias].type, call.inputs[kBias].data};
    bias.read(0, 0, 0, 0, width, biases.data());
  }
  const auto read_row = [&](int64_t, int64_t line, int64_t begin, int64_t count, double* target) {
    rows.read(0, 0, line, begin, count, target);
  };
  const auto read_column = [&](int64_t, int64_t line, int64_t begin, int64_t count,
                               double* target) { columns.read(0, 0, line, begin, count, target); };
  const auto store = [&](int64_t, int64_t row, int64_t column, int64_t count, const double* sums) {
    double* target = projected + row * width + column;
    for (int64_t index = 0; index < count; ++index) {
      target[index] = sums[index] + biases[static_cast<size_t>(column + index)];
    }
  };
  multiply_matrices<double>(call, {.rows = input.dims[0] * input.dims[1],
                                   .columns = width,
                                   .depth = depth,
                                   .left = {read_row, true},
                                   .right = {read_column, false},
                                   .store = store});
}

// Keys (part 0) or values (part 1) of a cache [2, batch, heads, positions, head size].
HeadView part_of_cache(const TensorView& cache, int64_t part) {
  const auto dims = cache.dims;
  const TensorView heads = {cache.type, dims.subspan(1), cache.data, cache.elements / 2};
  return advanced(heads_first(heads), part * heads.elements);
}

// Writes keys or values to the output of the cache.
void store_part(const KernelCall& call, const HeadSequence& sequence, const HeadSizes& recent,
                int64_t part) {
  if (!call.has_output(1)) return;
  const MutableTensorView& present = call.outputs[1];
  const int64_t half = present.elements / 2;
  MutableHeadView target =
      heads_first(MutableTensorView{present.type, present.dims.subspan(1), present.data, half});
  target.data = static_cast<char*>(target.data) + part * half * element_bytes(present.type);
  HeadSizes past = recent;
  past.positions = sequence.past_length;
  copy_heads(call, sequence.past, past, target);
  copy_heads(call, sequence.recent, recent, target, sequence.past_length);
}

void run_projected_attention(const KernelCall& call) {
  if (!has_output_elements(call)) return;
  const TensorView& input = call.inputs[0];
  const int64_t heads = call.node.attributes.get_int("num_heads");
  const int64_t width = call.inputs[kWeights].dims[1];
  const int64_t value_width = call.outputs[0].dims[2];
  const int64_t hidden = (width - value_width) / 2;
  std::pmr::vector<double> projected(static_cast<size_t>(input.dims[0] * input.dims[1] * width),
                                     &call.scratch);
  project(call, projected.data());
  const HeadView query = {DataType::Float64, projected.data(), input.dims[1] * width,
                          hidden / heads, width};
  HeadView value = advanced(query, 2 * hidden);
  value.head = value_width / heads;
  AttentionProblem problem = {.batch = input.dims[0],
                              .query_heads = heads,
                              .key_heads = heads,
                              .queries = input.dims[1],
                              .keys = input.dims[1],
                              .head_size = hidden / heads,
                              .value_size = value_width / heads,
                              .scale = scale_or_default(call.node, hidden / heads),
                              .query = query,
                              .key = {advanced(query, hidden)},
                              .value = {value},
                              .output = heads_last(call.outputs[0], heads)};
  if (call.has_input(kPast)) {
    problem.key.past = part_of_cache(call.inputs[kPast], 0);
    problem.value.past = part_of_cache(call.inputs[kPast], 1);
    problem.key.past_length = problem.value.past_length = call.inputs[kPast].dims[3];
  }
  const HeadSizes recent = {problem.batch, heads, problem.keys, problem.head_size};
  store_part(call, problem.key, recent, 0);
  store_part(call, problem.value, recent, 1);
  problem.keys += problem.key.past_length;
  PaddedAttention weights = padded_attention(call, kMaskIndex, kScoreBias);
  weights.past = problem.key.past_length;
  attend(call, problem, [&](const ScoreRow& row) { weights.weigh(row); });
}

int64_t projected_flops(const Node&, std::span<const Type> inputs, std::span<const Type> outputs) {
  const Shape& input = *inputs[0].shape;
  Dim keys = input[1];
  if (inputs.size() > kPast && inputs[kPast].shape) keys = add(keys, (*inputs[kPast].shape)[3]);
  const Dim positions = multiply(input[0], input[1]);
  const Dim weights = element_count(dims_from(*inputs[kWeights].shape));
  return add(attention_flops_of(outputs, keys), multiply(multiply(positions, weights), 2)).value();
}

}  // namespace

std::vector<Op> projected_attention_ops() {
  const auto optional = [](const char* name, const char* variable) {
    return Parameter{name, variable, Arity::Optional};
  };
  return {{.name = "Attention",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input", "T"},
                      {"weights", "T"},
                      optional("bias", "T"),
                      optional("mask_index", "M"),
                      optional("past", "T"),
                      optional("attention_bias", "T"),
                      optional("past_sequence_length", "M")},
           .outputs = {{"output", "T"}, optional("present", "T")},
           .type_variables = {{"T", kHeadTypes}, {"M", {DataType::Int32}}},
           .attributes = {{"do_rotary", AttributeKind::Int, int64_t{0}},
                          {"mask_filter_value", AttributeKind::Float},
                          {.name = "num_heads", .kind = AttributeKind::Int, .is_required = true},
                          {"past_present_share_buffer", AttributeKind::Int, int64_t{0}},
                          {"qkv_hidden_sizes", AttributeKind::Ints},
                          {"rotary_embedding_dim", AttributeKind::Int},
                          {"scale", AttributeKind::Float},
                          {"unidirectional", AttributeKind::Int, int64_t{0}}},
           .infer = infer_projected_attention,
           .flops = projected_flops,
           .kernel = run_projected_attention}};
}

}  // namespace tessera::ops
