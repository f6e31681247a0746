// MatMul and Gemm: as matrices where one matrix on the right serves all rows on the left, else as
// batches. What adds to the result or maps it follows in the same pass, and Transposes on both
// sides become the order in which the primitive reads and writes.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chain.h"
#include "context.h"
#include "families.h"
#include "formats.h"
#include "implementation.h"
#include "primitive.h"
#include "product.h"

namespace tessera::onednn {

using dnnl::algorithm;
using dnnl::memory;
using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

void check_usable(const Value& value) {
  if (const auto reason = explain_unusable(value)) throw Failure(TESSERA_UNSUPPORTED, *reason);
}

int64_t product_of_all(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

// A product and the nodes around it that are computed with it.
class ProductGroup {
 public:
  ProductGroup(Context& context, const Node& node, const Product& product)
      : context_(context),
        product_(product),
        operations_(context.graph()),
        nodes_{node.id()},
        result_(node.output(0).id()),
        written_(describe(Format::RowMajor, product.sizes)),
        bias_(product.bias) {
    for (const int32_t transpose : {product.left.transpose, product.right.transpose}) {
      if (transpose >= 0) nodes_.push_back(transpose);
    }
    for (const PostOperation& scaling : product.scalings) {
      if (!operations_.append(scaling, product.view)) {
        throw Failure(TESSERA_UNSUPPORTED, "cannot add a C of this shape");
      }
    }
  }

  // False where the step cannot be part of it.
  bool append(const ChainStep& step, bool is_summed) {
    const bool is_addition = step.operations.front().arithmetic == algorithm::binary_add;
    const int32_t operand = step.operations.front().operand;
    if (is_summed) {
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

  // Writes the output of a Transpose behind the last step. False where there is none.
  bool turn() {
    std::optional<Turned> turned =
        transpose_behind(context_.graph(), product_, context_.graph().value(result_));
    if (!turned) return false;
    nodes_.push_back(turned->node);
    result_ = turned->output;
    written_ = std::move(turned->desc);
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
    std::vector<int64_t> bias_dims(product_.sizes.size(), 1);
    bias_dims.back() = product_.sizes.back();
    const memory::desc bias = bias_ < 0 ? memory::desc() : describe(Format::RowMajor, bias_dims);
    dnnl::primitive_attr attributes = context_.attributes();
    attributes.set_post_ops(operations_.operations());
    const dnnl::matmul::primitive_desc description(context_.engine(), product_.left.desc, right,
                                                   bias, written_, attributes, true);
    if (!description) return false;
    if (is_reference(description) && !accepts_reference) return false;
    if (context_.is_useless(description.impl_info_str(), operations_.needs_compiled_code()))
      return false;
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
    offer.write_as(DNNL_ARG_DST, graph.value(result_), written_, TESSERA_LAYOUT_DEFAULT);
    operations_.read_operands(offer);
    context_.add(offer.candidate(seconds(description), is_packed ? "packed:" : "plain:"));
    return true;
  }

 private:
  bool is_bias(int32_t operand) const {
    const auto seen =
        product_.view.axes.of(context_.graph().value(operand).type().dims, product_.view.dims);
    return seen && seen->back() == product_.sizes.back() && product_of_all(*seen) == seen->back();
  }

  double seconds(const dnnl::primitive_desc_base& description) const {
    const double results = static_cast<double>(product_of_all(product_.sizes));
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
  memory::desc written_;
  int32_t bias_;
};

// What is computed with a product.
struct Extent {
  size_t steps = 0;        // of those behind it
  bool is_summed = false;  // one of them by adding to what the output holds
  bool is_turned = false;  // and a Transpose behind them
  bool accepts_reference = false;
};

// False where there is no such group.
bool offer_group(Context& context, const Node& node, const Product& product,
                 const std::vector<ChainStep>& steps, const Extent& extent) {
  ProductGroup group(context, node, product);
  bool has_sum = false;
  for (size_t index = 0; index < extent.steps; ++index) {
    const bool is_here = extent.is_summed && !has_sum && group.is_residual(steps[index]) &&
                         count_reads(steps, steps[index].operations.front().operand) == 1;
    has_sum = has_sum || is_here;
    if (!group.append(steps[index], is_here)) return false;
  }
  if (extent.is_summed && !has_sum) return false;
  if (extent.is_turned && !group.turn()) return false;
  const bool is_packed = product.right.value.is_constant() && group.offer(true, false);
  // Alone, the library's reference code is better than no answer.
  const bool is_plain = group.offer(false, extent.accepts_reference && !is_packed);
  return is_packed || is_plain;
}

void offer_product(Context& context, const Chains& chains, const Node& node) {
  for (const size_t index : {size_t{0}, size_t{1}}) check_usable(node.input(index));
  check_usable(node.output(0));
  const std::vector<ChainStep> steps = chains.after(node.output(0));
  const Product plain = product_of(context.graph(), node, false);
  const Product through = product_of(context.graph(), node, true);
  const bool reads_through = through.left.transpose >= 0 || through.right.transpose >= 0;
  size_t longest = steps.size();
  for (const Product* product : {&through, &plain}) {
    if (product == &through && !reads_through) continue;
    while (longest > 0 && !offer_group(context, node, *product, steps, {longest})) --longest;
    offer_group(context, node, *product, steps, {.steps = longest, .is_turned = true});
    if (longest > 0) {
      offer_group(context, node, *product, steps, {.steps = longest, .is_summed = true});
    }
  }
  if (longest > 1) offer_group(context, node, plain, steps, {1});
  if (reads_through) offer_group(context, node, through, steps, {});
  offer_group(context, node, plain, steps, {.accepts_reference = true});
}

}  // namespace

void propose_products(Context& context) {
  const Chains& chains = context.chains();
  context.for_each({"MatMul", "Gemm"},
                   [&](const Node& node) { offer_product(context, chains, node); });
}

}  // namespace tessera::onednn
