// Products of a matrix in csr with a dense one, on either side: MatMul, and Gemm with its bias.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "families.h"
#include "sparse.h"
#include "sparse_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::CsrView;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Multiply-adds that one thread does at least.
constexpr int64_t kGrainWork = 1 << 15;

// result = alpha * left * right + bias, where one factor is in csr.
struct SparseProduct {
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

// The bias of a Gemm times beta, as a row that is as wide as the result.
void fill_bias(const SparseProduct& product, std::span<const Buffer> inputs, float* row) {
  const float* bias = inputs[static_cast<size_t>(product.bias)].as<float>();
  for (int64_t column = 0; column < product.columns; ++column) {
    row[column] = product.beta * bias[product.is_bias_one_element ? 0 : column];
  }
}

class SparseTimesDense : public plugin::Kernel {
 public:
  explicit SparseTimesDense(SparseProduct product) : product_(product) {}

  // Places for the bias, and for the values times alpha.
  static int64_t workspace_of(const SparseProduct& product) {
    const int64_t scaled = product.alpha == 1 ? 0 : product.capacity;
    return ((product.bias < 0 ? 0 : product.columns) + scaled) *
           static_cast<int64_t>(sizeof(float));
  }
  int64_t workspace_bytes() const override { return workspace_of(product_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const CsrView left(inputs[static_cast<size_t>(product_.left)].data);
    const float* right = inputs[static_cast<size_t>(product_.right)].as<float>();
    float* result = outputs[0].as<float>();
    auto* places = static_cast<float*>(context.workspace());
    const float* bias = nullptr;
    if (product_.bias >= 0) {
      fill_bias(product_, inputs, places);
      bias = places;
      places += product_.columns;
    }
    const float* values = left.values_as<float>();
    if (product_.alpha != 1) {
      for (int64_t at = 0; at < left.stored(); ++at) places[at] = product_.alpha * values[at];
      values = places;
    }
    const SparseLoops& loops = sparse_loops();
    const int64_t work = left.stored() * product_.columns / std::max<int64_t>(1, product_.rows);
    const int64_t grain = std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, work));
    context.parallel_for(product_.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = left.offsets[row];
        loops.combine_rows(values + first, left.columns + first, left.offsets[row + 1] - first,
                           right, product_.columns, bias, result + row * product_.columns);
      }
    });
  }

 private:
  SparseProduct product_;
};

// The dense factor is turned by panels of kPanelRows rows, so that each stored element meets a
// whole vector of it.
class DenseTimesSparse : public plugin::Kernel {
 public:
  DenseTimesSparse(SparseProduct product, int64_t threads)
      : product_(product), lanes_(lanes_of(product, threads)) {}

  static int64_t panels_of(const SparseProduct& product) {
    return (product.rows + kPanelRows - 1) / kPanelRows;
  }
  // Panels that are worked on at one time.
  static int64_t lanes_of(const SparseProduct& product, int64_t threads) {
    return std::max<int64_t>(1, std::min(threads, panels_of(product)));
  }
  static int64_t workspace_of(const SparseProduct& product, int64_t threads) {
    return lanes_of(product, threads) * (product.depth + product.columns) * kPanelRows *
               static_cast<int64_t>(sizeof(float)) +
           (product.bias < 0 ? 0 : product.columns * static_cast<int64_t>(sizeof(float)));
  }
  int64_t workspace_bytes() const override { return workspace_of(product_, lanes_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const CsrView right(inputs[static_cast<size_t>(product_.right)].data);
    const float* left = inputs[static_cast<size_t>(product_.left)].as<float>();
    auto* places = static_cast<float*>(context.workspace());
    const int64_t lane_places = (product_.depth + product_.columns) * kPanelRows;
    float* bias = nullptr;
    if (product_.bias >= 0) {
      bias = places + lanes_ * lane_places;
      fill_bias(product_, inputs, bias);
    }
    const int64_t panels = panels_of(product_);
    context.parallel_for(lanes_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        float* turned = places + lane * lane_places;
        for (int64_t panel = lane; panel < panels; panel += lanes_) {
          run_panel(right, left, bias, panel, turned, outputs[0].as<float>());
        }
      }
    });
  }

 private:
  void run_panel(const CsrView& right, const float* left, const float* bias, int64_t panel,
                 float* turned, float* result) const {
    const int64_t first = panel * kPanelRows;
    const int64_t rows = std::min(kPanelRows, product_.rows - first);
    float* sums = turned + product_.depth * kPanelRows;
    for (int64_t k = 0; k < product_.depth; ++k) {
      for (int64_t row = 0; row < kPanelRows; ++row) {
        turned[k * kPanelRows + row] =
            row < rows ? product_.alpha * left[(first + row) * product_.depth + k] : 0;
      }
    }
    multiply(right, turned, sums);
    for (int64_t row = 0; row < rows; ++row) {
      float* target = result + (first + row) * product_.columns;
      for (int64_t column = 0; column < product_.columns; ++column) {
        target[column] = sums[column * kPanelRows + row] + (bias == nullptr ? 0.0F : bias[column]);
      }
    }
  }

  void multiply(const CsrView& right, const float* turned, float* sums) const {
    const SparseLoops& loops = sparse_loops();
    const float* values = right.values_as<float>();
    const auto count = [&](int64_t row) { return right.offsets[row + 1] - right.offsets[row]; };
    if (product_.is_transposed) {
      for (int64_t column = 0; column < product_.columns; ++column) {
        const int64_t at = right.offsets[column];
        loops.gather_panel(values + at, right.columns + at, count(column), turned,
                           sums + column * kPanelRows);
      }
      return;
    }
    std::memset(sums, 0, static_cast<size_t>(product_.columns * kPanelRows) * sizeof(float));
    for (int64_t k = 0; k < product_.depth; ++k) {
      const int64_t at = right.offsets[k];
      loops.scatter_panel(values + at, right.columns + at, count(k), turned + k * kPanelRows, sums);
    }
  }

  SparseProduct product_;
  int64_t lanes_;
};

bool is_csr(const Value& value) { return sparse_shape(value).format == TESSERA_CSR; }

bool is_float(const Value& value) {
  return value.type().data_type == TESSERA_FLOAT32 && value.type().is_known();
}

// What is said of the bias of a Gemm; nullopt where it is none that is taken.
bool read_bias(const Node& node, SparseProduct& product) {
  const Value bias = node.input(2);
  if (!bias.is_present()) return true;
  const plugin::Type type = bias.type();
  if (!is_float(bias)) return false;
  product.is_bias_one_element = type.elements() == 1;
  const bool is_row = type.elements() == product.columns && !type.dims.empty() &&
                      type.dims.back() == product.columns;
  return is_row || product.is_bias_one_element;
}

// The product that `node` is with its input `sparse` in csr; nullopt where no kernel computes it.
std::optional<SparseProduct> product_of(const Node& node, size_t sparse) {
  SparseProduct product;
  const plugin::Type left = node.input(0).type();
  const plugin::Type right = node.input(1).type();
  product.is_left_sparse = sparse == 0;
  product.capacity = node.input(sparse).sparse_capacity();
  if (node.input(0).id() == node.input(1).id()) return std::nullopt;
  if (node.op() == "Gemm") {
    const plugin::Attributes attributes = node.attributes();
    const bool is_right_turned = attributes.get_int("transB") != 0;
    if (attributes.get_int("transA") != 0 || (product.is_left_sparse && is_right_turned)) {
      return std::nullopt;
    }
    product.is_transposed = is_right_turned;
    product.alpha = attributes.get_float("alpha", 1);
    product.beta = attributes.get_float("beta", 1);
  }
  if (right.rank != 2 || left.rank < 2 || (product.is_left_sparse && left.rank != 2)) {
    return std::nullopt;
  }
  product.depth = left.dims.back();
  product.columns = right.dims[product.is_transposed ? 0 : 1];
  product.rows = 1;
  for (size_t axis = 0; axis + 1 < left.dims.size(); ++axis) product.rows *= left.dims[axis];
  if (node.op() == "Gemm" && !read_bias(node, product)) return std::nullopt;
  return product;
}

void offer_product(ProposeContext& context, const Node& node, size_t sparse) {
  if (!is_csr(node.input(sparse)) || !is_float(node.input(0)) || !is_float(node.input(1))) return;
  std::optional<SparseProduct> found = product_of(node, sparse);
  if (!found) return;
  SparseProduct product = *found;
  plugin::Candidate candidate = sparse_candidate(node, sparse);
  product.left = port_of(candidate, node.input(0));
  product.right = port_of(candidate, node.input(1));
  const bool has_bias = node.op() == "Gemm" && node.input(2).is_present();
  if (has_bias) product.bias = port_of(candidate, node.input(2));
  // A bias that is a factor too would need that factor's storage.
  if (has_bias && (product.bias == product.left || product.bias == product.right)) return;
  const auto stored = static_cast<double>(product.capacity);
  const auto rows = static_cast<double>(product.rows);
  const auto columns = static_cast<double>(product.columns);
  // Only rows of the dense factor that meet something stored are read.
  const double met = std::min(stored, static_cast<double>(product.depth));
  const double dense = met * (product.is_left_sparse ? columns : rows);
  const double bytes = 8 * stored + sizeof(float) * (dense + rows * columns);
  const double width = product.is_left_sparse ? columns : rows;
  candidate.optimistic_seconds = sparse_seconds(context, 2 * stored * width, bytes);
  const int64_t threads = std::max(context.options().threads, 1);
  if (product.is_left_sparse) {
    candidate.workspace_bytes = SparseTimesDense::workspace_of(product);
    candidate.build = [product](const plugin::BuildOptions&) {
      return std::make_unique<SparseTimesDense>(product);
    };
  } else {
    candidate.workspace_bytes = DenseTimesSparse::workspace_of(product, threads);
    candidate.build = [product, threads](const plugin::BuildOptions&) {
      return std::make_unique<DenseTimesSparse>(product, threads);
    };
  }
  context.add(std::move(candidate));
}

}  // namespace

void propose_sparse_matmul(ProposeContext& context) {
  context.for_each({"MatMul", "Gemm"}, [&](const Node& node) {
    offer_product(context, node, 0);
    offer_product(context, node, 1);
  });
}

}  // namespace tessera::native
