#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <string>
#include <vector>

#include "ops/attention/group_query.h"
#include "ops/attention/heads.h"
#include "ops/attention/padded_attention.h"
#include "ops/attention/rotation.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/convert_elements.h"
#include "ops/index_reader.h"
#include "ops/op.h"

namespace tessera::ops::group_query {
namespace {

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
    double* const vector =
        static_cast<double*>(target.data) + target.as_const().offset(place.b, place.h, place.s);
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
    rotate_heads(call, rotation, view, sizes, target,
                 [&](int64_t b, int64_t s) { return angle_row(group, b, s, first(b), rows); });
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

// Writes a cache after this call: the positions of the past, the new ones, and zeros. In a cache
// that does not grow, what is behind the new positions stays, so that it can be written in place.
void fill_cache(const GroupCall& group, size_t past, const HeadView& recent,
                const MutableHeadView& target, int64_t positions) {
  const KernelCall& call = group.call;
  HeadSizes sizes = group.keys;
  const std::pmr::vector<double> zeros(static_cast<size_t>(sizes.size), &call.scratch);
  const bool has_past = call.has_input(past);
  const HeadView before = has_past ? heads_first(call.inputs[past]) : HeadView();
  const bool keeps_rest = has_past && call.inputs[past].dims[2] == positions;
  sizes.positions = positions;
  for_each_vector(call, sizes, [&](const HeadPlace& place) {
    const int64_t first = group.first_key(place.b);
    if (place.s >= first && place.s < first + group.keys.positions) {
      copy_vector(recent, {place.b, place.h, place.s - first}, target, place, sizes.size);
    } else if (has_past && (place.s < first || keeps_rest)) {
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

// Keys [begin, end).
struct SeenKeys {
  int64_t begin = 0;
  int64_t end = 0;
};

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

  // The keys that a query sees.
  SeenKeys seen_by(int64_t batch, int64_t query) const;
  void weigh(const ScoreRow& row) const;
};

SeenKeys GroupWeights::seen_by(int64_t batch, int64_t query) const {
  const int64_t position = group.first_query(batch) + query;
  int64_t end = group.length(batch);
  if (is_causal) end = std::min(end, position + 1);
  return {window < 0 ? 0 : std::clamp<int64_t>(position + 1 - window, 0, end), end};
}

void GroupWeights::weigh(const ScoreRow& row) const {
  const auto [begin, end] = seen_by(row.batch, row.query);
  cap_scores(row.scores, cap);
  bias.add_to(row);
  std::fill(row.scores.begin(), row.scores.begin() + begin, 0.0);
  std::fill(row.scores.begin() + end, row.scores.end(), 0.0);
  if (output == 1 && scores != nullptr) store_row(row, *scores);
  const std::span seen =
      row.scores.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
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

// Writes the result of a row: the sum of the values that its query sees. Others are not read,
// because they may be NaN: in a cache, memory that was never written.
void mix_values(const AttentionProblem& problem, const ScoreRow& row, const SeenKeys& seen) {
  const int64_t key_head = row.head / (problem.query_heads / problem.key_heads);
  std::array<double, kConvertBlock> value;
  std::array<double, kConvertBlock> sums;
  for (int64_t begin = 0; begin < problem.value_size; begin += kConvertBlock) {
    const int64_t count = std::min(problem.value_size - begin, int64_t{kConvertBlock});
    std::fill_n(sums.begin(), count, 0.0);
    for (int64_t key = seen.begin; key < seen.end; ++key) {
      problem.value.read(row.batch, key_head, key, begin, count, value.data());
      const double weight = row.scores[static_cast<size_t>(key)];
      for (int64_t index = 0; index < count; ++index) {
        sums[static_cast<size_t>(index)] += weight * value[static_cast<size_t>(index)];
      }
    }
    problem.output.write(row.batch, row.head, row.query, begin, count, sums.data());
  }
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

}  // namespace

void run(const KernelCall& call) {
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
  for_each_score_block(call, problem, [&](const ScoreBlock& block, double* scores) {
    multiply_by_keys(call, problem, block, scores);
    for_each_row(call, problem, block, scores, [&](const ScoreRow& row) {
      weights.weigh(row);
      mix_values(problem, row, weights.seen_by(row.batch, row.query));
    });
  });
}

}  // namespace tessera::ops::group_query
