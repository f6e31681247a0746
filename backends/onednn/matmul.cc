// MatMul and Gemm: as matrices if all rows on the left share one matrix on the right, else as
// batches. Following sums and functions are fused, and Transposes on both sides become the order in
// which the primitive reads and writes.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/chain.h"
#include "base/context.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"
#include "matmul_problem.h"

namespace tessera::onednn {

using dnnl::algorithm;
using dnnl::memory;
using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

int64_t product_of_all(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

// A matmul and the nodes that are fused with it.
class MatMulGroup {
 public:
  MatMulGroup(Context& context, const Node& node, const MatMulProblem& problem)
      : context_(context),
        problem_(problem),
        operations_(context.graph()),
        nodes_{node.id()},
        result_(node.output(0).id()),
        written_(describe(Format::RowMajor, problem.sizes)),
        bias_(problem.bias) {
    for (const int32_t transpose : {problem.left.transpose, problem.right.transpose}) {
      if (transpose >= 0) nodes_.push_back(transpose);
    }
    for (const PostOperation& scaling : problem.scalings) {
      if (!operations_.append(scaling, problem.view)) {
        throw Failure(TESSERA_UNSUPPORTED, "cannot add a C of this shape");
      }
    }
  }

  // False if the step cannot be fused.
  bool append(const ChainStep& step, bool is_summed) {
    const bool is_addition = step.operations.front().arithmetic == algorithm::binary_add;
    const int32_t operand = step.operations.front().operand;
    if (is_summed) {
      operations_.append_sum(operand);
    } else if (bias_ < 0 && operations_.operations().len() == 0 && is_addition &&
               is_bias(operand)) {
      bias_ = operand;
    } else if (!operations_.append(step, problem_.view)) {
      return false;
    }
    nodes_.insert(nodes_.end(), step.nodes.begin(), step.nodes.end());
    result_ = step.result;
    return true;
  }

  // Writes the output of a Transpose behind the last step. False if there is none.
  bool append_transpose() {
    std::optional<FusedTranspose> fused =
        following_transpose(context_.graph(), problem_, context_.graph().value(result_));
    if (!fused) return false;
    nodes_.push_back(fused->node);
    result_ = fused->output;
    written_ = std::move(fused->desc);
    return true;
  }

  // Whether `step` adds another tensor of the type of the result. The result may overwrite it, so
  // the matmul itself must not read it.
  bool is_residual(const ChainStep& step) const {
    const PostOperation& operation = step.operations.front();
    if (step.operations.size() != 1 || operation.arithmetic != algorithm::binary_add) return false;
    const Value operand = context_.graph().value(operation.operand);
    return !operand.is_constant() && operand.type().dims == problem_.view.dims &&
           operand.id() != problem_.left.value.id() && operand.id() != problem_.right.value.id();
  }

  // False if oneDNN has no such primitive, or only its reference implementation.
  bool offer(bool is_packed, bool accepts_reference) {
    const Graph& graph = context_.graph();
    const memory::desc right =
        is_packed ? describe_any(problem_.right.desc.get_dims()) : problem_.right.desc;
    std::vector<int64_t> bias_dims(problem_.sizes.size(), 1);
    bias_dims.back() = problem_.sizes.back();
    const memory::desc bias = bias_ < 0 ? memory::desc() : describe(Format::RowMajor, bias_dims);
    dnnl::primitive_attr attributes = context_.attributes();
    attributes.set_post_ops(operations_.operations());
    const dnnl::matmul::primitive_desc description(context_.engine(), problem_.left.desc, right,
                                                   bias, written_, attributes, true);
    if (!description) return false;
    if (is_reference(description) && !accepts_reference) return false;
    if (context_.is_useless(description.impl_info_str(), operations_.needs_compiled_code()))
      return false;
    PrimitiveOffer offer(nodes_, description);
    offer.read_as(DNNL_ARG_SRC, problem_.left.value, problem_.left.desc, TESSERA_LAYOUT_DEFAULT);
    if (is_packed) {
      if (description.weights_desc() == problem_.right.desc) return false;
      offer.read_packed(DNNL_ARG_WEIGHTS, problem_.right.value, problem_.right.desc,
                        description.weights_desc());
    } else {
      offer.read_as(DNNL_ARG_WEIGHTS, problem_.right.value, problem_.right.desc,
                    TESSERA_LAYOUT_DEFAULT);
    }
    if (bias_ >= 0) {
      offer.read_as(DNNL_ARG_BIAS, graph.value(bias_), bias, TESSERA_LAYOUT_DEFAULT);
    }
    if (problem_.ignored >= 0) offer.ignore(graph.value(problem_.ignored));
    offer.write_as(DNNL_ARG_DST, graph.value(result_), written_, TESSERA_LAYOUT_DEFAULT);
    operations_.read_operands(offer);
    context_.add(offer.candidate(seconds(description), is_packed ? "packed:" : "plain:"));
    return true;
  }

 private:
  bool is_bias(int32_t operand) const {
    const auto seen =
        problem_.view.axes.of(context_.graph().value(operand).type().dims, problem_.view.dims);
    return seen && seen->back() == problem_.sizes.back() && product_of_all(*seen) == seen->back();
  }

  double seconds(const dnnl::primitive_desc_base& description) const {
    const double results = static_cast<double>(product_of_all(problem_.sizes));
    const double bytes = static_cast<double>(problem_.left.desc.get_size()) +
                         static_cast<double>(problem_.right.desc.get_size()) +
                         results * sizeof(float);
    return context_.optimistic_seconds(2 * results * static_cast<double>(problem_.depth), bytes,
                                       description.impl_info_str());
  }

  Context& context_;
  const MatMulProblem& problem_;
  PostOperations operations_;
  std::vector<int32_t> nodes_;
  int32_t result_;
  memory::desc written_;
  int32_t bias_;
};

// The nodes that are fused with a matmul.
struct GroupExtent {
  size_t steps = 0;            // following steps
  bool is_summed = false;      // one of them adds to the content of the output
  bool is_transposed = false;  // a Transpose follows them
  bool accepts_reference = false;
};

// False if there is no such group.
bool offer_group(Context& context, const Node& node, const MatMulProblem& problem,
                 const std::vector<ChainStep>& steps, const GroupExtent& extent) {
  MatMulGroup group(context, node, problem);
  bool has_sum = false;
  for (size_t index = 0; index < extent.steps; ++index) {
    const bool is_here = extent.is_summed && !has_sum && group.is_residual(steps[index]) &&
                         count_reads(steps, steps[index].operations.front().operand) == 1;
    has_sum = has_sum || is_here;
    if (!group.append(steps[index], is_here)) return false;
  }
  if (extent.is_summed && !has_sum) return false;
  if (extent.is_transposed && !group.append_transpose()) return false;
  const bool is_packed = problem.right.value.is_constant() && group.offer(true, false);
  // For the matmul alone, reference code is better than no candidate.
  const bool is_plain = group.offer(false, extent.accepts_reference && !is_packed);
  return is_packed || is_plain;
}

void offer_matmul(Context& context, const Chains& chains, const Node& node) {
  for (const size_t index : {size_t{0}, size_t{1}}) check_usable(node.input(index));
  check_usable(node.output(0));
  const std::vector<ChainStep> steps = chains.after(node.output(0));
  const MatMulProblem plain = matmul_problem_of(context.graph(), node, false);
  const MatMulProblem through = matmul_problem_of(context.graph(), node, true);
  const bool reads_through = through.left.transpose >= 0 || through.right.transpose >= 0;
  size_t longest = steps.size();
  for (const MatMulProblem* problem : {&through, &plain}) {
    if (problem == &through && !reads_through) continue;
    while (longest > 0 && !offer_group(context, node, *problem, steps, {longest})) --longest;
    offer_group(context, node, *problem, steps, {.steps = longest, .is_transposed = true});
    if (longest > 0) {
      offer_group(context, node, *problem, steps, {.steps = longest, .is_summed = true});
    }
  }
  if (longest > 1) offer_group(context, node, plain, steps, {1});
  if (reads_through) offer_group(context, node, through, steps, {});
  offer_group(context, node, plain, steps, {.accepts_reference = true});
}

}  // namespace

void propose_matmuls(Context& context) {
  const Chains& chains = context.chains();
  context.for_each({"MatMul", "Gemm"},
                   [&](const Node& node) { offer_matmul(context, chains, node); });
}

}  // namespace tessera::onednn
