// Attention of ONNX's own domain: grouped heads, caches, masks, windows, soft cap. That of
// com.microsoft is in projected_attention.cc.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "ops/attention/heads.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/check_shape.h"
#include "ops/convert_elements.h"
#include "ops/index_reader.h"
#include "ops/onnx_types.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr int kFirstPaddingVersion = 24;  // masks may be shorter than the keys
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Positions of inputs and outputs.
constexpr size_t kMask = 3;
constexpr size_t kPastKey = 4;
constexpr size_t kPastValue = 5;
constexpr size_t kKeyLengths = 6;
constexpr size_t kPresentKey = 1;
constexpr size_t kPresentValue = 2;
constexpr size_t kScores = 3;

// --- Rule ----------------------------------------------------------------------------------------

// The sizes as far as they are known.
struct AttentionDims {
  Dim batch;
  Dim query_heads;
  Dim key_heads;
  Dim queries;
  Dim keys;  // without those of the cache
  Dim head_size;
  Dim value_size;
};

void check_attention_attributes(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const int64_t mode = attributes.get_int("qk_matmul_output_mode");
  if (mode < 0 || mode > 3) {
    context.fail("attribute 'qk_matmul_output_mode': expected 0, 1, 2 or 3, found " +
                 std::to_string(mode));
  }
  const int64_t* precision = attributes.find_int("softmax_precision");
  if (precision != nullptr) {
    const OnnxType* type = find_onnx_type(*precision);
    if (type == nullptr || !is_floating(type->type)) {
      context.fail("attribute 'softmax_precision': expected 1, 10, 11 or 16, found " +
                   std::to_string(*precision));
    }
  }
  for (const char* name : {"left_window_size", "right_window_size"}) {
    const int64_t* size = attributes.find_int(name);
    if (size != nullptr && *size < -1) {
      context.fail("attribute '" + std::string(name) + "': expected -1 or more, found " +
                   std::to_string(*size));
    }
  }
}

// The rank of Q, K and V; nullopt if one is unknown.
std::optional<size_t> attention_rank(const InferContext& context) {
  const Shape* query = context.shape(0);
  if (query == nullptr) return std::nullopt;
  if (query->size() != 3 && query->size() != 4) {
    context.fail_input(0, "expected 3 or 4 dimensions, found " + text(*query));
  }
  for (const size_t index : {size_t{1}, size_t{2}}) {
    const Shape* shape = context.shape(index);
    if (shape == nullptr) return std::nullopt;
    if (shape->size() != query->size()) {
      context.fail_input(index, "expected " + std::to_string(query->size()) +
                                    " dimensions as input 'Q' has, found " + text(*shape));
    }
  }
  return query->size();
}

AttentionDims dims_with_hidden_heads(const InferContext& context) {
  const int64_t query_heads = head_count(context, "q_num_heads");
  const int64_t key_heads = head_count(context, "kv_num_heads");
  if (query_heads == 0 || key_heads == 0) {
    context.fail(
        "expected the attributes 'q_num_heads' and 'kv_num_heads', which inputs of 3 "
        "dimensions need, found " +
        std::string(query_heads == key_heads ? "neither" : "one of them"));
  }
  const Shape& query = *context.shape(0);
  const Shape& key = *context.shape(1);
  const Shape& value = *context.shape(2);
  return {.batch = merged(query[0], merged(key[0], value[0])),
          .query_heads = query_heads,
          .key_heads = key_heads,
          .queries = query[1],
          .keys = merged(key[1], value[1]),
          .head_size = merged(head_size_of(context, 0, query[2], query_heads),
                              head_size_of(context, 1, key[2], key_heads)),
          .value_size = head_size_of(context, 2, value[2], key_heads)};
}

AttentionDims dims_with_head_axis(const InferContext& context) {
  const Shape& query = *context.shape(0);
  const Shape& key = *context.shape(1);
  const Shape& value = *context.shape(2);
  const AttentionDims dims = {.batch = merged(query[0], merged(key[0], value[0])),
                              .query_heads = query[1],
                              .key_heads = merged(key[1], value[1]),
                              .queries = query[2],
                              .keys = merged(key[2], value[2]),
                              .head_size = merged(query[3], key[3]),
                              .value_size = value[3]};
  for (const auto& [name, found] :
       {std::pair("q_num_heads", &dims.query_heads), std::pair("kv_num_heads", &dims.key_heads)}) {
    const int64_t given = head_count(context, name);
    if (given == 0 || !found->is_known() || found->value() == given) continue;
    context.fail("attribute '" + std::string(name) + "': expected " + found->text() +
                 ", the second of 4 dimensions, found " + std::to_string(given));
  }
  return dims;
}

// fail()s unless Q, K and V agree with each other.
void check_operands(const InferContext& context, const AttentionDims& dims, size_t rank) {
  check_groups(context, dims.query_heads, dims.key_heads);
  if (rank == 4) {
    check_shape(context, 0, {dims.batch, dims.query_heads, dims.queries, dims.head_size});
    check_shape(context, 1, {dims.batch, dims.key_heads, dims.keys, dims.head_size});
    check_shape(context, 2, {dims.batch, dims.key_heads, dims.keys, dims.value_size});
    return;
  }
  check_shape(context, 1, {dims.batch, dims.keys, multiply(dims.key_heads, dims.head_size)});
  check_shape(context, 2, {dims.batch, dims.keys, multiply(dims.key_heads, dims.value_size)});
  check_shape(context, 0, {dims.batch, dims.queries, multiply(dims.query_heads, dims.head_size)});
}

// The number of positions in the caches: 0 without them; nullopt if their ranks are unknown.
std::optional<Dim> past_length(const InferContext& context, const AttentionDims& dims) {
  check_pair(context, kPastKey, kPastValue);
  if (!context.has_input(kPastKey)) return Dim(0);
  const Shape* key = shape_of_rank(context, kPastKey, 4, "batch, heads, positions, head size");
  const Shape* value = shape_of_rank(context, kPastValue, 4, "batch, heads, positions, head size");
  if (key == nullptr && value == nullptr) return std::nullopt;
  const Dim length = key == nullptr     ? (*value)[2]
                     : value == nullptr ? (*key)[2]
                                        : merged((*key)[2], (*value)[2]);
  check_shape(context, kPastKey, {dims.batch, dims.key_heads, length, dims.head_size});
  check_shape(context, kPastValue, {dims.batch, dims.key_heads, length, dims.value_size});
  return length;
}

void infer_attention(InferContext& context) {
  check_attention_attributes(context);
  const DataType type = context.element(0);
  context.set_output(0, type);
  context.set_output(kPresentKey, type);
  context.set_output(kPresentValue, context.element(2));
  context.set_output(kScores, type);
  if (context.has_input(kKeyLengths) && context.has_input(kPastKey)) {
    context.fail_input(kKeyLengths, "expected no cached keys beside it, found input 'past_key'");
  }
  const std::optional<size_t> rank = attention_rank(context);
  if (!rank) return;
  const AttentionDims dims =
      *rank == 4 ? dims_with_head_axis(context) : dims_with_hidden_heads(context);
  check_operands(context, dims, *rank);
  if (context.has_input(kKeyLengths)) check_shape(context, kKeyLengths, {dims.batch});
  if (*rank == 4) {
    context.set_output(0, type, Shape{dims.batch, dims.query_heads, dims.queries, dims.value_size});
  } else {
    context.set_output(
        0, type, Shape{dims.batch, dims.queries, multiply(dims.query_heads, dims.value_size)});
  }
  const std::optional<Dim> past = past_length(context, dims);
  if (!past) return;
  const Dim total = add(*past, dims.keys);
  const Shape scores = {dims.batch, dims.query_heads, dims.queries, total};
  if (context.has_input(kMask)) {
    check_broadcast_to(context, kMask, scores, context.version() >= kFirstPaddingVersion);
  }
  context.set_output(kPresentKey, type, Shape{dims.batch, dims.key_heads, total, dims.head_size});
  context.set_output(kPresentValue, context.element(2),
                     Shape{dims.batch, dims.key_heads, total, dims.value_size});
  context.set_output(kScores, type, scores);
}

// --- Kernel --------------------------------------------------------------------------------------

// The mask as a bias, which is broadcast to [batch, heads, queries, keys].
struct MaskView {
  bool is_given = false;
  DataType type = DataType::Undefined;
  const void* data = nullptr;
  std::array<int64_t, 3> strides = {};  // of batch, head and query
  int64_t keys = 0;                     // beyond them, keys are masked
  bool is_one_key = false;              // its only element is for all keys
};

MaskView mask_of(const KernelCall& call, int64_t keys) {
  MaskView mask;
  if (call.inputs.size() <= kMask || call.node.inputs[kMask].is_none()) return mask;
  const TensorView& tensor = call.inputs[kMask];
  mask.is_given = true;
  const auto rank = static_cast<int64_t>(tensor.dims.size());
  mask.type = tensor.type;
  mask.data = tensor.data;
  mask.keys = rank == 0 ? 1 : tensor.dims.back();
  // From the version on that fills up shorter masks, one of a single key is short, too.
  mask.is_one_key =
      mask.keys == 1 && keys != 1 && (rank == 0 || call.node.version < kFirstPaddingVersion);
  int64_t stride = mask.keys;
  for (int64_t axis = rank - 2; axis >= 0; --axis) {
    const int64_t dim = tensor.dims[static_cast<size_t>(axis)];
    if (dim != 1) mask.strides[static_cast<size_t>(3 - (rank - axis) + 1)] = stride;
    stride *= dim;
  }
  return mask;
}

// The keys that a query sees, besides what the mask says.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// All that decides the weights of a row.
struct AttentionWeights {
  MaskView mask;
  const TensorView* key_lengths = nullptr;  // by batch
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t past = 0;
  bool is_causal = false;
  int64_t left_window = -1;
  int64_t right_window = -1;
  double cap = 0;
  DataType rounding = DataType::Undefined;  // of the softmax; Undefined: none
  int64_t output_mode = 0;
  const MutableTensorView* scores = nullptr;

  KeyRange keys_of(int64_t batch, int64_t query) const;
  bool add_bias(const ScoreRow& row) const;
  void weigh(const ScoreRow& row) const;
};

KeyRange AttentionWeights::keys_of(int64_t batch, int64_t query) const {
  KeyRange range = {0, keys};
  int64_t position = query + past;
  if (key_lengths != nullptr) {
    const int64_t length = integer_at(*key_lengths, batch);
    position = query + length - queries;
    range.end = std::min(range.end, length);
  }
  if (is_causal) range.end = std::min(range.end, position + 1);
  if (right_window >= 0) {
    // Windows may have any size, so that the sum could exceed 64 bits.
    const int64_t right = std::min(right_window, keys + queries);
    range.end = std::min(range.end, position + right + 1);
  }
  if (left_window >= 0 && left_window < position) {
    range.begin = std::max<int64_t>(range.begin, position - left_window);
  }
  return range;
}

// Adds the bias to the scores. Returns whether it leaves a key: the biases of all others are
// -infinity.
bool AttentionWeights::add_bias(const ScoreRow& row) const {
  const KeyRange range = keys_of(row.batch, row.query);
  const int64_t place =
      row.batch * mask.strides[0] + row.head * mask.strides[1] + row.query * mask.strides[2];
  std::array<double, kConvertBlock> biases = {};
  bool leaves_key = false;
  for (int64_t begin = 0; begin < keys; begin += kConvertBlock) {
    const int64_t count = std::min(keys - begin, kConvertBlock);
    if (mask.is_given) {
      const int64_t given =
          mask.is_one_key ? count : std::clamp<int64_t>(mask.keys - begin, 0, count);
      const char* source = static_cast<const char*>(mask.data) +
                           (place + (mask.is_one_key ? 0 : begin)) * element_bytes(mask.type);
      convert_elements(mask.type, source, DataType::Float64, biases.data(),
                       mask.is_one_key ? 1 : given);
      if (mask.is_one_key) std::fill_n(biases.begin() + 1, count - 1, biases[0]);
      if (mask.type == DataType::Bool) {
        for (int64_t index = 0; index < given; ++index) {
          double& bias = biases[static_cast<size_t>(index)];
          bias = bias != 0 ? 0 : kMinusInfinity;
        }
      }
      std::fill(biases.begin() + given, biases.begin() + count, kMinusInfinity);
    }
    for (int64_t index = 0; index < count; ++index) {
      const bool is_seen = begin + index >= range.begin && begin + index < range.end;
      const double bias = biases[static_cast<size_t>(index)] + (is_seen ? 0 : kMinusInfinity);
      leaves_key = leaves_key || bias != kMinusInfinity;
      row.scores[static_cast<size_t>(begin + index)] += bias;
    }
  }
  return leaves_key;
}

void AttentionWeights::weigh(const ScoreRow& row) const {
  if (scores != nullptr && output_mode == 0) store_row(row, *scores);
  cap_scores(row.scores, cap);
  if (scores != nullptr && output_mode == 1) store_row(row, *scores);
  const bool leaves_key = add_bias(row);
  if (scores != nullptr && output_mode == 2) store_row(row, *scores);
  if (!leaves_key) {
    std::ranges::fill(row.scores, 0.0);
  } else {
    round_to_type(row.scores, rounding);
    softmax_in_place(row.scores);
    round_to_type(row.scores, rounding);
  }
  if (scores != nullptr && output_mode == 3) store_row(row, *scores);
}

// Undefined, too, if the node asks for no type.
DataType asked_rounding(const Node& node, DataType type) {
  const int64_t* precision = node.attributes.find_int("softmax_precision");
  if (precision == nullptr) return DataType::Undefined;
  return softmax_rounding(type, find_onnx_type(*precision)->type);
}

void check_key_lengths(const KernelCall& call, int64_t keys) {
  if (!call.has_input(kKeyLengths)) return;
  for (const int64_t length : call.inputs[kKeyLengths].as<int64_t>()) {
    if (length >= 0 && length <= keys) continue;
    call.fail("input 'nonpad_kv_seqlen': expected numbers in [0, " + std::to_string(keys) +
              "], found " + std::to_string(length));
  }
}

AttentionProblem attention_problem(const KernelCall& call) {
  const TensorView& query = call.inputs[0];
  const TensorView& key = call.inputs[1];
  const TensorView& value = call.inputs[2];
  AttentionProblem problem;
  problem.batch = query.dims[0];
  if (query.rank() == 4) {
    problem.query_heads = query.dims[1];
    problem.key_heads = key.dims[1];
    problem.query = heads_first(query);
    problem.key.recent = heads_first(key);
    problem.value.recent = heads_first(value);
    problem.output = heads_first(call.outputs[0]);
  } else {
    problem.query_heads = call.node.attributes.get_int("q_num_heads");
    problem.key_heads = call.node.attributes.get_int("kv_num_heads");
    problem.query = heads_last(query, problem.query_heads);
    problem.key.recent = heads_last(key, problem.key_heads);
    problem.value.recent = heads_last(value, problem.key_heads);
    problem.output = heads_last(call.outputs[0], problem.query_heads);
  }
  const size_t last = query.dims.size() - 1;
  problem.queries = query.dims[last - 1];
  problem.keys = key.dims[last - 1];
  problem.head_size = query.rank() == 4 ? query.dims[3] : query.dims[2] / problem.query_heads;
  problem.value_size = value.rank() == 4 ? value.dims[3] : value.dims[2] / problem.key_heads;
  const float* scale = call.node.attributes.find_float("scale");
  problem.scale = scale == nullptr ? default_scale(problem.head_size) : double{*scale};
  return problem;
}

void run_attention(const KernelCall& call) {
  if (!has_output_elements(call)) return;
  AttentionProblem problem = attention_problem(call);
  const HeadSizes recent = {problem.batch, problem.key_heads, problem.keys, problem.head_size};
  if (call.has_input(kPastKey)) {
    const int64_t past = call.inputs[kPastKey].dims[2];
    problem.key.past = heads_first(call.inputs[kPastKey]);
    problem.value.past = heads_first(call.inputs[kPastValue]);
    problem.key.past_length = problem.value.past_length = past;
    problem.keys += past;
  }
  HeadSizes recent_values = recent;
  recent_values.size = problem.value_size;
  store_sequence(call, kPresentKey, problem.key, recent);
  store_sequence(call, kPresentValue, problem.value, recent_values);
  check_key_lengths(call, problem.keys);
  const Attributes& attributes = call.node.attributes;
  const auto window = [&](const char* name) {
    const int64_t* size = attributes.find_int(name);
    return size == nullptr ? -1 : *size;
  };
  const AttentionWeights weights = {
      .mask = mask_of(call, problem.keys),
      .key_lengths = call.has_input(kKeyLengths) ? &call.inputs[kKeyLengths] : nullptr,
      .queries = problem.queries,
      .keys = problem.keys,
      .past = problem.key.past_length,
      .is_causal = attributes.get_int("is_causal") != 0,
      .left_window = window("left_window_size"),
      .right_window = window("right_window_size"),
      .cap = attributes.get_float("softcap"),
      .rounding = asked_rounding(call.node, call.inputs[0].type),
      .output_mode = attributes.get_int("qk_matmul_output_mode"),
      .scores = call.has_output(kScores) ? &call.outputs[kScores] : nullptr};
  attend(call, problem, [&](const ScoreRow& row) { weights.weigh(row); });
}

int64_t attention_flops(const Node&, std::span<const Type> inputs, std::span<const Type> outputs) {
  const Shape& key = *inputs[1].shape;
  Dim keys = key[key.size() - 2];
  if (inputs.size() > kPastKey && inputs[kPastKey].shape) {
    keys = add(keys, (*inputs[kPastKey].shape)[2]);
  }
  return attention_flops_of(outputs, keys);
}

}  // namespace

std::vector<Op> attention_ops() {
  const auto optional = [](const char* name, const char* variable) {
    return Parameter{name, variable, Arity::Optional};
  };
  return {{.name = "Attention",
           .versions = {23, 24, 25},
           .inputs = {{"Q", "T1"},
                      {"K", "T1"},
                      {"V", "T2"},
                      optional("attn_mask", "U"),
                      optional("past_key", "T1"),
                      optional("past_value", "T2"),
                      {"nonpad_kv_seqlen", "I", Arity::Optional, 24}},
           .outputs = {{"Y", "T1"},
                       optional("present_key", "T1"),
                       optional("present_value", "T2"),
                       optional("qk_matmul_output", "T1")},
           .type_variables =
               {{"T1", kFloatTypes}, {"T2", kFloatTypes}, {"U", kAllTypes}, {"I", kInt64Type}},
           .attributes = {{"is_causal", AttributeKind::Int, int64_t{0}},
                          {"kv_num_heads", AttributeKind::Int},
                          {"left_window_size", AttributeKind::Int, int64_t{-1}, 25},
                          {"q_num_heads", AttributeKind::Int},
                          {"qk_matmul_output_mode", AttributeKind::Int, int64_t{0}},
                          {"right_window_size", AttributeKind::Int, int64_t{-1}, 25},
                          {"scale", AttributeKind::Float},
                          {"softcap", AttributeKind::Float, 0.0F},
                          {"softmax_precision", AttributeKind::Int}},
           .infer = infer_attention,
           .flops = attention_flops,
           .kernel = run_attention}};
}

}  // namespace tessera::ops
