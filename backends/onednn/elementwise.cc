// Unary functions, and arithmetic of tensors of one shape, in any dense layout, fused with
// following elementwise ops. binary.cc has arithmetic with broadcasting.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/accuracy.h"
#include "base/chain.h"
#include "base/context.h"
#include "base/dense_kernel.h"
#include "base/families.h"
#include "base/formats.h"

namespace tessera::onednn {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// Ops that are unary functions with any other inputs, so they are refused with a reason.
bool is_function_op(const Node& node) { return !arithmetic_of(node.op()); }

bool has_arithmetic(const DenseWork& work) {
  return std::ranges::any_of(work.operations,
                             [](const PostOperation& operation) { return operation.operand >= 0; });
}

// `work` followed by `step`; nullopt if an operand broadcasts, because layouts would differ, or if
// the step is not exact enough for what `work` computes.
std::optional<DenseWork> with_step(const Context& context, DenseWork work, const ChainStep& step) {
  for (PostOperation operation : step.operations) {
    const bool is_function = operation.operand < 0;
    if (is_function && !has_arithmetic(work) && !explain_inexact_tail(operation.function).empty()) {
      return std::nullopt;
    }
    if (operation.operand >= 0) {
      if (context.graph().value(operation.operand).type() != work.type) return std::nullopt;
      work.inputs.push_back(operation.operand);
      operation.operand = static_cast<int32_t>(work.inputs.size() - 1);
    }
    work.operations.push_back(operation);
  }
  work.nodes.insert(work.nodes.end(), step.nodes.begin(), step.nodes.end());
  work.output = step.result;
  return work;
}

// Offers the node with as many following steps as the library has fast code for, and alone.
void offer_with_chain(Context& context, const Chains& chains, const DenseWork& work) {
  std::vector<DenseWork> works = {work};
  for (const ChainStep& step : chains.after(context.graph().value(work.output))) {
    std::optional<DenseWork> next = with_step(context, works.back(), step);
    if (!next) break;
    works.push_back(*std::move(next));
  }
  while (works.size() > 1 && !offer_dense(context, works.back(), false)) works.pop_back();
  if (!offer_dense(context, work, true)) {
    throw Failure(TESSERA_UNSUPPORTED, "oneDNN has no such elementwise primitive");
  }
}

void offer_function(Context& context, const Chains& chains, const Node& node) {
  const EltwiseAnswer answer = find_eltwise(node, context.options().nan);
  if (!answer.node) {
    if (!answer.reason.empty()) context.refuse(node.id(), answer.reason);
    return;
  }
  if (node.op() == "Tanh") {
    return context.refuse(node.id(), "oneDNN's Tanh takes ten times as long as other functions");
  }
  const std::string reason = explain_inexact_tail(answer.node->functions.front());
  if (!reason.empty()) return context.refuse(node.id(), reason);
  const Value input = node.input(answer.node->input);
  check_usable(input);
  DenseWork work = {{node.id()}, {input.id()}, node.output(0).id(), input.type(), {}};
  for (const Eltwise& function : answer.node->functions) work.operations.push_back({function});
  offer_with_chain(context, chains, work);
}

// Arithmetic of two or more tensors that all have the shape of the result.
void offer_arithmetic(Context& context, const Chains& chains, const Node& node) {
  const std::optional<dnnl::algorithm> kind = arithmetic_of(node.op());
  if (!kind || node.input_count() < 2) return;
  if (context.keeps_nan() && loses_nan(*kind)) {
    return context.refuse(node.id(), explain_lost_nan(node.op()));
  }
  const Value output = node.output(0);
  DenseWork work = {{node.id()}, {}, output.id(), output.type(), {}};
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Value input = node.input(index);
    check_usable(input);
    if (input.type() != output.type()) return;
    work.inputs.push_back(input.id());
    if (index > 0) work.operations.push_back({{}, *kind, static_cast<int32_t>(index)});
  }
  offer_with_chain(context, chains, work);
}

void offer_composite(Context& context, const Chains& chains, const Composite& composite) {
  const Value input = context.graph().value(composite.input);
  if (explain_unusable(input) || !explain_inexact_tail(composite.function).empty()) return;
  DenseWork work = {composite.nodes, {composite.input}, composite.output, input.type(), {}};
  work.operations.push_back({composite.function});
  offer_with_chain(context, chains, work);
}

}  // namespace

void propose_elementwise(Context& context) {
  const Chains& chains = context.chains();
  for (const Composite& composite : chains.composites()) {
    offer_composite(context, chains, composite);
  }
  context.for_each(
      {"Abs",     "Add",         "Celu",      "Clip",      "Div",        "Elu",   "Exp",
       "Gelu",    "HardSigmoid", "HardSwish", "LeakyRelu", "Log",        "Max",   "Min",
       "Mish",    "Mul",         "Neg",       "Pow",       "Reciprocal", "Relu",  "Round",
       "Sigmoid", "Softplus",    "Sqrt",      "Sub",       "Sum",        "Swish", "Tanh"},
      [&](const Node& node) {
        if (is_function_op(node) || find_eltwise(node, context.options().nan).node) {
          offer_function(context, chains, node);
        } else {
          offer_arithmetic(context, chains, node);
        }
      });
}

}  // namespace tessera::onednn
