// MatMul and Gemm: as matrices where one matrix on the right serves all rows on the left, else as
// batches. What adds to the result or maps it follows in the same pass.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "chain.h"
#include "context.h"
#include "families.h"
#include "formats.h"
#include "implementation.h"
#include "primitive.h"

namespace tessera::onednn {

using dnnl::algorithm;
using dnnl::memory;
using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

// One factor as the primitive sees it, in the memory of its value.
struct Factor {
  Value value;
  memory::desc desc;
};

// left * right, [..., m, k] by [..., k, n], and what Gemm does with it.
struct Product {
  Factor left;
  Factor right;
  std::vector<int64_t> sizes;  // [..., m, n], as the primitive sees the result
  ResultView view;             // of the value
  int64_t depth = 1;
  int32_t bias = -1;                    // value
  int32_t ignored = -1;                 // value: Gemm's C where beta is 0
  std::vector<PostOperation> scalings;  // of Gemm
};

memory::desc transposed(const std::vector<int64_t>& dims) {
  // The matrix lies with its columns one after the other.
  return {dims, memory::data_type::f32, memory::dims{1, dims[0]}};
}

void check_usable(const Value& value) {
  if (const auto reason = explain_unusable(value)) throw Failure(TESSERA_UNSUPPORTED, *reason);
}

int64_t product_of(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

// All rows on the left by one matrix on the right.
Product rows_by_matrix(const Node& node, const std::vector<int64_t>& left, int64_t columns) {
  const int64_t depth = left.back();
  const int64_t rows = product_of(left) / depth;
  const std::vector<int64_t> result = node.output(0).type().dims;
  const size_t column_axes = node.input(1).type().rank == 1 ? 0 : 1;
  return {.left = {node.input(0), describe(Format::RowMajor, {rows, depth})},
          .right = {node.input(1), describe(Format::RowMajor, {depth, columns})},
          .sizes = {rows, columns},
          .view = {result, {{result.size() - column_axes, column_axes}}},
          .depth = depth,
          .scalings = {}};
}

Product mat_mul_of(const Node& node) {
  std::vector<int64_t> left = node.input(0).type().dims;
  std::vector<int64_t> right = node.input(1).type().dims;
  const size_t row_axes = left.size() == 1 ? 0 : 1;
  const size_t column_axes = right.size() == 1 ? 0 : 1;
  if (row_axes == 0) left.insert(left.begin(), 1);
  if (column_axes == 0) right.push_back(1);
  const bool is_one_matrix =
      std::all_of(right.begin(), right.end() - 2, [](int64_t dim) { return dim == 1; });
  if (is_one_matrix) return rows_by_matrix(node, left, right.back());
  const size_t rank = std::max(left.size(), right.size());
  left = with_rank(left, rank);
  right = with_rank(right, rank);
  const std::vector<int64_t> result = node.output(0).type().dims;
  std::vector<int64_t> sizes(result.begin(), result.begin() + static_cast<int64_t>(rank) - 2);
  sizes.insert(sizes.end(), {left[rank - 2], right[rank - 1]});
  std::vector<size_t> groups(rank - 2, 1);
  groups.insert(groups.end(), {row_axes, column_axes});
  return {.left = {node.input(0), describe(Format::RowMajor, left)},
          .right = {node.input(1), describe(Format::RowMajor, right)},
          .sizes = std::move(sizes),
          .view = {result, {std::move(groups)}},
          .depth = left[rank - 1],
          .scalings = {}};
}

// alpha * A * B + beta * C is (alpha / beta * A * B + C) * beta.
void add_scalings(const Node& node, Product& product) {
  const plugin::Attributes attributes = node.attributes();
  const float alpha = attributes.get_float("alpha", 1);
  const float beta = attributes.get_float("beta", 1);
  const Value addend = node.input(2);
  const auto scale = [&](float factor) {
    if (factor != 1) product.scalings.push_back({{algorithm::eltwise_linear, factor, 0}});
  };
  if (addend.is_present() && beta == 0) product.ignored = addend.id();
  if (!addend.is_present() || beta == 0) return scale(alpha);
  check_usable(addend);
  const std::vector<int64_t> dims = with_rank(addend.type().dims, 2);
  if (alpha == 1 && beta == 1 && dims[0] == 1 && dims[1] == product.sizes[1]) {
    product.bias = addend.id();
    return;
  }
  scale(alpha / beta);
  product.scalings.push_back({{}, algorithm::binary_add, addend.id()});
  scale(beta);
}

Product gemm_of(const Node& node) {
  const auto factor = [&](size_t index, const char* attribute) -> Factor {
    std::vector<int64_t> dims = node.input(index).type().dims;
    if (node.attributes().get_int(attribute) == 0) {
      return {node.input(index), describe(Format::RowMajor, dims)};
    }
    std::swap(dims[0], dims[1]);
    return {node.input(index), transposed(dims)};
  };
  const std::vector<int64_t> result = node.output(0).type().dims;
  Product product = {.left = factor(0, "transA"),
                     .right = factor(1, "transB"),
                     .sizes = result,
                     .view = {result, plain_view(2)},
                     .scalings = {}};
  product.depth = product.left.desc.get_dims()[1];
  add_scalings(node, product);
  return product;
}

// A product and the nodes behind it that are computed with it.
class ProductGroup {
 public:
  ProductGroup(Context& context, const Node& node, const Product& product)
      : context_(context),
        product_(product),
        operations_(context.graph()),
        nodes_{node.id()},
        result_(node.output(0).id()),
        bias_(product.bias) {
    for (const PostOperation& scaling : product.scalings) {
      if (!operations_.append(scaling, product.view)) {
        throw Failure(TESSERA_UNSUPPORTED, "cannot add such a C");
      }
    }
  }

  // False where the step cannot be part of it.
  bool append(const ChainStep& step, bool is_summed) {
    const bool is_addition = step.operations.front().arithmetic == algorithm::binary_add;
    const int32_t operand = step.operations.front().operand;
    if (is_summed && is_residual(step)) {
      operations_.append_sum(operand);
    } else if (bias_ < 0 && operations_.operations().len() == 0 && is_addition &&
               is_bias(operand)) {
      bias_ = operand;
    } else if (!operations_.append(step, product_.view)) {
      return false;
    }
    nodes_.insert(nodes_.end(), step.nodes.begin(), step.nodes.end());
    result_ = step.result;
    return true;
  }

  // Whether `step` adds another tensor of the result's type. The result may take its place, so it
  // is none that the product itself reads.
  bool is_residual(const ChainStep& step) const {
    const PostOperation& operation = step.operations.front();
    if (step.operations.size() != 1 || operation.arithmetic != algorithm::binary_add) return false;
    const Value operand = context_.graph().value(operation.operand);
    return !operand.is_constant() && operand.type().dims == product_.view.dims &&
           operand.id() != product_.left.value.id() && operand.id() != product_.right.value.id();
  }

  // False where oneDNN has no such primitive, or none worth having.
  bool offer(bool is_packed, bool accepts_reference) {
    const Graph& graph = context_.graph();
    const memory::desc right =
        is_packed ? describe_any(product_.right.desc.get_dims()) : product_.right.desc;
    const memory::desc result = describe(Format::RowMajor, product_.sizes);
    std::vector<int64_t> bias_dims(product_.sizes.size(), 1);
    bias_dims.back() = product_.sizes.back();
    const memory::desc bias = bias_ < 0 ? memory::desc() : describe(Format::RowMajor, bias_dims);
    dnnl::primitive_attr attributes = context_.attributes();
    attributes.set_post_ops(operations_.operations());
    const dnnl::matmul::primitive_desc description(context_.engine(), product_.left.desc, right,
                                                   bias, result, attributes, true);
    if (!description) return false;
    if (is_reference(description) && !accepts_reference) return false;
    PrimitiveOffer offer(nodes_, description);
    offer.read_as(DNNL_ARG_SRC, product_.left.value, product_.left.desc, TESSERA_LAYOUT_DEFAULT);
    if (is_packed) {
      if (description.weights_desc() == product_.right.desc) return false;
      offer.read_packed(DNNL_ARG_WEIGHTS, product_.right.value, product_.right.desc,
                        description.weights_desc());
    } else {
      offer.read_as(DNNL_ARG_WEIGHTS, product_.right.value, product_.right.desc,
                    TESSERA_LAYOUT_DEFAULT);
    }
    if (bias_ >= 0) {
      offer.read_as(DNNL_ARG_BIAS, graph.value(bias_), bias, TESSERA_LAYOUT_DEFAULT);
    }
    if (product_.ignored >= 0) offer.ignore(graph.value(product_.ignored));
    offer.write_as(DNNL_ARG_DST, graph.value(result_), result, TESSERA_LAYOUT_DEFAULT);
    operations_.read_operands(offer);
    context_.add(offer.candidate(seconds(description), is_packed ? "packed:" : "plain:"));
    return true;
  }

 private:
  bool is_bias(int32_t operand) const {
    const auto seen =
        product_.view.axes.of(context_.graph().value(operand).type().dims, product_.view.dims);
    return seen && seen->back() == product_.sizes.back() && product_of(*seen) == seen->back();
  }

  double seconds(const dnnl::primitive_desc_base& description) const {
    const double results = static_cast<double>(product_of(product_.sizes));
    const double bytes = static_cast<double>(product_.left.desc.get_size()) +
                         static_cast<double>(product_.right.desc.get_size()) +
                         results * sizeof(float);
    return context_.optimistic_seconds(2 * results * static_cast<double>(product_.depth), bytes,
                                       description.impl_info_str());
  }

  Context& context_;
  const Product& product_;
  PostOperations operations_;
  std::vector<int32_t> nodes_;
  int32_t result_;
  int32_t bias_;
};

// The group of the product and the first `count` steps behind it; false where there is none.
bool offer_group(Context& context, const Node& node, const Product& product,
                 const std::vector<ChainStep>& steps, size_t count, bool is_summed) {
  ProductGroup group(context, node, product);
  bool has_sum = false;
  for (size_t index = 0; index < count; ++index) {
    const bool is_here = is_summed && !has_sum && group.is_residual(steps[index]);
    has_sum = has_sum || is_here;
    if (!group.append(steps[index], is_here)) return false;
  }
  if (is_summed && !has_sum) return false;
  const bool is_packed = product.right.value.is_constant() && group.offer(true, false);
  // Alone, the library's reference code is better than no answer.
  const bool is_plain = group.offer(false, count == 0 && !is_packed);
  return is_packed || is_plain;
}

void offer_product(Context& context, const Chains& chains, const Node& node) {
  for (const size_t index : {size_t{0}, size_t{1}}) check_usable(node.input(index));
  check_usable(node.output(0));
  const Product product = node.op() == "Gemm" ? gemm_of(node) : mat_mul_of(node);
  const std::vector<ChainStep> steps = chains.after(node.output(0));
  size_t longest = steps.size();
  while (longest > 0 && !offer_group(context, node, product, steps, longest, false)) --longest;
  if (longest > 0) offer_group(context, node, product, steps, longest, true);
  // A pinned or measured neighbour may want the last steps for itself: those that map the result
  // are worth a cut, and the product alone.
  if (longest > 1) offer_group(context, node, product, steps, 1, false);
  offer_group(context, node, product, steps, 0, false);
}

}  // namespace

void propose_products(Context& context) {
  const Chains chains(context.graph());
  context.for_each({"MatMul", "Gemm"},
                   [&](const Node& node) { offer_product(context, chains, node); });
}

}  // namespace tessera::onednn
