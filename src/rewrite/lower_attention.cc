// Attention as two products with a Softmax between them: as exporters wrote it before it was an op,
// which libraries know and native computes as one kernel (docs/decisions/0052).
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/domains.h"
#include "rewrite/lower_functions.h"

namespace tessera {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// What the products take. Queries, keys and values have the axes (batch, heads, positions, size).
struct Parts {
  ValueId query;
  ValueId key;
  ValueId value;
  int64_t query_heads = 0;
  int64_t key_heads = 0;
  double scale = 0;
  // Added to the scores; broadcasts to (batch, heads, queries, keys). None: nothing.
  ValueId bias = {};
  bool may_hide_rows = false;  // `bias` may be -inf for all keys of a query
};

ValueId transposed(NodeBuilder& builder, ValueId id, std::vector<int64_t> order) {
  return builder.add("Transpose", {id}, attribute_list({{"perm", std::move(order)}}));
}

ValueId reshaped(NodeBuilder& builder, ValueId id, const std::vector<int64_t>& target) {
  return builder.add("Reshape", {id, builder.integers(target)});
}

// The size of an axis; -1 if it is unknown.
int64_t size_of(const NodeBuilder& builder, ValueId id, size_t axis) {
  const Dim& dim = (*builder.type_of(id).shape)[axis];
  return dim.is_known() ? dim.value() : -1;
}

// One number: the size of an axis.
ValueId length_of(NodeBuilder& builder, ValueId id, int64_t axis) {
  const ValueId list =
      builder.add("Shape", {id}, attribute_list({{"start", axis}, {"end", axis + 1}}));
  return builder.add("Squeeze", {list, builder.integers({0})});
}

// (batch, positions, heads x size) as (batch, heads, positions, size).
ValueId split_heads(NodeBuilder& builder, ValueId id, int64_t heads) {
  return transposed(builder, reshaped(builder, id, {0, 0, heads, -1}), {0, 2, 1, 3});
}

ValueId joined_heads(NodeBuilder& builder, ValueId id) {
  return reshaped(builder, transposed(builder, id, {0, 2, 1, 3}), {0, 0, -1});
}

// 0 where `mask` is true, else `otherwise`.
ValueId bias_of_mask(NodeBuilder& builder, ValueId mask, double otherwise, ValueId like) {
  return builder.add("Where", {mask, builder.number(0, like), builder.number(otherwise, like)});
}

// Hides from each query the keys behind its own position; `past` keys precede the first query.
ValueId causal_bias(NodeBuilder& builder, const Parts& parts, ValueId past) {
  const ValueId zero = builder.constant(Tensor::from<int64_t>(DataType::Int64, {}, {{0}}));
  const ValueId one = builder.constant(Tensor::from<int64_t>(DataType::Int64, {}, {{1}}));
  ValueId rows = builder.add("Range", {zero, length_of(builder, parts.query, 2), one});
  if (!past.is_none()) rows = builder.add("Add", {rows, past});
  const ValueId columns = builder.add("Range", {zero, length_of(builder, parts.key, 2), one});
  rows = builder.add("Unsqueeze", {rows, builder.integers({1})});
  const ValueId is_seen = builder.add("GreaterOrEqual", {rows, columns});
  return bias_of_mask(builder, is_seen, kHidden, parts.query);
}

void add_bias(NodeBuilder& builder, Parts& parts, ValueId bias) {
  parts.bias = parts.bias.is_none() ? bias : builder.add("Add", {parts.bias, bias});
}

// The bias for scores with an axis for the queries' heads that share one key: false if the heads
// would have to be taken apart.
bool spread_bias(NodeBuilder& builder, Parts& parts) {
  if (parts.bias.is_none() || builder.rank_of(parts.bias) <= 2) return true;
  if (builder.rank_of(parts.bias) != 4 || size_of(builder, parts.bias, 1) != 1) return false;
  parts.bias = builder.add("Unsqueeze", {parts.bias, builder.integers({1})});
  return true;
}

// Whether two values have the same size on some axes. Products would broadcast where attention is
// an error, so equal sizes have to be known.
bool agree(const NodeBuilder& builder, ValueId left, ValueId right,
           std::initializer_list<size_t> axes) {
  const std::optional<Shape>& one = builder.type_of(left).shape;
  const std::optional<Shape>& other = builder.type_of(right).shape;
  return one && other && one->size() == other->size() &&
         std::ranges::all_of(axes, [&](size_t axis) { return (*one)[axis] == (*other)[axis]; });
}

// The same for all operands of a node, before the positions of a past are added.
bool operands_agree(const NodeBuilder& builder, const Parts& parts, size_t past_key,
                    size_t past_value) {
  if (!agree(builder, parts.query, parts.key, {0, 3}) ||
      !agree(builder, parts.key, parts.value, {0, 1, 2})) {
    return false;
  }
  if (!builder.has_input(past_key) && !builder.has_input(past_value)) return true;
  if (!builder.has_input(past_key) || !builder.has_input(past_value)) return false;
  return agree(builder, parts.key, builder.input(past_key), {0, 1, 3}) &&
         agree(builder, parts.value, builder.input(past_value), {0, 1, 3}) &&
         agree(builder, builder.input(past_key), builder.input(past_value), {2});
}

// (batch, heads, queries, size of a value). nullopt if heads are shared and the bias differs
// between them.
std::optional<ValueId> attend(NodeBuilder& builder, Parts parts) {
  const bool is_shared = parts.query_heads != parts.key_heads;
  const int64_t sharing = parts.query_heads / parts.key_heads;
  if (is_shared) {
    if (!spread_bias(builder, parts)) return std::nullopt;
    // Rows of one head stay together: (batch, key heads, sharing, queries, size).
    const int64_t size = size_of(builder, parts.query, 3);
    const ValueId list = builder.add("Shape", {parts.query});
    const ValueId batch = builder.add("Gather", {list, builder.integers({0})});
    const ValueId queries = builder.add("Gather", {list, builder.integers({2})});
    const ValueId target = builder.add(
        "Concat",
        {batch, builder.integers({parts.key_heads, sharing}), queries, builder.integers({size})},
        attribute_list({{"axis", int64_t{0}}}));
    parts.query = builder.add("Reshape", {parts.query, target});
    parts.key = builder.add("Unsqueeze", {parts.key, builder.integers({2})});
    parts.value = builder.add("Unsqueeze", {parts.value, builder.integers({2})});
  }
  const ValueId keys = is_shared ? transposed(builder, parts.key, {0, 1, 2, 4, 3})
                                 : transposed(builder, parts.key, {0, 1, 3, 2});
  ValueId scores = builder.add("MatMul", {parts.query, keys});
  scores = builder.add("Mul", {scores, builder.number(parts.scale, scores)});
  if (!parts.bias.is_none()) scores = builder.add("Add", {scores, parts.bias});
  const ValueId shares = builder.add("Softmax", {scores}, attribute_list({{"axis", int64_t{-1}}}));
  ValueId result = builder.add("MatMul", {shares, parts.value});
  if (parts.may_hide_rows) {
    // Softmax of a hidden row is NaN, and its result is 0.
    const ValueId largest = builder.add("ReduceMax", {parts.bias, builder.integers({-1})});
    const ValueId is_hidden = builder.add("Equal", {largest, builder.number(kHidden, largest)});
    result = builder.add("Where", {is_hidden, builder.number(0, result), result});
  }
  if (!is_shared) return result;
  const ValueId list = builder.add("Shape", {result});
  const ValueId target = builder.add(
      "Concat",
      {builder.add("Gather", {list, builder.integers({0})}), builder.integers({parts.query_heads}),
       builder.add("Gather", {list, builder.integers({3, 4})})},
      attribute_list({{"axis", int64_t{0}}}));
  return builder.add("Reshape", {result, target});
}

// `past` before `id`, along the positions; `id` without a past.
ValueId after_past(NodeBuilder& builder, size_t past, ValueId id) {
  if (!builder.has_input(past)) return id;
  return builder.add("Concat", {widened(builder, builder.input(past)), id},
                     attribute_list({{"axis", int64_t{2}}}));
}

// --- ONNX's Attention ----------------------------------------------------------------------------

// Whether the node uses only what this file writes.
bool is_usual(const NodeBuilder& builder) {
  const Attributes& attributes = builder.replaced().attributes;
  const auto at_most = [&](const char* name, int64_t most) {
    const int64_t* found = attributes.find_int(name);
    return found == nullptr || *found <= most;
  };
  const float* softcap = attributes.find_float("softcap");
  return !builder.has_input(6) && !builder.has_output(3) && (softcap == nullptr || *softcap == 0) &&
         at_most("left_window_size", -1) && at_most("right_window_size", -1) &&
         at_most("softmax_precision", 1) && is_floating(builder.element_of(builder.input(0))) &&
         builder.element_of(builder.input(0)) != DataType::Float64;
}

// The heads of queries and keys. False if the sizes that decide are unknown.
bool read_heads(NodeBuilder& builder, Parts& parts) {
  const int64_t rank = builder.rank_of(builder.input(0));
  for (const size_t index : {1, 2}) {
    if (builder.rank_of(builder.input(index)) != rank) return false;
  }
  if (rank == 4) {
    parts.query_heads = size_of(builder, builder.input(0), 1);
    parts.key_heads = size_of(builder, builder.input(1), 1);
    parts.query = builder.input(0);
    parts.key = builder.input(1);
    parts.value = builder.input(2);
    return parts.query_heads > 0 && parts.key_heads > 0;
  }
  const int64_t* query_heads = builder.replaced().attributes.find_int("q_num_heads");
  const int64_t* key_heads = builder.replaced().attributes.find_int("kv_num_heads");
  if (rank != 3 || query_heads == nullptr || key_heads == nullptr) return false;
  parts.query_heads = *query_heads;
  parts.key_heads = *key_heads;
  parts.query = split_heads(builder, builder.input(0), *query_heads);
  parts.key = split_heads(builder, builder.input(1), *key_heads);
  parts.value = split_heads(builder, builder.input(2), *key_heads);
  return true;
}

// Adds the mask. False if it may be shorter than the keys.
bool add_mask(NodeBuilder& builder, Parts& parts) {
  if (!builder.has_input(3)) return true;
  const std::optional<Shape>& shape = builder.type_of(builder.input(3)).shape;
  const std::optional<Shape>& keys = builder.type_of(parts.key).shape;
  if (!shape || !keys || shape->size() < 2 || shape->back() != (*keys)[2]) return false;
  const bool is_choice = builder.element_of(builder.input(3)) == DataType::Bool;
  add_bias(builder, parts,
           is_choice ? bias_of_mask(builder, builder.input(3), kHidden, parts.query)
                     : widened(builder, builder.input(3)));
  parts.may_hide_rows = true;  // a mask of numbers may be -inf, too
  return true;
}

bool write_attention(NodeBuilder& builder) {
  Parts parts;
  if (!is_usual(builder) || !read_heads(builder, parts)) return false;
  const DataType element = builder.element_of(builder.input(0));
  const int64_t size = size_of(builder, parts.query, 3);
  if (size <= 0 || parts.query_heads % parts.key_heads != 0) return false;
  if (!operands_agree(builder, parts, 4, 5)) return false;
  const float* scale = builder.replaced().attributes.find_float("scale");
  parts.scale = scale != nullptr ? *scale : 1 / std::sqrt(static_cast<double>(size));
  const DataType value_element = builder.element_of(parts.value);
  parts.query = widened(builder, parts.query);
  parts.key = after_past(builder, 4, widened(builder, parts.key));
  parts.value = after_past(builder, 5, widened(builder, parts.value));
  give_as(builder, 1, parts.key, element);
  give_as(builder, 2, parts.value, value_element);
  if (builder.element_of(parts.value) != builder.element_of(parts.query)) return false;
  const bool is_causal = builder.replaced().attributes.get_int("is_causal") != 0;
  if (!add_mask(builder, parts)) return false;
  if (is_causal) {
    const ValueId past = builder.has_input(4) ? length_of(builder, builder.input(4), 2) : ValueId();
    add_bias(builder, parts, causal_bias(builder, parts, past));
  }
  const std::optional<ValueId> result = attend(builder, parts);
  if (!result) return false;
  const bool has_joined_heads = builder.rank_of(builder.input(0)) == 3;
  give_as(builder, 0, has_joined_heads ? joined_heads(builder, *result) : *result, element);
  return true;
}

// --- ONNX Runtime's MultiHeadAttention -----------------------------------------------------------

// The three parts of `bias`, for queries, keys and values; false if their sizes are unknown.
bool add_projection_bias(NodeBuilder& builder, std::vector<ValueId>& parts) {
  std::vector<int64_t> sizes;
  for (const ValueId part : parts) {
    if (builder.rank_of(part) != 3) return false;
    sizes.push_back(size_of(builder, part, 2));
    if (sizes.back() < 0) return false;
  }
  const std::vector<ValueId> biases =
      builder.add("Split", {widened(builder, builder.input(3)), builder.integers(sizes)}, 3,
                  attribute_list({{"axis", int64_t{0}}}));
  for (size_t index = 0; index < parts.size(); ++index) {
    parts[index] = builder.add("Add", {parts[index], biases[index]});
  }
  return true;
}

// Adds the padding mask, 1 for each key that counts, and the bias. False for its other forms.
bool add_masks(NodeBuilder& builder, Parts& parts) {
  if (builder.has_input(4)) {
    if (builder.rank_of(builder.input(4)) != 2) return false;
    const float* filter = builder.replaced().attributes.find_float("mask_filter_value");
    constexpr int64_t kOnnxBool = 9;
    const ValueId counts =
        builder.add("Cast", {builder.input(4)}, attribute_list({{"to", kOnnxBool}}));
    const ValueId spread = builder.add("Unsqueeze", {counts, builder.integers({1, 2})});
    add_bias(builder, parts,
             bias_of_mask(builder, spread, filter == nullptr ? -10000 : *filter, parts.query));
  }
  if (builder.has_input(5)) add_bias(builder, parts, widened(builder, builder.input(5)));
  return true;
}

bool write_multi_head_attention(NodeBuilder& builder) {
  const Attributes& attributes = builder.replaced().attributes;
  const bool is_plain = builder.has_input(1) && builder.has_input(2) && !builder.has_input(8) &&
                        !builder.has_input(9) && !builder.has_output(3) &&
                        attributes.get_int("unidirectional") == 0;
  if (!is_plain || builder.rank_of(builder.input(0)) != 3) return false;
  const DataType element = builder.element_of(builder.input(0));
  const int64_t heads = attributes.get_int("num_heads");
  const int64_t key_rank = builder.rank_of(builder.input(1));
  if (heads <= 0 || (key_rank != 3 && key_rank != 4)) return false;
  if (builder.rank_of(builder.input(2)) != key_rank) return false;
  std::vector<ValueId> projected;
  for (const size_t index : {0, 1, 2}) projected.push_back(widened(builder, builder.input(index)));
  if (builder.has_input(3) && !add_projection_bias(builder, projected)) return false;
  Parts parts;
  parts.query_heads = parts.key_heads = heads;
  parts.query = split_heads(builder, projected[0], heads);
  // Keys of four axes are those that an earlier step has projected.
  const bool is_split = key_rank == 4;
  parts.key = is_split ? projected[1] : split_heads(builder, projected[1], heads);
  parts.value = is_split ? projected[2] : split_heads(builder, projected[2], heads);
  const int64_t size = size_of(builder, parts.query, 3);
  if (size <= 0 || !operands_agree(builder, parts, 6, 7)) return false;
  const float* scale = attributes.find_float("scale");
  const bool is_scaled = scale != nullptr && *scale != 0;
  parts.scale = is_scaled ? *scale : 1 / std::sqrt(static_cast<double>(size));
  parts.key = after_past(builder, 6, parts.key);
  parts.value = after_past(builder, 7, parts.value);
  give_as(builder, 1, parts.key, element);
  give_as(builder, 2, parts.value, element);
  if (!add_masks(builder, parts)) return false;
  const std::optional<ValueId> result = attend(builder, parts);
  if (!result) return false;
  give_as(builder, 0, joined_heads(builder, *result), element);
  return true;
}

constexpr FunctionLowering kAttentionLowerings[] = {
    {"", "Attention", write_attention},
    {ops::kMicrosoftDomain, "MultiHeadAttention", write_multi_head_attention},
};

}  // namespace

std::span<const FunctionLowering> attention_lowerings() { return kAttentionLowerings; }

}  // namespace tessera
