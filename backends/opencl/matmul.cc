// MatMul and Gemm.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "grid.h"
#include "offers.h"
#include "products.h"
#include "tessera/backend_ops.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

using Dims = std::vector<int64_t>;

// A batch may take one call for each entry, and every call has its launches.
constexpr int64_t kMaxBatch = 4096;

int64_t count_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Both batches with the same number of axes, and the batch to which they broadcast.
struct Batch {
  Dims left;
  Dims right;
  Dims result;
};

Batch batch_of(Dims left, Dims right) {
  const size_t rank = std::max(left.size(), right.size());
  left.insert(left.begin(), rank - left.size(), 1);
  right.insert(right.begin(), rank - right.size(), 1);
  Batch batch{std::move(left), std::move(right), {}};
  for (size_t axis = 0; axis < rank; ++axis) {
    batch.result.push_back(std::max(batch.left[axis], batch.right[axis]));
  }
  return batch;
}

std::vector<BatchEntry> offsets_of(const Batch& batch, const Product& product) {
  const Dims left = plugin::broadcast_strides(batch.left, batch.result.size());
  const Dims right = plugin::broadcast_strides(batch.right, batch.result.size());
  std::vector<BatchEntry> offsets;
  const int64_t count = count_of(batch.result);
  for (int64_t entry = 0; entry < count; ++entry) {
    BatchEntry one = {.c = entry * product.m * product.n};
    int64_t rest = entry;
    for (size_t axis = batch.result.size(); axis-- > 0;) {
      const int64_t index = rest % batch.result[axis];
      rest /= batch.result[axis];
      one.a += index * left[axis] * product.m * product.k;
      one.b += index * right[axis] * product.k * product.n;
    }
    offsets.push_back(one);
  }
  return offsets;
}

void offer_matmul(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  require_floats(node.input(1));
  Dims left = node.input(0).type().dims;
  Dims right = node.input(1).type().dims;
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  Product product{.m = left[left.size() - 2], .n = right.back(), .k = left.back()};
  Batch batch = batch_of({left.begin(), left.end() - 2}, {right.begin(), right.end() - 2});
  if (count_of(batch.right) == 1) {
    // With one right matrix, all rows on the left are rows of one matrix.
    product.m *= count_of(batch.left);
  } else {
    product.batch = offsets_of(batch, product);
  }
  if (static_cast<int64_t>(product.batch.size()) > kMaxBatch) {
    throw Failure(TESSERA_UNSUPPORTED, "multiplies at most " + std::to_string(kMaxBatch) +
                                           " matrices, found " +
                                           std::to_string(product.batch.size()));
  }
  product.lda = product.k;
  product.ldb = product.n;
  product.ldc = product.n;
  for (const std::string& algorithm : product_algorithms(offers, product)) {
    Offer offer(offers, node, algorithm);
    product.a = offer.read(node.input(0));
    product.b = offer.read(node.input(1));
    product.c = offer.write(node.output(0));
    product.workspace = offer.reserve(workspace_bytes(algorithm, product));
    multiply(offers, offer, algorithm, product);
    offer.add(static_cast<double>(node.flops()), bytes_of(node));
  }
}

void offer_gemm(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  require_floats(node.input(1));
  const plugin::Attributes attributes = node.attributes();
  const Dims left = node.input(0).type().dims;
  const Dims right = node.input(1).type().dims;
  const Dims dims = node.output(0).type().dims;
  Product product{.is_a_transposed = attributes.get_int("transA") != 0,
                  .is_b_transposed = attributes.get_int("transB") != 0,
                  .alpha = attributes.get_float("alpha", 1)};
  product.m = dims[0];
  product.n = dims[1];
  product.k = left[product.is_a_transposed ? 0 : 1];
  product.lda = left[1];
  product.ldb = right[1];
  product.ldc = product.n;
  const Value bias = node.input(2);
  const float beta = attributes.get_float("beta", 1);
  // With beta = 0, the bias is not read, even if it holds NaN.
  const bool has_bias = bias.is_present() && beta != 0;
  if (has_bias) {
    require_floats(bias);
    product.beta = beta;
    if (!plugin::broadcasts_to(bias.type().dims, dims)) {
      throw Failure(TESSERA_UNSUPPORTED, "adds a C that broadcasts as in NumPy only");
    }
  }
  for (const std::string& algorithm : product_algorithms(offers, product)) {
    Offer offer(offers, node, algorithm);
    product.a = offer.read(node.input(0));
    product.b = offer.read(node.input(1));
    const Place bias_place = has_bias ? offer.read(bias) : Place{};
    product.c = offer.write(node.output(0));
    if (has_bias) {
      offer.launch(broadcast_floats(bias_place, bias.type().dims, product.c, dims));
    }
    product.workspace = offer.reserve(workspace_bytes(algorithm, product));
    multiply(offers, offer, algorithm, product);
    offer.add(static_cast<double>(node.flops()), bytes_of(node));
  }
}

}  // namespace

void propose_matmuls(const Offers& offers) {
  offers.context().for_each({"MatMul"}, [&](const Node& node) { offer_matmul(offers, node); });
  offers.context().for_each({"Gemm"}, [&](const Node& node) { offer_gemm(offers, node); });
}

}  // namespace tessera::opencl
