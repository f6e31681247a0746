// GroupQueryAttention of com.microsoft: causal attention with a cache, whose sequences may have
// different lengths, and with the rotation of queries and keys.
#include <string>
#include <vector>

#include "ops/attention/group_query.h"
#include "ops/attention/heads.h"
#include "ops/attention/padded_attention.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/check_shape.h"
#include "ops/domains.h"
#include "ops/op.h"
#include "ops/shape_arithmetic.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

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
    context.fail_unsupported("attribute '" + std::string(name) +
                             "': quantised caches have no "
                             "kernel");
  }
  if (context.has_input(group_query::kKeyScale) || context.has_input(group_query::kValueScale)) {
    context.fail_unsupported("quantised caches have no kernel");
  }
  if (attributes.get_int("sliding_window_cache") != 0) {
    context.fail_unsupported(
        "attribute 'sliding_window_cache': caches of the size of the window "
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

std::optional<GroupDims> group_dims(const InferContext& context, int64_t heads, int64_t key_heads) {
  const Shape* query = shape_of_rank(context, 0, 3, "batch, positions, heads times their size");
  check_pair(context, group_query::kKey, group_query::kValue);
  if (query == nullptr) return std::nullopt;
  if (!context.has_input(group_query::kKey)) {
    const int64_t parts = Dim(add(heads, multiply(key_heads, 2))).value();
    return GroupDims{(*query)[0], (*query)[1], (*query)[1],
                     head_size_of(context, 0, (*query)[2], parts)};
  }
  const Shape* key =
      shape_of_rank(context, group_query::kKey, 3, "batch, positions, heads times their size");
  const Shape* value =
      shape_of_rank(context, group_query::kValue, 3, "batch, positions, heads times their size");
  if (key == nullptr || value == nullptr) return std::nullopt;
  const GroupDims dims = {merged((*query)[0], (*key)[0]), (*query)[1],
                          merged((*key)[1], (*value)[1]),
                          head_size_of(context, 0, (*query)[2], heads)};
  const Shape expected = {dims.batch, dims.keys, multiply(dims.head_size, key_heads)};
  check_shape(context, group_query::kKey, expected);
  check_shape(context, group_query::kValue, expected);
  return dims;
}

void check_rotation(const InferContext& context, const GroupDims& dims) {
  check_pair(context, group_query::kCosines, group_query::kSines);
  if (context.node().attributes.get_int("do_rotary") == 0) return;
  if (!context.has_input(group_query::kCosines)) {
    context.fail("expected the inputs 'cos_cache' and 'sin_cache' with 'do_rotary', found none");
  }
  const Shape* cosines =
      shape_of_rank(context, group_query::kCosines, 2, "positions, half of the rotated size");
  shape_of_rank(context, group_query::kSines, 2, "positions, half of the rotated size");
  if (cosines == nullptr) return;
  check_shape(context, group_query::kSines, *cosines);
  const Dim& half = (*cosines)[1];
  if (half.is_known() && dims.head_size.is_known() && half.value() > dims.head_size.value() / 2) {
    context.fail_input(group_query::kCosines,
                       "expected at most " + std::to_string(dims.head_size.value() / 2) +
                           " numbers in a row, half the size of a head, found " + half.text());
  }
  if (context.has_input(group_query::kPositions)) {
    shape_of_rank(context, group_query::kPositions, 2, "batch, positions");
  }
}

// The number of keys that the longest sequence has after this call, and that of the new caches.
struct CacheLengths {
  Dim total;
  Dim present;
};

CacheLengths cache_lengths(const InferContext& context, const GroupDims& dims) {
  const auto total = dim_list(context, group_query::kTotalLength);
  if (total && (total->size() != 1 || (total->front().is_known() && total->front().value() < 0))) {
    context.fail_input(
        group_query::kTotalLength,
        "expected one number of at least 0, found " +
            (total->size() == 1 ? total->front().text() : std::to_string(total->size())));
  }
  const Shape* past =
      context.has_input(group_query::kPastKey) ? context.shape(group_query::kPastKey) : nullptr;
  if (!total) {
    return {unknown_dim(context, 3, 3), unknown_dim(context, 1, 2)};
  }
  const Dim& length = total->front();
  if (!context.has_input(group_query::kPastKey)) return {length, length};
  if (past == nullptr) return {length, unknown_dim(context, 1, 2)};
  // A cache either grows by the new positions or has space for them.
  const Dim grown = add((*past)[2], dims.keys);
  if (length.is_known() && grown.is_known() && length != grown &&
      length.value() > (*past)[2].value()) {
    context.fail_input(group_query::kTotalLength,
                       "expected " + grown.text() + " or at most " + (*past)[2].text() +
                           ", the positions of the cache, found " + length.text());
  }
  return {length, length == grown ? grown : larger_element(length, (*past)[2])};
}

void check_other_inputs(const InferContext& context, const GroupDims& dims, int64_t heads,
                        int64_t key_heads) {
  check_pair(context, group_query::kPastKey, group_query::kPastValue);
  const char* meaning = "batch, heads, positions, head size";
  const Shape* past = shape_of_rank(context, group_query::kPastKey, 4, meaning);
  shape_of_rank(context, group_query::kPastValue, 4, meaning);
  if (past != nullptr) {
    const Shape expected = {dims.batch, key_heads, (*past)[2], dims.head_size};
    check_shape(context, group_query::kPastKey, expected);
    check_shape(context, group_query::kPastValue, expected);
  }
  const Shape* lengths = context.shape(group_query::kLengths);
  if (lengths != nullptr && !can_be_equal(*lengths, {dims.batch}) &&
      !can_be_equal(*lengths, {dims.batch, 1})) {
    context.fail_input(group_query::kLengths, "expected shape [" + dims.batch.text() +
                                                  "], found [" + text(*lengths) + "]");
  }
  if (context.has_input(group_query::kSink)) check_shape(context, group_query::kSink, {heads});
  check_pair(context, group_query::kQueryNorm, group_query::kKeyNorm);
  for (const size_t index : {group_query::kQueryNorm, group_query::kKeyNorm}) {
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
  for (const size_t index : {group_query::kPastKey, group_query::kPastValue}) {
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
  check_score_bias(context, group_query::kScoreBias,
                   {dims->batch, heads, dims->queries, lengths.total});
  context.set_output(0, type, Shape{dims->batch, dims->queries, multiply(dims->head_size, heads)});
  const Shape present = {dims->batch, key_heads, lengths.present, dims->head_size};
  context.set_output(1, type, present);
  context.set_output(2, type, present);
  context.set_output(3, type, scores);
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
           .domain = kMicrosoftDomain,
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
           .kernel = group_query::run}};
}

}  // namespace tessera::ops
