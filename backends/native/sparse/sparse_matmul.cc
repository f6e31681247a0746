// MatMul and Gemm (with bias) of a matrix in csr and a dense one, on either side.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/families.h"
#include "sparse/sparse.h"
#include "sparse/sparse_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::CsrView;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// The minimum number of multiply-adds for one thread.
constexpr int64_t kGrainWork = 1 << 15;

// result = alpha * left * right + bias, with one factor in csr.
struct SparseMatMul {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t capacity = 0;  // of the sparse factor
  bool is_left_sparse = false;
  bool is_transposed = false;  // the sparse right factor is columns x depth
  float alpha = 1;
  float beta = 1;
  int left = 0;  // input ports
  int right = 1;
  int bias = -1;  // -1: none; else a row, or a single element
  bool is_bias_one_element = false;
};

int port_of(const plugin::Candidate& candidate, const Value& value) {
  const auto found = std::find_if(candidate.inputs.begin(), candidate.inputs.end(),
                                  [&](const auto& port) { return port.value == value.id(); });
  return static_cast<int>(found - candidate.inputs.begin());
}

// The bias of a Gemm times beta, as a row with the width of the result.
void fill_bias(const SparseMatMul& problem, std::span<const Buffer> inputs, float* row) {
  const float* bias = inputs[static_cast<size_t>(problem.bias)].as<float>();
  for (int64_t column = 0; column < problem.columns; ++column) {
    row[column] = problem.beta * bias[problem.is_bias_one_element ? 0 : column];
  }
}

class SparseTimesDense : public plugin::Kernel {
 public:
  explicit SparseTimesDense(SparseMatMul problem) : problem_(problem) {}

  // Room for the bias, and for the values times alpha.
  static int64_t workspace_of(const SparseMatMul& problem) {
    const int64_t scaled = problem.alpha == 1 ? 0 : problem.capacity;
    return ((problem.bias < 0 ? 0 : problem.columns) + scaled) *
           static_cast<int64_t>(sizeof(float));
  }
  int64_t workspace_bytes() const override { return workspace_of(problem_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const CsrView left(inputs[static_cast<size_t>(problem_.left)].data);
    const float* right = inputs[static_cast<size_t>(problem_.right)].as<float>();
    float* result = outputs[0].as<float>();
    auto* scratch = static_cast<float*>(context.workspace());
    const float* bias = nullptr;
    if (problem_.bias >= 0) {
      fill_bias(problem_, inputs, scratch);
      bias = scratch;
      scratch += problem_.columns;
    }
    const float* values = left.values_as<float>();
    if (problem_.alpha != 1) {
      for (int64_t at = 0; at < left.stored(); ++at) scratch[at] = problem_.alpha * values[at];
      values = scratch;
    }
    const SparseLoops& loops = sparse_loops();
    const int64_t work = left.stored() * problem_.columns / std::max<int64_t>(1, problem_.rows);
    const int64_t grain = std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, work));
    context.parallel_for(problem_.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = left.offsets[row];
        loops.combine_rows(values + first, left.columns + first, left.offsets[row + 1] - first,
                           right, problem_.columns, bias, result + row * problem_.columns);
      }
    });
  }

 private:
  SparseMatMul problem_;
};

// The dense factor is transposed in panels of kPanelRows rows, so that each stored element is
// multiplied with a whole vector.
class DenseTimesSparse : public plugin::Kernel {
 public:
  DenseTimesSparse(SparseMatMul problem, int64_t threads)
      : problem_(problem), lanes_(lanes_of(problem, threads)) {}

  static int64_t panels_of(const SparseMatMul& problem) {
    return (problem.rows + kPanelRows - 1) / kPanelRows;
  }
  // Panels that are processed at a time.
  static int64_t lanes_of(const SparseMatMul& problem, int64_t threads) {
    return std::max<int64_t>(1, std::min(threads, panels_of(problem)));
  }
  static int64_t workspace_of(const SparseMatMul& problem, int64_t threads) {
    return lanes_of(problem, threads) * (problem.depth + problem.columns) * kPanelRows *
               static_cast<int64_t>(sizeof(float)) +
           (problem.bias < 0 ? 0 : problem.columns * static_cast<int64_t>(sizeof(float)));
  }
  int64_t workspace_bytes() const override { return workspace_of(problem_, lanes_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const CsrView right(inputs[static_cast<size_t>(problem_.right)].data);
    const float* left = inputs[static_cast<size_t>(problem_.left)].as<float>();
    auto* scratch = static_cast<float*>(context.workspace());
    const int64_t lane_floats = (problem_.depth + problem_.columns) * kPanelRows;
    float* bias = nullptr;
    if (problem_.bias >= 0) {
      bias = scratch + lanes_ * lane_floats;
      fill_bias(problem_, inputs, bias);
    }
    const int64_t panels = panels_of(problem_);
    context.parallel_for(lanes_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        float* transposed = scratch + lane * lane_floats;
        for (int64_t panel = lane; panel < panels; panel += lanes_) {
          run_panel(right, left, bias, panel, transposed, outputs[0].as<float>());
        }
      }
    });
  }

 private:
  void run_panel(const CsrView& right, const float* left, const float* bias, int64_t panel,
                 float* transposed, float* result) const {
    const int64_t first = panel * kPanelRows;
    const int64_t rows = std::min(kPanelRows, problem_.rows - first);
    float* sums = transposed + problem_.depth * kPanelRows;
    for (int64_t k = 0; k < problem_.depth; ++k) {
      for (int64_t row = 0; row < kPanelRows; ++row) {
        transposed[k * kPanelRows + row] =
            row < rows ? problem_.alpha * left[(first + row) * problem_.depth + k] : 0;
      }
    }
    multiply(right, transposed, sums);
    for (int64_t row = 0; row < rows; ++row) {
      float* target = result + (first + row) * problem_.columns;
      for (int64_t column = 0; column < problem_.columns; ++column) {
        target[column] = sums[column * kPanelRows + row] + (bias == nullptr ? 0.0F : bias[column]);
      }
    }
  }

  void multiply(const CsrView& right, const float* transposed, float* sums) const {
    const SparseLoops& loops = sparse_loops();
    const float* values = right.values_as<float>();
    const auto count = [&](int64_t row) { return right.offsets[row + 1] - right.offsets[row]; };
    if (problem_.is_transposed) {
      for (int64_t column = 0; column < problem_.columns; ++column) {
        const int64_t at = right.offsets[column];
        loops.gather_panel(values + at, right.columns + at, count(column), transposed,
                           sums + column * kPanelRows);
      }
      return;
    }
    std::memset(sums, 0, static_cast<size_t>(problem_.columns * kPanelRows) * sizeof(float));
    for (int64_t k = 0; k < problem_.depth; ++k) {
      const int64_t at = right.offsets[k];
      loops.scatter_panel(values + at, right.columns + at, count(k), transposed + k * kPanelRows,
                          sums);
    }
  }

  SparseMatMul problem_;
  int64_t lanes_;
};

bool is_csr(const Value& value) { return sparse_shape(value).format == TESSERA_CSR; }

bool is_float(const Value& value) {
  return value.type().data_type == TESSERA_FLOAT32 && value.type().is_known();
}

// Reads the bias of a Gemm; false if it is not supported.
bool read_bias(const Node& node, SparseMatMul& problem) {
  const Value bias = node.input(2);
  if (!bias.is_present()) return true;
  const plugin::Type type = bias.type();
  if (!is_float(bias)) return false;
  problem.is_bias_one_element = type.elements() == 1;
  const bool is_row = type.elements() == problem.columns && !type.dims.empty() &&
                      type.dims.back() == problem.columns;
  return is_row || problem.is_bias_one_element;
}

// The problem of `node` with its input `sparse` in csr; nullopt if no kernel computes it.
std::optional<SparseMatMul> problem_of(const Node& node, size_t sparse) {
  SparseMatMul problem;
  const plugin::Type left = node.input(0).type();
  const plugin::Type right = node.input(1).type();
  problem.is_left_sparse = sparse == 0;
  problem.capacity = node.input(sparse).sparse_capacity();
  if (node.input(0).id() == node.input(1).id()) return std::nullopt;
  if (node.op() == "Gemm") {
    const plugin::Attributes attributes = node.attributes();
    const bool is_right_transposed = attributes.get_int("transB") != 0;
    if (attributes.get_int("transA") != 0 || (problem.is_left_sparse && is_right_transposed)) {
      return std::nullopt;
    }
    problem.is_transposed = is_right_transposed;
    problem.alpha = attributes.get_float("alpha", 1);
    problem.beta = attributes.get_float("beta", 1);
  }
  if (right.rank != 2 || left.rank < 2 || (problem.is_left_sparse && left.rank != 2)) {
    return std::nullopt;
  }
  problem.depth = left.dims.back();
  problem.columns = right.dims[problem.is_transposed ? 0 : 1];
  problem.rows = 1;
  for (size_t axis = 0; axis + 1 < left.dims.size(); ++axis) problem.rows *= left.dims[axis];
  if (node.op() == "Gemm" && !read_bias(node, problem)) return std::nullopt;
  return problem;
}

void offer_matmul(ProposeContext& context, const Node& node, size_t sparse) {
  if (!is_csr(node.input(sparse)) || !is_float(node.input(0)) || !is_float(node.input(1))) return;
  std::optional<SparseMatMul> found = problem_of(node, sparse);
  if (!found) return;
  SparseMatMul problem = *found;
  plugin::Candidate candidate = sparse_candidate(node, sparse);
  problem.left = port_of(candidate, node.input(0));
  problem.right = port_of(candidate, node.input(1));
  const bool has_bias = node.op() == "Gemm" && node.input(2).is_present();
  if (has_bias) problem.bias = port_of(candidate, node.input(2));
  // A bias that is a factor too would need the storage of that factor.
  if (has_bias && (problem.bias == problem.left || problem.bias == problem.right)) return;
  const auto stored = static_cast<double>(problem.capacity);
  const auto rows = static_cast<double>(problem.rows);
  const auto columns = static_cast<double>(problem.columns);
  // Only the rows of the dense factor that are multiplied with stored elements are read.
  const double met = std::min(stored, static_cast<double>(problem.depth));
  const double dense = met * (problem.is_left_sparse ? columns : rows);
  const double bytes = 8 * stored + sizeof(float) * (dense + rows * columns);
  const double width = problem.is_left_sparse ? columns : rows;
  candidate.optimistic_seconds = sparse_seconds(context, 2 * stored * width, bytes);
  const int64_t threads = std::max(context.options().threads, 1);
  if (problem.is_left_sparse) {
    candidate.workspace_bytes = SparseTimesDense::workspace_of(problem);
    candidate.build = [problem](const plugin::BuildOptions&) {
      return std::make_unique<SparseTimesDense>(problem);
    };
  } else {
    candidate.workspace_bytes = DenseTimesSparse::workspace_of(problem, threads);
    candidate.build = [problem, threads](const plugin::BuildOptions&) {
      return std::make_unique<DenseTimesSparse>(problem, threads);
    };
  }
  context.add(std::move(candidate));
}

}  // namespace

void propose_sparse_matmul(ProposeContext& context) {
  context.for_each({"MatMul", "Gemm"}, [&](const Node& node) {
    offer_matmul(context, node, 0);
    offer_matmul(context, node, 1);
  });
}

}  // namespace tessera::native
