#include "ops/attention/scaled_dot_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <vector>

#include "ops/convert_elements.h"
#include "ops/matmul/matrix_product.h"

namespace tessera::ops {
namespace {

// Scores that are in memory at once: 16 MB, unless one row has more.
constexpr int64_t kMaxScores = int64_t{1} << 21;

}  // namespace

void for_each_score_block(const KernelCall& call, const AttentionProblem& problem,
                          FunctionRef<void(const ScoreBlock& block, double* scores)> visit) {
  const int64_t all_heads = problem.batch * problem.query_heads;
  if (all_heads == 0 || problem.queries == 0) return;
  const int64_t keys = std::max<int64_t>(problem.keys, 1);
  const int64_t most_rows = std::max<int64_t>(kMaxScores / keys, 1);
  const int64_t queries = std::min(problem.queries, most_rows);
  const int64_t heads = queries < problem.queries
                            ? 1
                            : std::min(all_heads, std::max<int64_t>(most_rows / queries, 1));
  std::pmr::vector<double> scores(static_cast<size_t>(heads * queries * problem.keys),
                                  &call.scratch);
  for (int64_t head = 0; head < all_heads; head += heads) {
    for (int64_t query = 0; query < problem.queries; query += queries) {
      visit({head, std::min(heads, all_heads - head), query,
             std::min(queries, problem.queries - query)},
            scores.data());
    }
  }
}

void multiply_by_keys(const KernelCall& call, const AttentionProblem& problem,
                      const ScoreBlock& block, double* scores) {
  const int64_t group = problem.query_heads / problem.key_heads;
  const auto read_query = [&](int64_t product, int64_t line, int64_t begin, int64_t count,
                              double* target) {
    const int64_t head = block.first_head + product;
    problem.query.read(head / problem.query_heads, head % problem.query_heads,
                       block.first_query + line, begin, count, target);
  };
  const auto read_key = [&](int64_t product, int64_t line, int64_t begin, int64_t count,
                            double* target) {
    const int64_t head = block.first_head + product;
    problem.key.read(head / problem.query_heads, head % problem.query_heads / group, line, begin,
                     count, target);
  };
  const auto store = [&](int64_t product, int64_t row, int64_t column, int64_t count,
                         const double* sums) {
    double* target = scores + (product * block.queries + row) * problem.keys + column;
    for (int64_t index = 0; index < count; ++index) target[index] = sums[index] * problem.scale;
  };
  multiply_matrices<double>(call, {.count = block.heads,
                                   .rows = block.queries,
                                   .columns = problem.keys,
                                   .depth = problem.head_size,
                                   .left = {read_query, true},
                                   .right = {read_key, true},
                                   .store = store});
}

void multiply_by_values(const KernelCall& call, const AttentionProblem& problem,
                        const ScoreBlock& block, const double* weights) {
  const int64_t group = problem.query_heads / problem.key_heads;
  const auto read_weights = [&](int64_t product, int64_t line, int64_t begin, int64_t count,
                                double* target) {
    const double* source = weights + (product * block.queries + line) * problem.keys + begin;
    std::copy_n(source, count, target);
  };
  const auto read_value = [&](int64_t product, int64_t line, int64_t begin, int64_t count,
                              double* target) {
    const int64_t head = block.first_head + product;
    problem.value.read(head / problem.query_heads, head % problem.query_heads / group, line, begin,
                       count, target);
  };
  const auto store = [&](int64_t product, int64_t row, int64_t column, int64_t count,
                         const double* sums) {
    const int64_t head = block.first_head + product;
    problem.output.write(head / problem.query_heads, head % problem.query_heads,
                         block.first_query + row, column, count, sums);
  };
  multiply_matrices<double>(call, {.count = block.heads,
                                   .rows = block.queries,
                                   .columns = problem.value_size,
                                   .depth = problem.keys,
                                   .left = {read_weights, true},
                                   .right = {read_value, false},
                                   .store = store});
}

void for_each_row(const KernelCall& call, const AttentionProblem& problem, const ScoreBlock& block,
                  double* scores, Weigh visit) {
  const int64_t grain = kElementGrain / 4 / (problem.keys + 1) + 1;
  call.pool.parallel_for(block.heads * block.queries, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t head = block.first_head + row / block.queries;
      visit({.batch = head / problem.query_heads,
             .head = head % problem.query_heads,
             .query = block.first_query + row % block.queries,
             .scores = {scores + row * problem.keys, static_cast<size_t>(problem.keys)}});
    }
  });
}

void attend(const KernelCall& call, const AttentionProblem& problem, Weigh weigh) {
  for_each_score_block(call, problem, [&](const ScoreBlock& block, double* scores) {
    multiply_by_keys(call, problem, block, scores);
    for_each_row(call, problem, block, scores, weigh);
    multiply_by_values(call, problem, block, scores);
  });
}

double default_scale(int64_t head_size) {
  return head_size == 0 ? 1.0 : 1.0 / std::sqrt(static_cast<double>(head_size));
}

void cap_scores(std::span<double> scores, double cap) {
  if (cap == 0) return;
  for (double& score : scores) score = cap * std::tanh(score / cap);
}

void softmax_in_place(std::span<double> scores, double sink) {
  double largest = sink;
  for (const double score : scores) largest = std::max(largest, score);
  double sum = std::exp(sink - largest);
  if (sink == -std::numeric_limits<double>::infinity()) sum = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  for (double& score : scores) score /= sum;
}

void softmax_in_place(std::span<double> scores) {
  softmax_in_place(scores, -std::numeric_limits<double>::infinity());
}

DataType softmax_rounding(DataType type, DataType wanted) {
  const bool has_all = wanted == type || wanted == DataType::Float64 ||
                       (wanted == DataType::Float32 && type != DataType::Float64);
  return has_all ? DataType::Undefined : wanted;
}

void round_to_type(std::span<double> numbers, DataType type) {
  if (type == DataType::Undefined) return;
  std::array<double, kConvertBlock> rounded;  // memory for elements of every type
  for (size_t begin = 0; begin < numbers.size(); begin += rounded.size()) {
    const auto count = static_cast<int64_t>(std::min(rounded.size(), numbers.size() - begin));
    double* part = numbers.data() + begin;
    convert_elements(DataType::Float64, part, type, rounded.data(), count);
    convert_elements(type, rounded.data(), DataType::Float64, part, count);
  }
}

void store_row(const ScoreRow& row, const MutableTensorView& tensor) {
  const auto keys = static_cast<int64_t>(row.scores.size());
  const int64_t line = (row.batch * tensor.dims[1] + row.head) * tensor.dims[2] + row.query;
  char* target = static_cast<char*>(tensor.data) + line * keys * element_bytes(tensor.type);
  convert_elements(DataType::Float64, row.scores.data(), tensor.type, target, keys);
}

int64_t attention_flops_of(std::span<const Type> outputs, const Dim& keys) {
  const Dim elements = element_count(dims_from(*outputs[0].shape));
  return multiply(elements, multiply(keys, 4)).value();
}

}  // namespace tessera::ops
