#include "base/chain.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::algorithm;
using plugin::Graph;
using plugin::Node;
using plugin::Type;
using plugin::Value;

namespace {

// More post-operations than any chain of a real model has.
constexpr size_t kMaxSteps = 8;

bool is_matmul_result(const Graph& graph, const Value& value) {
  if (value.producer() < 0) return false;
  const std::string_view op = graph.node(value.producer()).op();
  return op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm";
}

bool is_usable_operand(const Value& operand, const Type& type) {
  return operand.is_present() && !explain_unusable(operand) &&
         plugin::broadcasts_to(operand.type().dims, type.dims);
}

// x op y and y op x as functions of x.
std::optional<std::vector<PostOperation>> with_operand(std::string_view op, int32_t operand,
                                                       bool is_operand_left) {
  const std::optional<algorithm> kind = arithmetic_of(op);
  if (!kind) return std::nullopt;
  const PostOperation plain = {{}, *kind, operand};
  if (!is_operand_left) return std::vector{plain};
  if (op == "Sub") {
    return std::vector<PostOperation>{{{algorithm::eltwise_linear, -1, 0}},
                                      {{}, algorithm::binary_add, operand}};
  }
  // A product with the reciprocal is rounded twice.
  if (op == "Div") return std::nullopt;
  return std::vector{plain};
}

}  // namespace

std::optional<algorithm> arithmetic_of(std::string_view op) {
  if (op == "Add" || op == "Sum") return algorithm::binary_add;
  if (op == "Sub") return algorithm::binary_sub;
  if (op == "Mul") return algorithm::binary_mul;
  if (op == "Div") return algorithm::binary_div;
  if (op == "Max") return algorithm::binary_max;
  if (op == "Min") return algorithm::binary_min;
  return std::nullopt;
}

std::vector<int64_t> with_rank(std::vector<int64_t> dims, size_t rank) {
  dims.insert(dims.begin(), rank - std::min(rank, dims.size()), 1);
  return dims;
}

std::optional<std::vector<int64_t>> AxisView::of(const std::vector<int64_t>& dims,
                                                 const std::vector<int64_t>& full) const {
  const std::vector<int64_t> aligned = with_rank(dims, full.size());
  std::vector<int64_t> seen;
  size_t axis = 0;
  for (const size_t count : groups) {
    int64_t size = 1;
    int64_t full_size = 1;
    for (size_t index = 0; index < count; ++index, ++axis) {
      size *= aligned[axis];
      full_size *= full[axis];
    }
    if (size != 1 && size != full_size) return std::nullopt;
    seen.push_back(size);
  }
  if (seen.empty()) seen.push_back(1);
  return seen;
}

AxisView plain_view(size_t rank) { return {std::vector<size_t>(rank, 1)}; }

bool loses_nan(algorithm arithmetic) {
  return arithmetic == algorithm::binary_max || arithmetic == algorithm::binary_min;
}

Chains::Chains(const Graph& graph, int32_t nan)
    : graph_(graph), nan_(nan), composites_(find_composites(graph, nan)) {
  for (size_t index = 0; index < composites_.size(); ++index) {
    from_value_[composites_[index].input].push_back(index);
  }
}

std::optional<ChainStep> Chains::step_after(const Value& value, bool follows_matmul) const {
  const auto reads_outside = [&](const Composite& composite) {
    return std::any_of(value.consumers().begin(), value.consumers().end(), [&](int32_t reader) {
      return std::find(composite.nodes.begin(), composite.nodes.end(), reader) ==
             composite.nodes.end();
    });
  };
  if (const auto found = from_value_.find(value.id()); found != from_value_.end()) {
    for (const size_t index : found->second) {
      const Composite& composite = composites_[index];
      if (reads_outside(composite)) continue;
      return ChainStep{composite.nodes, {{composite.function}}, composite.output};
    }
  }
  if (value.consumers().size() != 1) return std::nullopt;
  const Node node = graph_.node(value.consumers().front());
  if (node.output_count() != 1 || node.output(0).type() != value.type()) return std::nullopt;
  // The library would leave -0 in the padding of blocked formats.
  if (node.op() == "Neg") return std::nullopt;
  const EltwiseAnswer eltwise = find_eltwise(node, nan_, follows_matmul);
  if (eltwise.node && node.input(eltwise.node->input).id() == value.id()) {
    ChainStep step{{node.id()}, {}, node.output(0).id()};
    for (const Eltwise& function : eltwise.node->functions) step.operations.push_back({function});
    return step;
  }
  if (!node.domain().empty() || node.input_count() != 2) return std::nullopt;
  const bool is_operand_left = node.input(1).id() == value.id();
  const Value operand = node.input(is_operand_left ? 0 : 1);
  if (!is_usable_operand(operand, value.type())) return std::nullopt;
  if (node.version() < kFirstBroadcastingVersion && operand.type() != value.type()) {
    return std::nullopt;
  }
  auto operations = with_operand(node.op(), operand.id(), is_operand_left);
  if (!operations) return std::nullopt;
  if (nan_ == TESSERA_NAN_EXACT && loses_nan(operations->back().arithmetic)) return std::nullopt;
  return ChainStep{{node.id()}, *std::move(operations), node.output(0).id()};
}

std::vector<ChainStep> Chains::after(const Value& value) const {
  std::vector<ChainStep> steps;
  Value last = value;
  // After a matmul, an infinity usually is a sum that overflowed, and a separate pass would cost
  // most.
  const bool follows_matmul = is_matmul_result(graph_, value);
  while (steps.size() < kMaxSteps && !last.is_needed()) {
    std::optional<ChainStep> step = step_after(last, follows_matmul);
    if (!step) break;
    last = graph_.value(step->result);
    steps.push_back(*std::move(step));
  }
  return steps;
}

std::optional<OperandForm> operand_form(const Value& value, const std::vector<int64_t>& dims,
                                        Format format) {
  OperandForm form = {describe(Format::RowMajor, dims), describe(format, dims), nullptr};
  if (format == Format::RowMajor) {
    form.layout = TESSERA_LAYOUT_DEFAULT;
    return form;
  }
  if (value.is_constant()) return form;
  const std::vector<int64_t> own = value.type().dims;
  if (own == dims) {
    form.layout = layout_name(format, dims);
    return form;
  }
  // A vector of channels has one order, whether channels are the innermost axis or not.
  const bool is_channels = dims[0] == 1 && std::all_of(dims.begin() + 2, dims.end(),
                                                       [](int64_t dim) { return dim == 1; });
  if (format != Format::Nhwc || !is_channels) return std::nullopt;
  form.layout = TESSERA_LAYOUT_DEFAULT;
  return form;
}

void read_operand(PrimitiveOffer& offer, int argument, const Value& value,
                  const OperandForm& form) {
  if (form.layout == nullptr) {
    offer.read_packed(argument, value, form.stored, form.wanted);
  } else {
    offer.read_as(argument, value, form.wanted, form.layout);
  }
}

int64_t count_reads(const std::vector<ChainStep>& steps, int32_t value) {
  int64_t count = 0;
  for (const ChainStep& step : steps) {
    count += std::ranges::count(step.operations, value, &PostOperation::operand);
  }
  return count;
}

void PostOperations::append(const Eltwise& function) {
  needs_compiled_code_ = needs_compiled_code_ || function.is_prelu ||
                         function.algorithm == algorithm::eltwise_logistic;
  if (function.is_prelu) {
    slopes_.push_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(operations_.len()) | DNNL_ARG_WEIGHTS);
    constexpr int kOneSlopeForAll = 0;  // a mask of axes
    operations_.append_prelu(kOneSlopeForAll);
    key_ += "prelu;";
    return;
  }
  operations_.append_eltwise(function.algorithm, function.alpha, function.beta);
  const auto bits = [](float number) { return std::to_string(std::bit_cast<uint32_t>(number)); };
  key_ += "function " + std::to_string(static_cast<int>(function.algorithm)) + " " +
          bits(function.alpha) + " " + bits(function.beta) + ";";
}

bool PostOperations::append(const PostOperation& operation, const ResultView& view) {
  if (operation.operand < 0) {
    append(operation.function);
    return true;
  }
  const Value operand = graph_.value(operation.operand);
  const std::vector<int64_t> dims = operand.type().dims;
  const auto seen = view.format == Format::RowMajor
                        ? view.axes.of(dims, view.dims)
                        : std::optional(with_rank(dims, view.dims.size()));
  if (!seen) return false;
  std::optional<OperandForm> form = operand_form(operand, *seen, view.format);
  if (!form) return false;
  const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(operations_.len()) | DNNL_ARG_SRC_1;
  operations_.append_binary(operation.arithmetic, form->wanted);
  key_ += "arithmetic " + std::to_string(static_cast<int>(operation.arithmetic)) + " " +
          std::to_string(static_cast<int>(view.format));
  for (const int64_t dim : *seen) key_ += " " + std::to_string(dim);
  key_ += ";";
  operands_.push_back({argument, operand.id(), *std::move(form)});
  return true;
}

bool PostOperations::append(const ChainStep& step, const ResultView& view) {
  return std::all_of(step.operations.begin(), step.operations.end(),
                     [&](const PostOperation& operation) { return append(operation, view); });
}

void PostOperations::append_sum(int32_t operand) {
  operations_.append_sum();
  key_ += "sum;";
  summed_ = operand;
}

void PostOperations::read_operands(PrimitiveOffer& offer) const {
  for (const Operand& operand : operands_) {
    read_operand(offer, operand.argument, graph_.value(operand.value), operand.form);
  }
  for (const int slope : slopes_) offer.keep(slope, describe(Format::RowMajor, {1}), {0.0F});
  if (summed_ >= 0) offer.add_to(graph_.value(summed_));
}

}  // namespace tessera::onednn
