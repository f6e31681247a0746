// Arithmetic of two tensors with broadcasting, fused with following elementwise ops, in each
// layout. elementwise.cc has tensors of one shape.
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
#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::algorithm;
using dnnl::memory;
using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// If possible, one operand has the size of the result: `main`. The first operation is applied to
// it; the others are post-operations.
struct Work {
  Value main;
  PostOperation first;  // an arithmetic with an operand, or a function of `main`
  std::vector<PostOperation> behind;
  Value output;
};

Work work_of(const Node& node, algorithm kind) {
  const Value left = node.input(0);
  const Value right = node.input(1);
  const Value output = node.output(0);
  if (!plugin::broadcasts_to(output.type().dims, right.type().dims) ||
      plugin::broadcasts_to(output.type().dims, left.type().dims)) {
    return {left, {{}, kind, right.id()}, {}, output};
  }
  const PostOperation swapped = {{}, kind, left.id()};
  if (kind == algorithm::binary_sub) {
    return {right, swapped, {{{algorithm::eltwise_linear, -1, 0}}}, output};
  }
  if (kind == algorithm::binary_div) {
    throw Failure(
        TESSERA_UNSUPPORTED,
        "oneDNN broadcasts the divisor only: a product with reciprocals is rounded twice");
  }
  return {right, swapped, {}, output};
}

// The axes of the result, merged if every operand has or lacks them together.
AxisView joined_axes(const std::vector<std::vector<int64_t>>& operands,
                     const std::vector<int64_t>& result) {
  AxisView view;
  std::vector<bool> last;
  for (size_t axis = 0; axis < result.size(); ++axis) {
    std::vector<bool> here;
    for (const std::vector<int64_t>& operand : operands) {
      here.push_back(with_rank(operand, result.size())[axis] == result[axis]);
    }
    // An axis of length 1 fits every group.
    if (!view.groups.empty() && (result[axis] == 1 || here == last || last.empty())) {
      ++view.groups.back();
      if (result[axis] == 1) continue;
    } else {
      view.groups.push_back(1);
    }
    if (result[axis] != 1) last = std::move(here);
  }
  return view;
}

// The result as a primitive sees it, with as many of `steps` as the primitive can compute.
class BroadcastGroup {
 public:
  BroadcastGroup(Context& context, const Node& node, Work work, std::vector<ChainStep> steps)
      : context_(context), nodes_{node.id()}, work_(std::move(work)), steps_(std::move(steps)) {}

  // False if oneDNN has no such primitive, only its reference implementation, or one that is wrong.
  bool offer(Format format, bool accepts_reference) {
    if (format != Format::RowMajor && has_one_pixel() && reads_behind()) return false;
    PostOperations operations(context_.graph());
    const ResultView view = view_in(format);
    std::optional<OperandForm> main = form_of(work_.main, view);
    if (!main || main->layout == nullptr) return false;
    for (const PostOperation& operation : work_.behind) {
      if (!operations.append(operation, view)) return false;
    }
    std::vector<int32_t> nodes = nodes_;
    Value output = work_.output;
    for (const ChainStep& step : steps_) {
      if (!operations.append(step, view)) return false;
      nodes.insert(nodes.end(), step.nodes.begin(), step.nodes.end());
      output = context_.graph().value(step.result);
    }
    dnnl::primitive_attr attributes = context_.attributes();
    attributes.set_post_ops(operations.operations());
    const std::vector<int64_t> seen = *view.axes.of(view.dims, view.dims);
    const memory::desc result = describe(format, seen);
    std::optional<OperandForm> operand;
    if (work_.first.operand >= 0) {
      operand = form_of(context_.graph().value(work_.first.operand), view);
      if (!operand) return false;
    }
    const dnnl::primitive_desc_base description = describe_work(*main, operand, result, attributes);
    if (!description) return false;
    if (is_reference(description) && !accepts_reference) return false;
    if (context_.is_useless(description.impl_info_str(), operations.needs_compiled_code()))
      return false;
    PrimitiveOffer offer(std::move(nodes), description);
    offer.read_as(DNNL_ARG_SRC_0, work_.main, main->wanted, main->layout);
    if (operand) {
      read_operand(offer, DNNL_ARG_SRC_1, context_.graph().value(work_.first.operand), *operand);
    }
    offer.write_as(DNNL_ARG_DST, output, result, layout_name(format, view.dims));
    operations.read_operands(offer);
    if (can_overwrite()) offer.allow_in_place(work_.main);
    context_.add(offer.candidate(seconds(description)));
    return true;
  }

 private:
  ResultView view_in(Format format) const {
    const std::vector<int64_t> result = work_.output.type().dims;
    if (format != Format::RowMajor) return {result, plain_view(result.size()), format};
    std::vector<std::vector<int64_t>> operands = {work_.main.type().dims};
    for (const int32_t value : operand_values()) {
      operands.push_back(context_.graph().value(value).type().dims);
    }
    return {result, joined_axes(operands, result), format};
  }

  // In oneDNN 3.2 the compiled code reads the elements of a post-operation's operand from wrong
  // places if the result has more than one image, of one pixel each: findings/onednn_one_pixel.sh.
  bool has_one_pixel() const {
    const std::vector<int64_t> dims = work_.output.type().dims;
    return std::all_of(dims.begin() + 2, dims.end(), [](int64_t dim) { return dim == 1; });
  }
  bool reads_behind() const {
    return std::ranges::any_of(steps_, [](const ChainStep& step) {
      return std::ranges::any_of(
          step.operations, [](const PostOperation& operation) { return operation.operand >= 0; });
    });
  }

  std::vector<int32_t> operand_values() const {
    std::vector<int32_t> values;
    const auto add = [&](const PostOperation& operation) {
      if (operation.operand >= 0) values.push_back(operation.operand);
    };
    add(work_.first);
    for (const PostOperation& operation : work_.behind) add(operation);
    for (const ChainStep& step : steps_) {
      for (const PostOperation& operation : step.operations) add(operation);
    }
    return values;
  }

  static std::optional<OperandForm> form_of(const Value& value, const ResultView& view) {
    const std::vector<int64_t> dims = value.type().dims;
    if (view.format == Format::RowMajor) {
      return operand_form(value, *view.axes.of(dims, view.dims), view.format);
    }
    return operand_form(value, with_rank(dims, view.dims.size()), view.format);
  }

  dnnl::primitive_desc_base describe_work(const OperandForm& main,
                                          const std::optional<OperandForm>& operand,
                                          const memory::desc& result,
                                          const dnnl::primitive_attr& attributes) const {
    if (operand) {
      return dnnl::binary::primitive_desc(context_.engine(), work_.first.arithmetic, main.wanted,
                                          operand->wanted, result, attributes, true);
    }
    const Eltwise& function = work_.first.function;
    return dnnl::eltwise_forward::primitive_desc(
        context_.engine(), dnnl::prop_kind::forward_inference, function.algorithm, main.wanted,
        result, function.alpha, function.beta, attributes, true);
  }

  // The main operand may be overwritten if it has the size of the result and nothing else reads it
  // later.
  bool can_overwrite() const {
    const std::vector<int32_t> others = operand_values();
    return work_.main.type() == work_.output.type() &&
           std::find(others.begin(), others.end(), work_.main.id()) == others.end();
  }

  double seconds(const dnnl::primitive_desc_base& description) const {
    const auto results = static_cast<double>(work_.output.type().elements());
    const auto read = static_cast<double>(work_.main.type().elements());
    return context_.optimistic_seconds(results, (results + read) * sizeof(float),
                                       description.impl_info_str());
  }

  Context& context_;
  std::vector<int32_t> nodes_;
  Work work_;
  std::vector<ChainStep> steps_;
};

void offer_formats(Context& context, const Node& node, const Work& work,
                   const std::vector<ChainStep>& steps) {
  const plugin::Type result = work.output.type();
  BroadcastGroup group(context, node, work, steps);
  const bool is_small = result.elements() <= kMaxReferenceElements;
  bool is_offered = false;
  // The other formats are for feature maps, which are large: one operand must have the full size.
  if (can_hold(Format::Nhwc, result.dims.size()) && work.main.type().dims == result.dims) {
    for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::Nhwc}) {
      is_offered = group.offer(format, false) || is_offered;
    }
  }
  group.offer(Format::RowMajor, steps.empty() && (is_small || !is_offered));
}

void offer_broadcast(Context& context, const Chains& chains, const Node& node) {
  const std::optional<algorithm> kind = arithmetic_of(node.op());
  const plugin::Type result = node.output(0).type();
  bool is_one_shape = true;
  for (size_t index = 0; index < node.input_count(); ++index) {
    check_usable(node.input(index));
    is_one_shape = is_one_shape && node.input(index).type() == result;
  }
  if (is_one_shape || find_eltwise(node, context.options().nan).node)
    return;  // elementwise.cc proposes these
  if (node.version() < kFirstBroadcastingVersion) {
    return context.refuse(node.id(), "broadcasts as ONNX did before version 7, by attributes");
  }
  if (node.input_count() != 2) {
    return context.refuse(node.id(),
                          "broadcasts two operands, not " + std::to_string(node.input_count()));
  }
  if (context.keeps_nan() && loses_nan(*kind)) {
    return context.refuse(node.id(), explain_lost_nan(node.op()));
  }
  const Work work = work_of(node, *kind);
  const std::vector<ChainStep> steps = chains.after(node.output(0));
  if (!steps.empty()) offer_formats(context, node, work, steps);
  offer_formats(context, node, work, {});
}

}  // namespace

void propose_broadcasts(Context& context) {
  const Chains& chains = context.chains();
  context.for_each({"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"},
                   [&](const Node& node) { offer_broadcast(context, chains, node); });
}

}  // namespace tessera::onednn
