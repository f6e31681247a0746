// MultiHeadAttention and DecoderMaskedMultiHeadAttention of com.microsoft: queries, keys and values
// in several layouts, with caches. The second one has one query and its inputs in another order.
#include <algorithm>
#include <memory_resource>
#include <string>
#include <vector>

#include "ops/attention/heads.h"
#include "ops/attention/padded_attention.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/check_shape.h"
#include "ops/convert_elements.h"
#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

// Where the inputs are.
struct HeadInputs {
  size_t bias = 3;
  size_t mask = 4;
  size_t score_bias = 5;
  size_t past_key = 6;
  size_t past_value = 7;
  size_t past_length = 8;
};

bool is_decoder(const Node& node) { return node.op != "MultiHeadAttention"; }

HeadInputs head_inputs(const Node& node) {
  if (is_decoder(node)) {
    return {
        .bias = 10, .mask = 3, .score_bias = 4, .past_key = 5, .past_value = 6, .past_length = 7};
  }
  return {};
}

// How the first three inputs hold the vectors.
enum class HeadLayout : uint8_t {
  Separate,    // [batch, positions, heads * size] each
  PackedKeys,  // key is [batch, positions, heads, 2, size]; there is no value
  PackedAll,   // query is [batch, positions, heads, 3, size]; there are no others
  PackedLine,  // query is [batch, positions, 3 * heads * size]; there are no others
  HeadsFirst,  // key and value are [batch, heads, positions, size]
};

HeadLayout head_layout(bool has_key, size_t query_rank, size_t key_rank) {
  if (!has_key) return query_rank == 5 ? HeadLayout::PackedAll : HeadLayout::PackedLine;
  if (key_rank == 5) return HeadLayout::PackedKeys;
  return key_rank == 4 ? HeadLayout::HeadsFirst : HeadLayout::Separate;
}

// Whether keys and values are written into the memory of the past, which has space for them.
bool shares_buffer(const Node& node, const HeadInputs& inputs) {
  if (is_decoder(node)) return node.attributes.get_int("past_present_share_buffer") != 0;
  return node.inputs.size() > inputs.past_length && !node.inputs[inputs.past_length].is_none();
}

// --- Rule ----------------------------------------------------------------------------------------

struct MultiHeadDims {
  Dim batch;
  Dim queries;
  Dim keys;  // without those of the cache
  Dim head_size;
  Dim value_size;
};

MultiHeadDims separate_dims(const InferContext& context, HeadLayout layout, int64_t heads) {
  const Shape* query = shape_of_rank(context, 0, 3, "batch, positions, heads times their size");
  const Shape& key = *context.shape(1);
  const Shape& value = *context.shape(2);
  const Dim query_size = head_size_of(context, 0, (*query)[2], heads);
  if (layout == HeadLayout::HeadsFirst) {
    shape_of_rank(context, 2, 4, "batch, heads, positions, head size");
    const MultiHeadDims dims = {merged((*query)[0], key[0]), (*query)[1], merged(key[2], value[2]),
                                merged(query_size, key[3]), value[3]};
    check_shape(context, 1, {dims.batch, heads, dims.keys, dims.head_size});
    check_shape(context, 2, {dims.batch, heads, dims.keys, dims.value_size});
    return dims;
  }
  shape_of_rank(context, 1, 3, "batch, positions, heads times their size");
  shape_of_rank(context, 2, 3, "batch, positions, heads times their size");
  const MultiHeadDims dims = {merged((*query)[0], key[0]), (*query)[1], merged(key[1], value[1]),
                              query_size, head_size_of(context, 2, value[2], heads)};
  check_shape(context, 1, {dims.batch, dims.keys, (*query)[2]});
  check_shape(context, 2, {dims.batch, dims.keys, value[2]});
  return dims;
}

MultiHeadDims packed_dims(const InferContext& context, HeadLayout layout, int64_t heads) {
  const Shape& query = *context.shape(0);
  if (context.has_input(2)) context.fail_input(2, "expected none beside packed keys, found one");
  if (layout == HeadLayout::PackedLine) {
    shape_of_rank(context, 0, 3, "batch, positions, three times heads times their size");
    const Dim size = head_size_of(context, 0, query[2], 3 * heads);
    return {query[0], query[1], query[1], size, size};
  }
  const size_t packed = layout == HeadLayout::PackedAll ? 0 : 1;
  const Shape& shape = *context.shape(packed);
  const Dim batch = merged(query[0], shape[0]);
  const int64_t parts = layout == HeadLayout::PackedAll ? 3 : 2;
  check_shape(context, packed, {batch, shape[1], heads, parts, shape[4]});
  if (packed == 1) {
    shape_of_rank(context, 0, 3, "batch, positions, heads times their size");
    check_shape(context, 0, {batch, query[1], multiply(shape[4], heads)});
  }
  return {batch, query[1], shape[1], shape[4], shape[4]};
}

// nullopt if a rank is unknown.
std::optional<MultiHeadDims> multi_head_dims(const InferContext& context, int64_t heads) {
  const Shape* query = context.shape(0);
  const bool has_key = context.has_input(1);
  const Shape* key = has_key ? context.shape(1) : nullptr;
  if (query == nullptr || (has_key && key == nullptr)) return std::nullopt;
  const HeadLayout layout = head_layout(has_key, query->size(), has_key ? key->size() : 0);
  if (layout != HeadLayout::Separate && layout != HeadLayout::HeadsFirst) {
    return packed_dims(context, layout, heads);
  }
  if (!context.has_input(2)) context.fail_input(1, "expected input 'value' beside it, found none");
  if (context.shape(2) == nullptr) return std::nullopt;
  return separate_dims(context, layout, heads);
}

// The positions of the cache before the new ones; nullopt if they are unknown.
std::optional<Dim> cached_positions(const InferContext& context, const HeadInputs& inputs) {
  if (!context.has_input(inputs.past_key)) return Dim(0);
  if (!shares_buffer(context.node(), inputs)) {
    const Shape* past = context.shape(inputs.past_key);
    return past == nullptr ? std::nullopt : std::optional((*past)[2]);
  }
  if (!context.has_input(inputs.past_length)) {
    context.fail("expected the input 'past_sequence_length' with a shared buffer, found none");
  }
  const auto length = dim_list(context, inputs.past_length);
  if (!length) return std::nullopt;
  if (length->size() != 1) {
    context.fail_input(inputs.past_length,
                       "expected one number, found " + std::to_string(length->size()));
  }
  if (length->front().is_known() && length->front().value() < 0) {
    context.fail_input(inputs.past_length, "expected at least 0, found " + length->front().text());
  }
  return length->front();
}

void check_cache(const InferContext& context, const HeadInputs& inputs, const MultiHeadDims& dims,
                 int64_t heads) {
  check_pair(context, inputs.past_key, inputs.past_value);
  const char* meaning = "batch, heads, positions, head size";
  const Shape* key = shape_of_rank(context, inputs.past_key, 4, meaning);
  const Shape* value = shape_of_rank(context, inputs.past_value, 4, meaning);
  if (key == nullptr || value == nullptr) return;
  const Dim positions = merged((*key)[2], (*value)[2]);
  check_shape(context, inputs.past_key, {dims.batch, heads, positions, dims.head_size});
  check_shape(context, inputs.past_value, {dims.batch, heads, positions, dims.value_size});
}

// Beams of a search share caches.
void refuse_beams(const InferContext& context) {
  constexpr size_t kBeamWidth = 8;
  constexpr size_t kIndirection = 9;
  const bool has_width = is_decoder(context.node()) && context.has_input(kBeamWidth);
  const auto width = has_width ? integer_list(context, kBeamWidth) : std::nullopt;
  const bool has_beams = width && (width->size() != 1 || width->front() != 1);
  if (!has_beams && !context.has_input(kIndirection)) return;
  context.fail_unsupported("the inputs of a beam search have no kernel");
}

void infer_multi_head_attention(InferContext& context) {
  refuse_beams(context);
  const HeadInputs inputs = head_inputs(context.node());
  const int64_t heads = required_heads(context, "num_heads");
  const DataType type = context.element(0);
  for (size_t output = 0; output < 4; ++output) context.set_output(output, type);
  const auto dims = multi_head_dims(context, heads);
  if (!dims) return;
  if (is_decoder(context.node()) && !can_be_equal({dims->queries}, {Dim(1)})) {
    context.fail_input(0, "expected one position, found " + dims->queries.text());
  }
  check_cache(context, inputs, *dims, heads);
  if (context.has_input(inputs.bias)) {
    const Dim hidden = multiply(dims->head_size, heads);
    check_shape(context, inputs.bias,
                {add(multiply(hidden, 2), multiply(dims->value_size, heads))});
  }
  context.set_output(0, type, Shape{dims->batch, dims->queries, multiply(dims->value_size, heads)});
  const std::optional<Dim> past = cached_positions(context, inputs);
  const Dim total = past ? add(*past, dims->keys) : unknown_dim(context, 3, 3);
  const bool is_shared =
      shares_buffer(context.node(), inputs) && context.has_input(inputs.past_key);
  const Shape* cache = is_shared ? context.shape(inputs.past_key) : nullptr;
  const Dim present = !is_shared         ? total
                      : cache == nullptr ? unknown_dim(context, 1, 2)
                                         : (*cache)[2];
  if (total.is_known() && present.is_known() && total.value() > present.value()) {
    context.fail_input(inputs.past_key, "expected space for " + total.text() +
                                            " positions, found " + present.text());
  }
  const ScoreDims scores = {dims->batch, heads, dims->queries, total};
  check_padding_mask(context, inputs.mask, scores);
  check_score_bias(context, inputs.score_bias, scores);
  context.set_output(1, type, Shape{dims->batch, heads, present, dims->head_size});
  context.set_output(2, type, Shape{dims->batch, heads, present, dims->value_size});
  context.set_output(3, type, Shape{dims->batch, heads, dims->queries, total});
}

// --- Kernel --------------------------------------------------------------------------------------

// Queries, keys and values of [batch, positions, heads, size], where `parts` of them lie side by
// side for each head.
HeadView packed_view(const TensorView& tensor, int64_t part) {
  const auto dims = tensor.dims;
  const int64_t parts = dims[3];
  const int64_t size = dims[4];
  const HeadView view = {tensor.type, tensor.data, dims[1] * dims[2] * parts * size, parts * size,
                         dims[2] * parts * size};
  return advanced(view, part * size);
}

// Query, key and value of a line of all three.
HeadView line_view(const TensorView& tensor, int64_t heads, int64_t part) {
  const int64_t width = tensor.dims[2];
  const HeadView view = {tensor.type, tensor.data, tensor.dims[1] * width, width / 3 / heads,
                         width};
  return advanced(view, part * (width / 3));
}

AttentionProblem multi_head_problem(const KernelCall& call) {
  const TensorView& query = call.inputs[0];
  const bool has_key = call.inputs.size() > 1 && !call.node.inputs[1].is_none();
  const HeadLayout layout =
      head_layout(has_key, query.dims.size(), has_key ? call.inputs[1].dims.size() : 0);
  const int64_t heads = call.node.attributes.get_int("num_heads");
  AttentionProblem problem = {.batch = query.dims[0],
                              .query_heads = heads,
                              .key_heads = heads,
                              .queries = query.dims[1],
                              .keys = query.dims[1]};
  problem.output = heads_last(call.outputs[0], heads);
  problem.value_size = call.outputs[0].dims[2] / heads;
  problem.head_size = problem.value_size;
  if (layout == HeadLayout::PackedAll) {
    problem.query = packed_view(query, 0);
    problem.key.recent = packed_view(query, 1);
    problem.value.recent = packed_view(query, 2);
  } else if (layout == HeadLayout::PackedLine) {
    problem.query = line_view(query, heads, 0);
    problem.key.recent = line_view(query, heads, 1);
    problem.value.recent = line_view(query, heads, 2);
  } else {
    const TensorView& key = call.inputs[1];
    problem.query = heads_last(query, heads);
    problem.head_size = query.dims[2] / heads;
    problem.keys = key.dims[layout == HeadLayout::HeadsFirst ? 2 : 1];
    if (layout == HeadLayout::PackedKeys) {
      problem.key.recent = packed_view(key, 0);
      problem.value.recent = packed_view(key, 1);
    } else if (layout == HeadLayout::HeadsFirst) {
      problem.key.recent = heads_first(key);
      problem.value.recent = heads_first(call.inputs[2]);
    } else {
      problem.key.recent = heads_last(key, heads);
      problem.value.recent = heads_last(call.inputs[2], heads);
    }
  }
  return problem;
}

// Replaces a view by that of its vectors plus `bias`, one number for each element of all heads, in
// `memory`.
void add_head_bias(const KernelCall& call, HeadView& view, const HeadSizes& sizes,
                   const HeadView& bias, std::pmr::vector<double>& memory) {
  const int64_t width = sizes.heads * sizes.size;
  memory.resize(static_cast<size_t>(sizes.batch * sizes.positions * width));
  std::pmr::vector<double> biases(static_cast<size_t>(width), &call.scratch);
  bias.read(0, 0, 0, 0, width, biases.data());
  const MutableHeadView sums = {DataType::Float64, memory.data(), sizes.positions * width,
                                sizes.size, width};
  copy_heads(call, view, sizes, sums);
  for (size_t index = 0; index < memory.size(); ++index) {
    memory[index] += biases[index % static_cast<size_t>(width)];
  }
  view = sums.as_const();
}

// Sums of queries, keys and values with the bias of their projections.
struct BiasedHeads {
  explicit BiasedHeads(std::pmr::memory_resource* memory)
      : query(memory), key(memory), value(memory) {}

  std::pmr::vector<double> query;
  std::pmr::vector<double> key;
  std::pmr::vector<double> value;
};

void add_biases(const KernelCall& call, size_t input, AttentionProblem& problem,
                BiasedHeads& memory) {
  const TensorView& tensor = call.inputs[input];
  const HeadView bias = {tensor.type, tensor.data};
  const int64_t hidden = problem.query_heads * problem.head_size;
  HeadSizes sizes = {problem.batch, problem.query_heads, problem.queries, problem.head_size};
  add_head_bias(call, problem.query, sizes, bias, memory.query);
  // Keys and values that an earlier call has made have their bias already.
  if (call.inputs.size() > 1 && call.inputs[1].rank() == 4) return;
  sizes.positions = problem.keys;
  add_head_bias(call, problem.key.recent, sizes, advanced(bias, hidden), memory.key);
  sizes.size = problem.value_size;
  add_head_bias(call, problem.value.recent, sizes, advanced(bias, 2 * hidden), memory.value);
}

// Writes a cache: the whole buffer of the past if it is shared, then the new positions.
void store_cache(const KernelCall& call, size_t output, size_t past, const HeadSequence& sequence,
                 const HeadSizes& recent, bool is_shared) {
  if (is_shared && call.has_output(output)) {
    HeadSizes buffer = recent;
    buffer.positions = call.inputs[past].dims[2];
    copy_heads(call, sequence.past, buffer, heads_first(call.outputs[output]));
  }
  store_sequence(call, output, sequence, recent);
}

void add_past(const KernelCall& call, const HeadInputs& inputs, AttentionProblem& problem) {
  if (!call.has_input(inputs.past_key)) return;
  problem.key.past = heads_first(call.inputs[inputs.past_key]);
  problem.value.past = heads_first(call.inputs[inputs.past_value]);
  const int64_t length = shares_buffer(call.node, inputs)
                             ? integer_at(call.inputs[inputs.past_length], 0)
                             : call.inputs[inputs.past_key].dims[2];
  problem.key.past_length = problem.value.past_length = length;
}

void run_multi_head_attention(const KernelCall& call) {
  if (!has_output_elements(call)) return;
  const HeadInputs inputs = head_inputs(call.node);
  AttentionProblem problem = multi_head_problem(call);
  problem.scale = scale_or_default(call.node, problem.head_size);
  BiasedHeads memory(&call.scratch);
  if (call.has_input(inputs.bias)) add_biases(call, inputs.bias, problem, memory);
  add_past(call, inputs, problem);
  const HeadSizes keys = {problem.batch, problem.key_heads, problem.keys, problem.head_size};
  HeadSizes values = keys;
  values.size = problem.value_size;
  const bool is_shared = shares_buffer(call.node, inputs) && call.has_input(inputs.past_key);
  store_cache(call, 1, inputs.past_key, problem.key, keys, is_shared);
  store_cache(call, 2, inputs.past_value, problem.value, values, is_shared);
  problem.keys += problem.key.past_length;
  PaddedAttention weights = padded_attention(call, inputs.mask, inputs.score_bias);
  weights.past = problem.key.past_length;
  weights.scores = call.has_output(3) ? &call.outputs[3] : nullptr;
  attend(call, problem, [&](const ScoreRow& row) { weights.weigh(row); });
}

int64_t multi_head_flops(const Node& node, std::span<const Type> inputs,
                         std::span<const Type> outputs) {
  const bool has_key = inputs.size() > 1 && inputs[1].shape;
  const Shape& key = *inputs[has_key ? 1 : 0].shape;
  Dim keys = key[has_key && key.size() == 4 ? 2 : 1];
  const size_t past = head_inputs(node).past_key;
  if (inputs.size() > past && inputs[past].shape) keys = add(keys, (*inputs[past].shape)[2]);
  return attention_flops_of(outputs, keys);
}

// --- Schemas -------------------------------------------------------------------------------------

Parameter optional_of(const char* name, const char* variable) {
  return {name, variable, Arity::Optional};
}

Op multi_head_op() {
  const auto& optional = optional_of;
  return {.name = "MultiHeadAttention",
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"query", "T"},
                     optional("key", "T"),
                     optional("value", "T"),
                     optional("bias", "T"),
                     optional("key_padding_mask", "M"),
                     optional("attention_bias", "T"),
                     optional("past_key", "T"),
                     optional("past_value", "T"),
                     optional("past_sequence_length", "M"),
                     optional("cache_indirection", "M")},
          .outputs = {{"output", "T"},
                      optional("present_key", "T"),
                      optional("present_value", "T"),
                      optional("qk", "QK")},
          .type_variables = {{"T", kHeadTypes}, {"QK", kHeadTypes}, {"M", {DataType::Int32}}},
          .attributes = {{"mask_filter_value", AttributeKind::Float},
                         {.name = "num_heads", .kind = AttributeKind::Int, .is_required = true},
                         {"scale", AttributeKind::Float},
                         {"unidirectional", AttributeKind::Int, int64_t{0}}},
          .infer = infer_multi_head_attention,
          .flops = multi_head_flops,
          .kernel = run_multi_head_attention};
}

Op decoder_op() {
  const auto& optional = optional_of;
  Op op = multi_head_op();
  op.name = "DecoderMaskedMultiHeadAttention";
  op.inputs = {{"query", "T"},
               optional("key", "T"),
               optional("value", "T"),
               optional("mask_index", "M"),
               optional("attention_bias", "T"),
               optional("past_key", "T"),
               optional("past_value", "T"),
               optional("past_sequence_length", "M"),
               optional("beam_width", "M"),
               optional("cache_indirection", "M"),
               optional("bias", "T")};
  op.attributes.back() = {"past_present_share_buffer", AttributeKind::Int, int64_t{0}};
  op.attributes.push_back({"output_qk", AttributeKind::Int, int64_t{0}});
  return op;
}

}  // namespace

std::vector<Op> multi_head_attention_ops() { return {multi_head_op(), decoder_op()}; }

}  // namespace tessera::ops
