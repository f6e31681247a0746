#include "matmul_problem.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/formats.h"
#include "tessera/backend_ops.h"
#include "transpose.h"

namespace tessera::onednn {

using dnnl::algorithm;
using dnnl::memory;
using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

// Whether `value` is read by one node once and by nobody else.
bool is_read_once(const Value& value) {
  return !value.is_needed() && value.consumers().size() == 1;
}

// A factor that reads `value` itself.
Factor plain_factor(const Value& value, const std::vector<int64_t>& dims) {
  return {value, describe(Format::RowMajor, dims)};
}

// A factor that reads `value`, or the input of the Transpose that computes it for this matmul only.
Factor factor_of(const Graph& graph, const Value& value, size_t rank, bool reads_through) {
  const std::vector<int64_t> dims = with_rank(value.type().dims, rank);
  if (!reads_through || value.producer() < 0 || !is_read_once(value)) {
    return plain_factor(value, dims);
  }
  const Node producer = graph.node(value.producer());
  if (!is_transpose(producer) || producer.input(0).is_constant()) return plain_factor(value, dims);
  std::vector<int64_t> strides = strides_through(producer);
  strides.insert(strides.begin(), rank - strides.size(), 1);
  return {producer.input(0), describe_strided(dims, std::move(strides)), producer.id()};
}

// A matmul of all rows on the left by one matrix on the right.
MatMulProblem rows_by_matrix(const Node& node, const std::vector<int64_t>& left, int64_t columns) {
  const int64_t depth = left.back();
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < left.size(); ++axis) rows *= left[axis];
  const std::vector<int64_t> result = node.output(0).type().dims;
  const size_t column_axes = node.input(1).type().rank == 1 ? 0 : 1;
  return {.left = plain_factor(node.input(0), {rows, depth}),
          .right = plain_factor(node.input(1), {depth, columns}),
          .sizes = {rows, columns},
          .view = {result, {{result.size() - column_axes, column_axes}}},
          .depth = depth,
          .scalings = {}};
}

MatMulProblem mat_mul_of(const Graph& graph, const Node& node, bool reads_through) {
  std::vector<int64_t> left = node.input(0).type().dims;
  std::vector<int64_t> right = node.input(1).type().dims;
  const size_t row_axes = left.size() == 1 ? 0 : 1;
  const size_t column_axes = right.size() == 1 ? 0 : 1;
  if (row_axes == 0) left.insert(left.begin(), 1);
  if (column_axes == 0) right.push_back(1);
  const bool is_one_matrix =
      std::all_of(right.begin(), right.end() - 2, [](int64_t dim) { return dim == 1; });
  const bool are_matrices = left.size() == 2 && right.size() == 2;
  if (is_one_matrix && !(are_matrices && reads_through)) {
    return rows_by_matrix(node, left, right.back());
  }
  const size_t rank = std::max(left.size(), right.size());
  left = with_rank(left, rank);
  right = with_rank(right, rank);
  const std::vector<int64_t> result = node.output(0).type().dims;
  std::vector<int64_t> sizes(result.begin(), result.begin() + (static_cast<int64_t>(rank) - 2));
  sizes.insert(sizes.end(), {left[rank - 2], right[rank - 1]});
  std::vector<size_t> groups(rank - 2, 1);
  groups.insert(groups.end(), {row_axes, column_axes});
  const bool has_vector = row_axes == 0 || column_axes == 0;
  const bool reads = reads_through && !has_vector;
  return {.left = has_vector ? plain_factor(node.input(0), left)
                             : factor_of(graph, node.input(0), rank, reads),
          .right = has_vector ? plain_factor(node.input(1), right)
                              : factor_of(graph, node.input(1), rank, reads),
          .sizes = std::move(sizes),
          .view = {result, {std::move(groups)}},
          .depth = left[rank - 1],
          .scalings = {}};
}

// alpha * A * B + beta * C is (alpha / beta * A * B + C) * beta.
void add_scalings(const Node& node, MatMulProblem& problem) {
  const plugin::Attributes attributes = node.attributes();
  const float alpha = attributes.get_float("alpha", 1);
  const float beta = attributes.get_float("beta", 1);
  const Value addend = node.input(2);
  const auto scale = [&](float factor) {
    if (factor != 1) problem.scalings.push_back({{algorithm::eltwise_linear, factor, 0}});
  };
  if (addend.is_present() && beta == 0) problem.ignored = addend.id();
  if (!addend.is_present() || beta == 0) return scale(alpha);
  if (const auto reason = explain_unusable(addend)) throw Failure(TESSERA_UNSUPPORTED, *reason);
  const std::vector<int64_t> dims = with_rank(addend.type().dims, 2);
  if (alpha == 1 && beta == 1 && dims[0] == 1 && dims[1] == problem.sizes[1]) {
    problem.bias = addend.id();
    return;
  }
  scale(alpha / beta);
  problem.scalings.push_back({{}, algorithm::binary_add, addend.id()});
  scale(beta);
}

MatMulProblem gemm_of(const Graph& graph, const Node& node, bool reads_through) {
  const auto factor = [&](size_t index, const char* attribute) -> Factor {
    Factor made = factor_of(graph, node.input(index), 2, reads_through);
    if (node.attributes().get_int(attribute) == 0) return made;
    std::vector<int64_t> dims = made.desc.get_dims();
    std::vector<int64_t> strides = made.desc.get_strides();
    std::swap(dims[0], dims[1]);
    std::swap(strides[0], strides[1]);
    made.desc = describe_strided(dims, std::move(strides));
    return made;
  };
  const std::vector<int64_t> result = node.output(0).type().dims;
  MatMulProblem problem = {.left = factor(0, "transA"),
                           .right = factor(1, "transB"),
                           .sizes = result,
                           .view = {result, plain_view(2)},
                           .scalings = {}};
  problem.depth = problem.left.desc.get_dims()[1];
  add_scalings(node, problem);
  return problem;
}

}  // namespace

MatMulProblem matmul_problem_of(const Graph& graph, const Node& node, bool reads_through) {
  return node.op() == "Gemm" ? gemm_of(graph, node, reads_through)
                             : mat_mul_of(graph, node, reads_through);
}

std::optional<FusedTranspose> following_transpose(const Graph& graph, const MatMulProblem& problem,
                                                  const Value& result) {
  if (problem.sizes != problem.view.dims || !is_read_once(result)) return std::nullopt;
  const Node node = graph.node(result.consumers().front());
  if (!is_transpose(node)) return std::nullopt;
  const std::vector<int64_t> order = plugin::transpose_order(node);
  const std::vector<int64_t> to =
      describe(Format::RowMajor, node.output(0).type().dims).get_strides();
  std::vector<int64_t> strides(to.size());
  for (size_t axis = 0; axis < order.size(); ++axis) {
    strides[static_cast<size_t>(order[axis])] = to[axis];
  }
  // The library writes contiguous rows only.
  if (strides.back() != 1) return std::nullopt;
  return FusedTranspose{node.id(), node.output(0).id(),
                        describe_strided(problem.sizes, std::move(strides))};
}

}  // namespace tessera::onednn
