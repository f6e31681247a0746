// GroupQueryAttention of com.microsoft: causal attention with a cache, whose sequences may have
// different lengths, and with the rotation of queries and keys.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <string>
#include <vector>

#include "ops/attention/heads.h"
#include "ops/attention/padded_attention.h"
#include "ops/attention/rotation.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/check_shape.h"
#include "ops/convert_elements.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_arithmetic.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

// Positions of inputs.
constexpr size_t kKey = 1;
constexpr size_t kValue = 2;
constexpr size_t kPastKey = 3;
constexpr size_t kPastValue = 4;
constexpr size_t kLengths = 5;  // of each sequence, without the last position
constexpr size_t kTotalLength = 6;
constexpr size_t kCosines = 7;
constexpr size_t kSines = 8;
constexpr size_t kPositions = 9;
constexpr size_t kScoreBias = 10;
constexpr size_t kSink = 11;
constexpr size_t kKeyScale = 12;
constexpr size_t kValueScale = 13;
constexpr size_t kQueryNorm = 14;
constexpr size_t kKeyNorm = 15;

// --- Rule ----------------------------------------------------------------------------------------

struct GroupDims {
  Dim batch;
  Dim queries;
  Dim keys;  // without those of the cache
  Dim head_size;
};

void refuse_unsupported_cache(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (attributes.get_string(name) == "NONE") continue;
    context.fail_unsupported("attribute '" + std::string(name) + "': quantised caches have no "
                             "kernel");
  }
  if (context.has_input(kKeyScale) || context.has_input(kValueScale)) {
    context.fail_unsupported("quantised caches have no kernel");
  }
  if (attributes.get_int("sliding_window_cache") != 0) {
    context.fail_unsupported("attribute 'sliding_window_cache': caches of the size of the window "
                             "have no kernel");
  }
}

void check_group_attributes(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const int64_t output = attributes.get_int("qk_output");
  if (output < 0 || output > 2) {
    context.fail("attribute 'qk_output': expected 0, 1 or 2, found " + std::to_string(output));
  }
  const int64_t window = attributes.get_int("local_window_size");
  if (window < -1) {
    context.fail("attribute 'local_window_size': expected -1 or more, found " +
                 std::to_string(window));
  }
  if (window >= 0 && attributes.get_int("causal") == 0) {
    context.fail("attribute 'local_window_size': expected -1 without causal attention, found " +
                 std::to_string(window));
  }
}

std::optional<GroupDims> group_dims(const InferContext& context, int64_t heads,
                                    int64_t key_heads) {
  const Shape* query = shape_of_rank(context, 0, 3, "batch, positions, heads times their size");
  check_pair(context, kKey, kValue);
  if (query == nullptr) return std::nullopt;
  if (!context.has_input(kKey)) {
    const int64_t parts = Dim(add(heads, multiply(key_heads, 2))).value();
    return GroupDims{(*query)[0], (*query)[1], (*query)[1],
                     head_size_of(context, 0, (*query)[2], parts)};
  }
  const Shape* key = shape_of_rank(context, kKey, 3, "batch, positions, heads times their size");
  const Shape* value =
      shape_of_rank(context, kValue, 3, "batch, positions, heads times their size");
  if (key == nullptr || value == nullptr) return std::nullopt;
  const GroupDims dims = {merged((*query)[0], (*key)[0]), (*query)[1],
                          merged((*key)[1], (*value)[1]),
                          head_size_of(context, 0, (*query)[2], heads)};
  const Shape expected = {dims.batch, dims.keys, multiply(dims.head_size, key_heads)};
  check_shape(context, kKey, expected);
  check_shape(context, kValue, expected);
  return dims;
}

void check_rotation(const InferContext& context, const GroupDims& dims) {
  check_pair(context, kCosines, kSines);
  if (context.node().attributes.get_int("do_rotary") == 0) return;
  if (!context.has_input(kCosines)) {
    context.fail("expected the inputs 'cos_cache' and 'sin_cache' with 'do_rotary', found none");
  }
  const Shape* cosines = shape_of_rank(context, kCosines, 2, "positions, half of the rotated size");
  shape_of_rank(context, kSines, 2, "positions, half of the rotated size");
  if (cosines == nullptr) return;
  check_shape(context, kSines, *cosines);
  const Dim& half = (*cosines)[1];
  if (half.is_known() && dims.head_size.is_known() &&
      half.value() > dims.head_size.value() / 2) {
    context.fail_input(kCosines, "expected at most " + std::to_string(dims.head_size.value() / 2) +
                                     " numbers in a row, half the size of a head, found " +
                                     half.text());
  }
  if (context.has_input(kPositions)) {
    shape_of_rank(context, kPositions, 2, "batch, positions");
  }
}

// The number of keys that the longest sequence has after this call, and that of the new caches.
struct CacheLengths {
  Dim total;
  Dim present;
};

CacheLengths cache_lengths(const InferContext& context, const GroupDims& dims) {
  const auto total = dim_list(context, kTotalLength);
  if (total && (total->size() != 1 || (total->front().is_known() && total->front().value() < 0))) {
    context.fail_input(kTotalLength, "expected one number of at least 0, found " +
                                         (total->size() == 1 ? total->front().text()
                                                             : std::to_string(total->size())));
  }
  const Shape* past = context.has_input(kPastKey) ? context.shape(kPastKey) : nullptr;
  if (!total) {
    return {unknown_dim(context, 3, 3), unknown_dim(context, 1, 2)};
  }
  const Dim& length = total->front();
  if (!context.has_input(kPastKey)) return {length, length};
  if (past == nullptr) return {length, unknown_dim(context, 1, 2)};
  // A cache either grows by the new positions or has space for them.
  const Dim grown = add((*past)[2], dims.keys);
  if (length.is_known() && grown.is_known() && length != grown &&
      length.value() > (*past)[2].value()) {
    context.fail_input(kTotalLength, "expected " + grown.text() + " or at most " +
                                         (*past)[2].text() + ", the positions of the cache, found " +
                                         length.text());
  }
  return {length, length == grown ? grown : larger_element(length, (*past)[2])};
}

void check_other_inputs(const InferContext& context, const GroupDims& dims, int64_t heads,
                        int64_t key_heads) {
  check_pair(context, kPastKey, kPastValue);
  const char* meaning = "batch, heads, positions, head size";
  const Shape* past = shape_of_rank(context, kPastKey, 4, meaning);
  shape_of_rank(context, kPastValue, 4, meaning);
  if (past != nullptr) {
    const Shape expected = {dims.batch, key_heads, (*past)[2], dims.head_size};
    check_shape(context, kPastKey, expected);
    check_shape(context, kPastValue, expected);
  }
  const Shape* lengths = context.shape(kLengths);
  if (lengths != nullptr && !can_be_equal(*lengths, {dims.batch}) &&
      !can_be_equal(*lengths, {dims.batch, 1})) {
    context.fail_input(kLengths, "expected shape [" + dims.batch.text() + "], found [" +
                                     text(*lengths) + "]");
  }
  if (context.has_input(kSink)) check_shape(context, kSink, {heads});
  check_pair(context, kQueryNorm, kKeyNorm);
  for (const size_t index : {kQueryNorm, kKeyNorm}) {
    if (context.has_input(index)) check_shape(context, index, {dims.head_size});
  }
}

void infer_group_query_attention(InferContext& context) {
  refuse_unsupported_cache(context);
  check_group_attributes(context);
  const int64_t heads = required_heads(context, "num_heads");
  const int64_t key_heads = required_heads(context, "kv_num_heads");
  check_groups(context, heads, key_heads);
  const DataType type = context.element(0);
  for (const size_t index : {kPastKey, kPastValue}) {
    if (!context.has_input(index)) continue;
    const DataType cached = context.element(index);
    if (cached == type || cached == DataType::Undefined || type == DataType::Undefined) continue;
    context.fail_unsupported("caches of another type than that of the queries have no kernel");
  }
  for (size_t output = 0; output < 4; ++output) context.set_output(output, type);
  const auto dims = group_dims(context, heads, key_heads);
  if (!dims) return;
  check_rotation(context, *dims);
  check_other_inputs(context, *dims, heads, key_heads);
  const CacheLengths lengths = cache_lengths(context, *dims);
  const Shape scores = {dims->batch, heads, dims->queries, lengths.total};
  check_score_bias(context, kScoreBias, {dims->batch, heads, dims->queries, lengths.total});
  context.set_output(0, type,
                     Shape{dims->batch, dims->queries, multiply(dims->head_size, heads)});
  const Shape present = {dims->batch, key_heads, lengths.present, dims->head_size};
  context.set_output(1, type, present);
  context.set_output(2, type, present);
  context.set_output(3, type, scores);
}

// --- Kernel --------------------------------------------------------------------------------------

// What the kernel knows of a call.
struct GroupCall {
  const KernelCall& call;
  HeadSizes queries;
  HeadSizes keys;  // new ones
  int64_t total = 0;
  bool is_prompt = false;  // the queries are the first positions of all sequences

  // The number of keys of a sequence after this call.
  int64_t length(int64_t b) const { return integer_at(call.inputs[kLengths], b) + 1; }
  // The position of the first new key, and of the first query.
  int64_t first_key(int64_t b) const { return is_prompt ? 0 : length(b) - keys.positions; }
  int64_t first_query(int64_t b) const { return is_prompt ? 0 : length(b) - queries.positions; }
};

GroupCall group_call(const KernelCall& call) {
  const TensorView& query = call.inputs[0];
  const int64_t heads = call.node.attributes.get_int("num_heads");
  const int64_t key_heads = call.node.attributes.get_int("kv_num_heads");
  const int64_t size = call.outputs[0].dims[2] / heads;
  const bool has_key = !call.node.inputs[kKey].is_none();
  const int64_t added = has_key ? call.inputs[kKey].dims[1] : query.dims[1];
  const int64_t total = integer_at(call.inputs[kTotalLength], 0);
  return {.call = call,
          .queries = {query.dims[0], heads, query.dims[1], size},
          .keys = {query.dims[0], key_heads, added, size},
          .total = total,
          .is_prompt = query.dims[1] == total && added == total};
}

// fail()s unless the new positions of all sequences lie in the cache.
void check_lengths(const GroupCall& group) {
  for (int64_t b = 0; b < group.queries.batch; ++b) {
    const int64_t least =
        group.is_prompt ? 1 : std::max(group.queries.positions, group.keys.positions);
    if (group.length(b) >= least && group.length(b) <= group.total) continue;
    group.call.fail("input 'seqlens_k': expected numbers in [" + std::to_string(least - 1) + ", " +
                    std::to_string(group.total) + "), found " +
                    std::to_string(group.length(b) - 1));
  }
}

// Divides each vector by its root mean square, times the weights: Zhang and Sennrich, 2019,
// https://arxiv.org/abs/1910.07467.
void normalize_heads(const KernelCall& call, const HeadSizes& sizes, size_t weights,
                     const HeadView& source, const MutableHeadView& target) {
  const double epsilon = call.node.attributes.get_float("qk_norm_epsilon");
  std::pmr::vector<double> factors(static_cast<size_t>(sizes.size), &call.scratch);
  const HeadView given = {call.inputs[weights].type, call.inputs[weights].data};
  given.read(0, 0, 0, 0, sizes.size, factors.data());
  for_each_vector(call, sizes, [&](const HeadPlace& place) {
    copy_vector(source, place, target, place, sizes.size);
    double* const vector = static_cast<double*>(target.data) +
                           target.as_const().offset(place.b, place.h, place.s);
    double squares = 0;
    for (int64_t index = 0; index < sizes.size; ++index) squares += vector[index] * vector[index];
    const double root = std::sqrt(squares / static_cast<double>(sizes.size) + epsilon);
    for (int64_t index = 0; index < sizes.size; ++index) {
      vector[index] = vector[index] / root * factors[static_cast<size_t>(index)];
    }
  });
}

// The row of the angles for a new position, the first of which is `first`.
int64_t angle_row(const GroupCall& group, int64_t b, int64_t s, int64_t first, int64_t rows) {
  const KernelCall& call = group.call;
  int64_t row = first + s;
  if (call.has_input(kPositions)) {
    // Of a prompt, only the first one is read.
    const TensorView& ids = call.inputs[kPositions];
    const int64_t place = group.is_prompt ? 0 : b * ids.dims[1] + s;
    if (place >= ids.elements) {
      call.fail("input 'position_ids': expected a number for each position, found " +
                dims_text({ids.dims.begin(), ids.dims.end()}));
    }
    row = integer_at(ids, place) + (group.is_prompt ? s : 0);
  }
  if (row < 0 || row >= rows) {
    call.fail("expected positions in [0, " + std::to_string(rows) +
              "), those of 'cos_cache', found " + std::to_string(row));
  }
  return row;
}

// Vectors after their normalisation and rotation, if the node asks for these.
class PreparedHeads {
 public:
  explicit PreparedHeads(std::pmr::memory_resource* memory)
      : normalized_(memory), rotated_(memory) {}

  // first(b) is the position of the first vector. The result is valid as long as this.
  HeadView prepare(const GroupCall& group, HeadView view, const HeadSizes& sizes, size_t weights,
                   FunctionRef<int64_t(int64_t b)> first) {
    const KernelCall& call = group.call;
    if (call.has_input(weights)) {
      const MutableHeadView target = memory_for(sizes, normalized_);
      normalize_heads(call, sizes, weights, view, target);
      view = target.as_const();
    }
    if (call.node.attributes.get_int("do_rotary") == 0) return view;
    const Rotation rotation = {call.inputs[kCosines], call.inputs[kSines],
                               2 * call.inputs[kCosines].dims[1],
                               call.node.attributes.get_int("rotary_interleaved") != 0};
    const int64_t rows = rotation.cosines.dims[0];
    const MutableHeadView target = memory_for(sizes, rotated_);
    rotate_heads(call, rotation, view, sizes, target, [&](int64_t b, int64_t s) {
      return angle_row(group, b, s, first(b), rows);
    });
    return target.as_const();
  }

 private:
  static MutableHeadView memory_for(const HeadSizes& sizes, std::pmr::vector<double>& memory) {
    const int64_t head = sizes.positions * sizes.size;
    memory.resize(static_cast<size_t>(sizes.batch * sizes.heads * head));
    return {DataType::Float64, memory.data(), sizes.heads * head, head, sizes.size};
  }

  std::pmr::vector<double> normalized_;
  std::pmr::vector<double> rotated_;
};

// Writes a cache after this call: the positions of the past, the new ones, and zeros.
void fill_cache(const GroupCall& group, size_t past, const HeadView& recent,
                const MutableHeadView& target, int64_t positions) {
  const KernelCall& call = group.call;
  HeadSizes sizes = group.keys;
  const std::pmr::vector<double> zeros(static_cast<size_t>(sizes.size), &call.scratch);
  const bool has_past = call.has_input(past);
  const HeadView before = has_past ? heads_first(call.inputs[past]) : HeadView();
  sizes.positions = positions;
  for_each_vector(call, sizes, [&](const HeadPlace& place) {
    const int64_t first = group.first_key(place.b);
    if (place.s >= first && place.s < first + group.keys.positions) {
      copy_vector(recent, {place.b, place.h, place.s - first}, target, place, sizes.size);
    } else if (place.s < first && has_past) {
      copy_vector(before, place, target, place, sizes.size);
    } else {
      target.write(place.b, place.h, place.s, 0, sizes.size, zeros.data());
    }
  });
}

// The cache in output `output`, or in `memory` if the node leaves it out.
HeadView cached_heads(const GroupCall& group, size_t output, size_t past, const HeadView& recent,
                      std::pmr::vector<double>& memory) {
  const KernelCall& call = group.call;
  MutableHeadView target;
  int64_t positions = group.total;
  if (call.has_output(output)) {
    target = heads_first(call.outputs[output]);
    positions = call.outputs[output].dims[2];
  } else {
    const int64_t head = positions * group.keys.size;
    memory.resize(static_cast<size_t>(group.keys.batch * group.keys.heads * head));
    target = {DataType::Float64, memory.data(), group.keys.heads * head, head, group.keys.size};
  }
  fill_cache(group, past, recent, target, positions);
  return target.as_const();
}

// All that decides the weights of a row.
struct GroupWeights {
  const GroupCall& group;
  ScoreBias bias;
  bool is_causal = true;
  int64_t window = -1;  // the number of keys that a query sees, with its own; -1: all
  double cap = 0;
  const TensorView* sinks = nullptr;  // by head
  double sink = -std::numeric_limits<double>::infinity();
  int64_t output = 0;  // whether scores are given: 1: before the softmax, 2: after it
  const MutableTensorView* scores = nullptr;

  void weigh(const ScoreRow& row) const;
};

void GroupWeights::weigh(const ScoreRow& row) const {
  const int64_t position = group.first_query(row.batch) + row.query;
  int64_t end = group.length(row.batch);
  if (is_causal) end = std::min(end, position + 1);
  const int64_t begin = window < 0 ? 0 : std::clamp<int64_t>(position + 1 - window, 0, end);
  cap_scores(row.scores, cap);
  bias.add_to(row);
  std::fill(row.scores.begin(), row.scores.begin() + begin, 0.0);
  std::fill(row.scores.begin() + end, row.scores.end(), 0.0);
  if (output == 1 && scores != nullptr) store_row(row, *scores);
  const std::span seen = row.scores.subspan(static_cast<size_t>(begin),
                                            static_cast<size_t>(end - begin));
  double one_more = sink;
  if (sinks != nullptr) {
    convert_elements(sinks->type,
                     static_cast<const char*>(sinks->data) + row.head * element_bytes(sinks->type),
                     DataType::Float64, &one_more, 1);
  }
  softmax_in_place(seen, one_more);
  if (output == 2 && scores != nullptr) store_row(row, *scores);
}

GroupWeights group_weights(const GroupCall& group) {
  const KernelCall& call = group.call;
  const Attributes& attributes = call.node.attributes;
  GroupWeights weights = {.group = group,
                          .is_causal = attributes.get_int("causal") != 0,
                          .window = attributes.get_int("local_window_size"),
                          .output = attributes.get_int("qk_output")};
  if (call.has_input(kScoreBias)) weights.bias.tensor = &call.inputs[kScoreBias];
  if (call.has_input(kSink)) weights.sinks = &call.inputs[kSink];
  if (attributes.get_int("smooth_softmax") == 1) weights.sink = 0;
  const float* cap = attributes.find_float("softcap");
  weights.cap = cap == nullptr || *cap <= 0 ? 0 : double{*cap};
  if (call.has_output(3)) weights.scores = &call.outputs[3];
  return weights;
}

// Queries, keys and values as the node gives them.
struct GivenHeads {
  HeadView query;
  HeadView key;
  HeadView value;
};

GivenHeads given_heads(const GroupCall& group) {
  const KernelCall& call = group.call;
  if (!call.node.inputs[kKey].is_none()) {
    return {heads_last(call.inputs[0], group.queries.heads),
            heads_last(call.inputs[kKey], group.keys.heads),
            heads_last(call.inputs[kValue], group.keys.heads)};
  }
  HeadView packed = heads_last(call.inputs[0], 1);
  packed.head = group.queries.size;
  const int64_t queries = group.queries.heads * group.queries.size;
  const int64_t keys = group.keys.heads * group.keys.size;
  return {packed, advanced(packed, queries), advanced(packed, queries + keys)};
}

void run_group_query_attention(const KernelCall& call) {
  if (!has_output_elements(call)) return;
  const GroupCall group = group_call(call);
  check_lengths(group);
  GivenHeads heads = given_heads(group);
  PreparedHeads queries(&call.scratch);
  PreparedHeads keys(&call.scratch);
  heads.query = queries.prepare(group, heads.query, group.queries, kQueryNorm,
                                [&](int64_t b) { return group.first_query(b); });
  heads.key = keys.prepare(group, heads.key, group.keys, kKeyNorm,
                           [&](int64_t b) { return group.first_key(b); });
  std::pmr::vector<double> key_memory(&call.scratch);
  std::pmr::vector<double> value_memory(&call.scratch);
  const HeadView key = cached_heads(group, 1, kPastKey, heads.key, key_memory);
  const HeadView value = cached_heads(group, 2, kPastValue, heads.value, value_memory);
  const AttentionProblem problem = {.batch = group.queries.batch,
                                    .query_heads = group.queries.heads,
                                    .key_heads = group.keys.heads,
                                    .queries = group.queries.positions,
                                    .keys = group.total,
                                    .head_size = group.queries.size,
                                    .value_size = group.queries.size,
                                    .scale = scale_or_default(call.node, group.queries.size),
                                    .query = heads.query,
                                    .key = {key},
                                    .value = {value},
                                    .output = heads_last(call.outputs[0], group.queries.heads)};
  const GroupWeights weights = group_weights(group);
  attend(call, problem, [&](const ScoreRow& row) { weights.weigh(row); });
}

int64_t group_query_flops(const Node&, std::span<const Type> inputs,
                          std::span<const Type> outputs) {
  const bool has_cache = outputs.size() > 1 && outputs[1].shape;
  return attention_flops_of(outputs, has_cache ? (*outputs[1].shape)[2] : (*inputs[0].shape)[1]);
}

std::vector<Parameter> group_query_inputs() {
  const auto optional = [](const char* name, const char* variable) {
    return Parameter{name, variable, Arity::Optional};
  };
  return {{"query", "T"},
          optional("key", "T"),
          optional("value", "T"),
          optional("past_key", "T_CACHE"),
          optional("past_value", "T_CACHE"),
          {"seqlens_k", "M"},
          {"total_sequence_length", "M"},
          optional("cos_cache", "T"),
          optional("sin_cache", "T"),
          optional("position_ids", "I"),
          optional("attention_bias", "T"),
          optional("head_sink", "T"),
          optional("k_scale", "T_KV_SCALE"),
          optional("v_scale", "T_KV_SCALE"),
          optional("q_norm_weight", "T"),
          optional("k_norm_weight", "T")};
}

}  // namespace

std::vector<Op> group_query_attention_ops() {
  const auto optional = [](const char* name, const char* variable) {
    return Parameter{name, variable, Arity::Optional};
  };
  constexpr TypeSet kCacheTypes = kHeadTypes | TypeSet{DataType::UInt8, DataType::Int8};
  return {{.name = "GroupQueryAttention",
           .domain = "com.microsoft",
           .versions = {1},
           .inputs = group_query_inputs(),
           .outputs = {{"output", "T"},
                       optional("present_key", "T_CACHE"),
                       optional("present_value", "T_CACHE"),
                       optional("output_qk", "T")},
           .type_variables = {{"T", kHeadTypes},
                              {"T_CACHE", kCacheTypes},
                              {"T_KV_SCALE", {DataType::Float32}},
                              {"M", {DataType::Int32}},
                              {"I", kInt64Type}},
           .attributes = {{"causal", AttributeKind::Int, int64_t{1}},
                          {"do_rotary", AttributeKind::Int, int64_t{0}},
                          {"k_quant_type", AttributeKind::String, std::string("NONE")},
                          {"kv_cache_bit_width", AttributeKind::Int},
                          {.name = "kv_num_heads", .kind = AttributeKind::Int, .is_required = true},
                          {"local_window_size", AttributeKind::Int, int64_t{-1}},
                          {.name = "num_heads", .kind = AttributeKind::Int, .is_required = true},
                          {"qk_norm_epsilon", AttributeKind::Float, 1e-6F},
                          {"qk_output", AttributeKind::Int, int64_t{0}},
                          {"rotary_interleaved", AttributeKind::Int, int64_t{0}},
                          {"scale", AttributeKind::Float},
                          {"sliding_window_cache", AttributeKind::Int, int64_t{0}},
                          {"smooth_softmax", AttributeKind::Int, int64_t{-1}},
                          {"softcap", AttributeKind::Float},
                          {"v_quant_type", AttributeKind::String, std::string("NONE")}},
           .infer = infer_group_query_attention,
           .flops = group_query_flops,
           .kernel = run_group_query_attention}};
}

}  // namespace tessera::ops
