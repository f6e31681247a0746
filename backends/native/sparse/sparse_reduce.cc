// Sums over rows, columns or all of a sparse tensor: ReduceSum, ReduceMean, ReduceL1, ReduceL2,
// ReduceSumSquare. Elements that are not stored add nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "sparse/sparse.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::CsrView;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RowSparseView;
using plugin::RunContext;

namespace {

// The minimum number of stored elements for one thread.
constexpr int64_t kSumGrain = 8 * 1024;

enum class Over { Rows, Columns, All };  // axis 0, axis 1, both

struct SparseSum {
  SparseShape shape;
  Over over = Over::All;
  bool takes_squares = false;
  bool takes_magnitudes = false;
  bool takes_root = false;
  double divisor = 1;

  double term(float value) const {
    if (takes_squares) return double{value} * value;
    return takes_magnitudes ? std::fabs(double{value}) : double{value};
  }
  float result(double sum) const {
    return static_cast<float>(takes_root ? std::sqrt(sum) : sum / divisor);
  }
  int64_t results() const {
    return over == Over::All ? 1 : over == Over::Rows ? shape.width : shape.rows;
  }
};

class SumKernel : public plugin::Kernel {
 public:
  SumKernel(SparseSum sum, int64_t threads) : sum_(sum), threads_(threads) {}

  // One sum for each result and thread; a sum of columns has a single writer.
  static int64_t workspace_of(const SparseSum& sum, int64_t threads) {
    return sum.over == Over::Columns
               ? 0
               : sum.results() * threads * static_cast<int64_t>(sizeof(double));
  }
  int64_t workspace_bytes() const override { return workspace_of(sum_, threads_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    float* results = outputs[0].as<float>();
    if (sum_.over == Over::Columns) return sum_rows(context, inputs[0], results);
    auto* partial = static_cast<double*>(context.workspace());
    const int64_t count = sum_.results();
    std::memset(partial, 0, static_cast<size_t>(count * threads_) * sizeof(double));
    context.parallel_for(threads_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) {
        add_share(inputs[0], thread, partial + thread * count);
      }
    });
    for (int64_t index = 0; index < count; ++index) {
      double total = 0;
      for (int64_t thread = 0; thread < threads_; ++thread)
        total += partial[thread * count + index];
      results[index] = sum_.result(total);
    }
  }

 private:
  // Computes one sum for each row.
  void sum_rows(RunContext& context, const Buffer& input, float* results) const {
    const int64_t rows = sum_.shape.rows;
    if (sum_.shape.format == TESSERA_CSR) {
      const CsrView view(input.data);
      const int64_t in_row = view.stored() / std::max<int64_t>(1, rows) + 1;
      context.parallel_for(rows, kSumGrain / in_row + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = view.offsets[row];
          results[row] =
              sum_.result(total_of(view.values_as<float>() + first, view.offsets[row + 1] - first));
        }
      });
      return;
    }
    const RowSparseView view(input.data);
    std::fill_n(results, rows, sum_.result(0));
    const int64_t width = sum_.shape.width;
    context.parallel_for(view.stored(), kSumGrain / (width + 1) + 1,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t at = begin; at < end; ++at) {
                             results[view.rows[at]] =
                                 sum_.result(total_of(view.values_as<float>() + at * width, width));
                           }
                         });
  }

  double total_of(const float* values, int64_t count) const {
    double total = 0;
    for (int64_t at = 0; at < count; ++at) total += sum_.term(values[at]);
    return total;
  }

  // Adds one thread's share of the stored elements to its own sums.
  void add_share(const Buffer& input, int64_t thread, double* sums) const {
    const int64_t width = sum_.shape.width;
    if (sum_.shape.format == TESSERA_CSR) {
      const CsrView view(input.data);
      const int64_t begin = view.stored() * thread / threads_;
      const int64_t end = view.stored() * (thread + 1) / threads_;
      for (int64_t at = begin; at < end; ++at) {
        sums[sum_.over == Over::All ? 0 : view.columns[at]] +=
            sum_.term(view.values_as<float>()[at]);
      }
      return;
    }
    const RowSparseView view(input.data);
    const int64_t begin = view.stored() * thread / threads_;
    const int64_t end = view.stored() * (thread + 1) / threads_;
    for (int64_t row = begin; row < end; ++row) {
      const float* values = view.values_as<float>() + row * width;
      for (int64_t column = 0; column < width; ++column) {
        sums[sum_.over == Over::All ? 0 : column] += sum_.term(values[column]);
      }
    }
  }

  SparseSum sum_;
  int64_t threads_;
};

// Rows, columns or all; nullopt for other axes, or none. In a row_sparse tensor of more axes, all
// axes but the first count as columns.
std::optional<Over> over_of(const std::vector<bool>& is_reduced) {
  const auto count = static_cast<size_t>(std::count(is_reduced.begin(), is_reduced.end(), true));
  if (count == is_reduced.size()) return Over::All;
  if (count == 1 && is_reduced[0]) return Over::Rows;
  if (count > 0 && count == is_reduced.size() - 1 && !is_reduced[0]) return Over::Columns;
  return std::nullopt;
}

void offer_sum(ProposeContext& context, const Node& node) {
  SparseSum sum;
  sum.shape = sparse_shape(node.input(0));
  const plugin::Type type = node.input(0).type();
  if (sum.shape.format == TESSERA_DENSE || type.data_type != TESSERA_FLOAT32) return;
  const std::optional<Over> over =
      over_of(plugin::reduced_axes(node, static_cast<size_t>(type.rank)));
  if (!over) return;
  sum.over = *over;
  sum.takes_root = node.op() == "ReduceL2";
  sum.takes_squares = sum.takes_root || node.op() == "ReduceSumSquare";
  sum.takes_magnitudes = node.op() == "ReduceL1";
  if (node.op() == "ReduceMean") {
    sum.divisor = static_cast<double>(type.elements()) / static_cast<double>(sum.results());
  }
  plugin::Candidate candidate = sparse_candidate(node, 0);
  // The input of axes is not read, because its elements are known.
  candidate.inputs.resize(1);
  const int64_t threads = std::max(context.options().threads, 1);
  candidate.workspace_bytes = SumKernel::workspace_of(sum, threads);
  candidate.optimistic_seconds =
      sparse_seconds(context, 2 * sum.shape.stored(), 8 * sum.shape.stored());
  candidate.build = [sum, threads](const plugin::BuildOptions&) {
    return std::make_unique<SumKernel>(sum, threads);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_sparse_reduce(ProposeContext& context) {
  context.for_each({"ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"},
                   [&](const Node& node) { offer_sum(context, node); });
}

}  // namespace tessera::native
