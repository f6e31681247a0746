// MatMul and Gemm, fused with a following sum and Relu, SiLU or Gelu.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/activation_search.h"
#include "base/any_address.h"
#include "base/divide_up.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "matmul/gemm_kernels.h"
#include "matmul/matmul_problem.h"
#include "matmul/packed_product.h"
#include "matmul/strassen.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Type;
using plugin::Value;

namespace {

// Rows that are multiplied with a panel before the next rows; a multiple of the rows that the loops
// hold in registers.
constexpr int64_t kRowBlock = 96;
// The largest number of terms of a sum that is added up at once.
constexpr int64_t kMaxTerms = 1536;

// The largest number of columns that a part has in the form of dot products.
constexpr int64_t kMaxDotColumns = 256;

// With fewer rows on the left, repacking the right matrix does not pay.
constexpr int64_t kMinRepackedRows = 4;

// The form in which the right matrix is read.
enum class Form : uint8_t {
  Panels,    // in place, a panel of columns at a time
  Packed,    // a constant, packed once into panels
  Strassen,  // a constant, packed once as sums of its quarters
  Repacked,  // packed into panels in the workspace in each run
  Dots       // in place, as dot products with each column
};

const char* form_name(Form form) {
  switch (form) {
    case Form::Panels:
      return "panels";
    case Form::Packed:
      return "packed";
    case Form::Strassen:
      return "strassen";
    case Form::Repacked:
      return "repacked";
    case Form::Dots:
      return "dots";
  }
  return "";
}

PanelSource panels_of(const MatMulProblem& problem) {
  return {problem.depth, problem.columns, problem.right_depth_stride, problem.right_column_stride};
}

// The computation of a kernel, for operands of any sizes; ports are indices of inputs.
struct Work {
  MatMulOp op;
  Form form = Form::Panels;
  size_t right = 1;
  std::optional<size_t> addend;
  bool is_addend_whole = false;  // the addend has the shape of the result
  Activation activation;

  MatMulProblem problem_of(std::span<const Buffer> inputs) const {
    return matmul_problem_of(op, inputs[0].sizes(), inputs[right].sizes());
  }
};

StrassenProduct strassen_product(const MatMulProblem& problem) {
  return {.rows = problem.rows,
          .columns = problem.columns,
          .depth = problem.depth,
          .left_row_stride = problem.left_row_stride};
}

int64_t workspace_bytes_of(Form form, const MatMulProblem& problem) {
  if (form == Form::Strassen) return strassen_workspace_bytes(strassen_product(problem));
  if (form != Form::Repacked) return 0;
  return packed_floats(panels_of(problem)) * static_cast<int64_t>(sizeof(float));
}

struct MatMulOperands {
  const float* left = nullptr;
  const float* right = nullptr;
  const float* addend = nullptr;
  float* to = nullptr;
};

// For the first row and column.
GemmEpilogue epilogue_of(const Work& work, const MatMulProblem& problem, const float* addend) {
  return {.alpha = work.op.alpha,
          .beta = work.op.beta,
          .addend = addend,
          .addend_row_stride = problem.addend_row_stride,
          .addend_column_stride = problem.addend_column_stride,
          .activation = work.activation};
}

// A run in all forms but those of packed weights. A part is some rows of a product by some columns.
class PartsRun {
 public:
  PartsRun(const Work& work, const MatMulProblem& problem, const GemmLoops& loops,
           const MatMulOperands& operands)
      : work_(work), problem_(problem), loops_(loops), operands_(operands) {
    tile_ = work.form == Form::Dots ? std::min(problem.columns, kMaxDotColumns) : loops.panel;
    tiles_ = problem.columns <= tile_ ? 1 : divide_up(problem.columns, tile_);
    row_blocks_ = divide_up(problem.rows, kRowBlock);
  }

  void run(RunContext& context) const {
    const int64_t parts = problem_.count * tiles_ * row_blocks_;
    const double flops = problem_.flops() / static_cast<double>(parts);
    const int64_t grain = static_cast<int64_t>(kGrainFlops / (flops + 1)) + 1;
    context.parallel_for(parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) run_part(index);
    });
  }

 private:
  void run_part(int64_t index) const {
    const int64_t row = index % row_blocks_ * kRowBlock;
    const int64_t tile = index / row_blocks_ % tiles_;
    const int64_t product = index / row_blocks_ / tiles_;
    const int64_t column = tile * tile_;
    const MatMulBatch::Offsets offsets = problem_.batch.offsets_of(product);
    const bool is_packed = work_.form == Form::Repacked;
    GemmBlock part = {.left_row_stride = problem_.left_row_stride,
                      .left_depth_stride = problem_.left_depth_stride,
                      .right_depth_stride = is_packed ? loops_.panel : problem_.right_depth_stride,
                      .right_column_stride = problem_.right_column_stride,
                      .rows = std::min(kRowBlock, problem_.rows - row),
                      .columns = std::min(tile_, problem_.columns - column),
                      .depth = problem_.depth,
                      .to_row_stride = problem_.columns};
    part.left = operands_.left + offsets.left + row * problem_.left_row_stride;
    part.right = operands_.right + offsets.right +
                 column * (is_packed ? problem_.depth : problem_.right_column_stride);
    const int64_t first = (product * problem_.rows + row) * problem_.columns + column;
    part.to = operands_.to + first;
    part.epilogue = epilogue_of(work_, problem_, operands_.addend);
    if (operands_.addend != nullptr) {
      part.epilogue.addend += work_.is_addend_whole ? first
                                                    : row * problem_.addend_row_stride +
                                                          column * problem_.addend_column_stride;
    }
    // The next panel is needed after the last rows of this one.
    if (is_packed && row + part.rows == problem_.rows && tile + 1 < tiles_) {
      part.ahead = part.right + loops_.panel * problem_.depth;
    }
    run_in_depths(part);
  }

  // Adds up sums of at most kMaxTerms terms, since longer ones lose digits.
  void run_in_depths(GemmBlock part) const {
    const int64_t depth = part.depth;
    const Activation activation = part.epilogue.activation;
    int64_t done = 0;
    // An empty sum is zero, to which the epilogue is applied too.
    do {
      part.depth = std::min(kMaxTerms, depth - done);
      const bool is_last = done + part.depth >= depth;
      part.epilogue.activation = is_last ? activation : Activation();
      run_loops(part);
      done += part.depth;
      part.left += part.depth * part.left_depth_stride;
      part.right += part.depth * part.right_depth_stride;
      part.epilogue.addend = part.to;
      part.epilogue.beta = 1;
      part.epilogue.addend_row_stride = part.to_row_stride;
      part.epilogue.addend_column_stride = 1;
    } while (done < depth);
  }

  void run_loops(const GemmBlock& part) const {
    if (work_.form == Form::Dots) {
      loops_.dots(part);
    } else if (work_.form == Form::Panels) {
      loops_.columns(part);
    } else {
      loops_.padded(part);
    }
  }

  const Work& work_;
  const MatMulProblem& problem_;
  const GemmLoops& loops_;
  const MatMulOperands& operands_;
  int64_t tile_ = 1;
  int64_t tiles_ = 1;
  int64_t row_blocks_ = 1;
};

class MatMulKernel : public plugin::Kernel {
 public:
  // `workspace_bytes`: for the sizes of the proposal.
  MatMulKernel(const Work& work, int64_t workspace_bytes, int64_t threads)
      : work_(work),
        workspace_bytes_(workspace_bytes),
        threads_(threads),
        loops_(find_gemm_loops()) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const MatMulProblem problem = work_.problem_of(inputs);
    MatMulOperands operands = {
        .left = inputs[0].as<const float>(),
        .right = inputs[work_.right].as<const float>(),
        .addend = work_.addend ? inputs[*work_.addend].as<const float>() : nullptr,
        .to = outputs[0].as<float>()};
    if (work_.form == Form::Packed) return run_packed(context, problem, operands);
    if (work_.form == Form::Strassen) return run_strassen_product(context, problem, operands);
    if (work_.form == Form::Repacked) {
      float* packed = static_cast<float*>(context.workspace());
      pack_panels(context, panels_of(problem), operands.right, packed);
      operands.right = packed;
    }
    PartsRun(work_, problem, loops_, operands).run(context);
  }

 private:
  void run_packed(RunContext& context, const MatMulProblem& problem,
                  const MatMulOperands& operands) const {
    run_packed_product(context,
                       {.rows = problem.rows,
                        .columns = problem.columns,
                        .depth = problem.depth,
                        .left_row_stride = problem.left_row_stride,
                        .left_depth_stride = problem.left_depth_stride},
                       threads_,
                       {.left = operands.left,
                        .right = operands.right,
                        .to = operands.to,
                        .epilogue = epilogue_of(work_, problem, operands.addend)},
                       nullptr);
  }

  void run_strassen_product(RunContext& context, const MatMulProblem& problem,
                            const MatMulOperands& given) const {
    StrassenOperands operands = {.left = given.left, .right = given.right, .to = given.to};
    (work_.is_addend_whole ? operands.addend : operands.bias) = given.addend;
    operands.activation = work_.activation;
    run_strassen(context, strassen_product(problem), threads_, operands, context.workspace());
  }

  Work work_;
  int64_t workspace_bytes_;
  int64_t threads_;
  GemmLoops loops_;
};

// A MatMul or Gemm and the nodes that are fused with it.
struct Group {
  std::vector<int32_t> nodes;
  int32_t result = -1;  // value
  int32_t addend = -1;  // value
  bool is_addend_whole = false;
  Activation activation;
};

using Activations = std::map<int32_t, FoundActivation>;

class MatMulOffer {
 public:
  // `activations` must outlive this object.
  MatMulOffer(ProposeContext& context, const Node& node, const Activations& activations)
      : context_(context),
        node_(node),
        activations_(activations),
        op_(matmul_op_of(node)),
        problem_(matmul_problem_of(op_, node.input(0).type().dims, node.input(1).type().dims)) {}

  void offer() {
    Group group = {.nodes = {node_.id()}, .result = node_.output(0).id()};
    group.addend = op_.addend;
    std::vector<Group> groups = {group};
    if (group.addend < 0 && op_.alpha == 1 && append_sum(group)) groups.push_back(group);
    if (append_activation(group)) groups.push_back(group);
    for (size_t index = groups.size(); index-- > 0;) offer_group(groups[index]);
  }

 private:
  bool append_sum(Group& group) {
    constexpr int32_t kFirstBroadcastingVersion = 7;
    const std::optional<Node> node =
        plugin::only_reader(context_.graph(), context_.graph().value(group.result));
    if (!node || node->op() != "Add" || node->version() < kFirstBroadcastingVersion) return false;
    const Value other = node->input(node->input(0).id() == group.result ? 1 : 0);
    const Type type = context_.graph().value(group.result).type();
    const Type added = other.type();
    if (node->output(0).type() != type || added.data_type != TESSERA_FLOAT32) return false;
    const bool is_last = !added.dims.empty() && added.elements() == added.dims.back() &&
                         added.elements() == problem_.columns && !type.dims.empty() &&
                         type.dims.back() == problem_.columns;
    if (added == type) {
      group.is_addend_whole = true;
      op_.has_addend_rows = op_.has_addend_columns = true;
    } else if (is_last || added.elements() == 1) {
      op_.has_addend_columns = added.elements() != 1;
    } else {
      return false;
    }
    group.addend = other.id();
    group.nodes.push_back(node->id());
    group.result = node->output(0).id();
    return true;
  }

  bool append_activation(Group& group) const {
    if (const auto found = activations_.find(group.result); found != activations_.end()) {
      const FoundActivation& several = found->second;
      group.activation = several.activation;
      group.nodes.insert(group.nodes.end(), several.nodes.begin(), several.nodes.end());
      group.result = several.result;
      return true;
    }
    const std::optional<Node> node =
        plugin::only_reader(context_.graph(), context_.graph().value(group.result));
    if (!node || node->op() != "Relu") return false;
    group.activation = {ActivationKind::Relu};
    group.nodes.push_back(node->id());
    group.result = node->output(0).id();
    return true;
  }

  void offer_group(const Group& group) {
    const bool has_columns = problem_.right_column_stride == 1;
    const bool has_vectors = problem_.right_depth_stride == 1 || problem_.depth == 1;
    const bool is_left_vector = problem_.left_depth_stride == 1 || problem_.depth == 1;
    const bool is_one = problem_.has_shared_right;
    if (node_.input(1).is_constant() && is_one) add(group, Form::Packed);
    if (node_.input(1).is_constant() && has_strassen(group)) add(group, Form::Strassen);
    if (is_left_vector && has_vectors) add(group, Form::Dots);
    if (has_columns) {
      add(group, Form::Panels);
    } else if (is_one && (problem_.rows >= kMinRepackedRows || !is_left_vector)) {
      add(group, Form::Repacked);
    }
  }

  // Whether the product is followed by a sum with one row for all, or with a matrix.
  bool has_strassen(const Group& group) const {
    const bool adds_row = !op_.has_addend_rows && op_.has_addend_columns;
    const bool has_sum = group.addend < 0 || group.is_addend_whole || adds_row;
    return problem_.has_shared_right && problem_.left_depth_stride == 1 &&
           !group.activation.is_gated() && op_.alpha == 1 && op_.beta == 1 && has_sum &&
           admits_strassen(context_, {problem_.rows, problem_.columns, problem_.depth});
  }

  void add(const Group& group, Form form) {
    Work work = {.op = op_, .form = form, .activation = group.activation};
    work.is_addend_whole = group.is_addend_whole;
    Candidate candidate;
    candidate.nodes = group.nodes;
    std::sort(candidate.nodes.begin(), candidate.nodes.end());
    candidate.algorithm = form_name(form);
    candidate.inputs.push_back({.value = node_.input(0).id()});
    work.right = port_of(candidate, node_.input(1).id());
    if (form == Form::Packed || form == Form::Strassen) {
      // One value cannot be read both packed and unpacked.
      if (work.right == 0 || group.addend == node_.input(1).id()) return;
      const PanelSource source = panels_of(problem_);
      candidate.inputs[work.right].pack =
          form == Form::Packed ? panels_pack(source) : strassen_pack(source);
    }
    // Each of the rows and columns that are added may have a NaN.
    if (form == Form::Strassen) candidate.flags = TESSERA_CANDIDATE_SPREADS_NAN;
    if (group.addend >= 0) work.addend = port_of(candidate, group.addend);
    // C is an input of the node even if beta is 0.
    if (node_.input(2).is_present()) port_of(candidate, node_.input(2).id());
    candidate.outputs.push_back({.value = group.result});
    if (group.is_addend_whole && *work.addend > 1) {
      candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
      candidate.outputs[0].in_place_input = static_cast<int32_t>(*work.addend);
    }
    set_sizes(candidate, work);
    const auto bytes = static_cast<double>(node_.input(0).type().dense_bytes() +
                                           node_.input(1).type().dense_bytes() +
                                           node_.output(0).type().dense_bytes());
    const double flops = problem_.flops() * (form == Form::Strassen ? 7.0 / 8 : 1);
    candidate.optimistic_seconds = context_.optimistic_seconds(flops, bytes);
    candidate.build = [work, workspace_bytes =
                                 candidate.workspace_bytes](const plugin::BuildOptions& options) {
      return std::make_unique<MatMulKernel>(work, workspace_bytes, options.threads);
    };
    context_.add(std::move(candidate));
  }

  // Packed weights have the dimensions for which they were packed; all others are arguments.
  void set_sizes(Candidate& candidate, const Work& work) const {
    candidate.built_for.emplace();
    if (work.form == Form::Packed || work.form == Form::Strassen) {
      const auto rank = static_cast<int32_t>(node_.input(1).type().dims.size());
      for (int32_t axis = 0; axis < rank; ++axis) {
        candidate.built_for->push_back({static_cast<int32_t>(work.right), axis});
      }
    }
    candidate.workspace_bytes = workspace_bytes_of(work.form, problem_);
    if (candidate.workspace_bytes == 0) return;
    candidate.workspace_for = [work](std::span<const Buffer> inputs, std::span<const Buffer>) {
      return workspace_bytes_of(work.form, work.problem_of(inputs));
    };
  }

  static size_t port_of(Candidate& candidate, int32_t value) {
    for (size_t index = 0; index < candidate.inputs.size(); ++index) {
      if (candidate.inputs[index].value == value) return index;
    }
    candidate.inputs.push_back({.value = value});
    return candidate.inputs.size() - 1;
  }

  ProposeContext& context_;
  Node node_;
  const Activations& activations_;
  MatMulOp op_;
  MatMulProblem problem_;  // for the sizes of the proposal
};

// A plain loop is the fastest for few products. Of many, the reference, which multiplies block by
// block in the vectors of this processor, takes a fifth of its time.
constexpr double kMaxPlainFlops = 1 << 18;

void offer_generic(ProposeContext& context, const Node& node) {
  const GenericMatMul multiply = find_generic_matmul(node.output(0).type().data_type);
  if (multiply == nullptr) refuse("has no matmul for this element type");
  const MatMulOp op = matmul_op_of(node);
  const MatMulProblem problem =
      matmul_problem_of(op, node.input(0).type().dims, node.input(1).type().dims);
  if (problem.flops() > kMaxPlainFlops) {
    refuse("multiplies few elements of this type only, because the reference is faster on many");
  }
  const bool is_scaled = op.alpha != 1 || (op.addend >= 0 && op.beta != 1);
  if (is_scaled && node.output(0).type().data_type != TESSERA_FLOAT64) {
    refuse("does not scale the result of an integer matmul");
  }
  Candidate candidate = plugin::candidate_for(node);
  candidate.algorithm = "plain";
  const auto position = [&](int32_t value) {
    size_t port = 0;
    while (candidate.inputs[port].value != value) ++port;
    return port;
  };
  const size_t right = position(node.input(1).id());
  const std::optional<size_t> addend =
      op.addend < 0 ? std::nullopt : std::optional(position(op.addend));
  const auto bytes = static_cast<double>(node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(problem.flops(), bytes);
  candidate.built_for.emplace();
  candidate.build = [=](const plugin::BuildOptions&) {
    return plugin::make_kernel([=](RunContext& run, std::span<const Buffer> inputs,
                                   std::span<const Buffer> outputs) {
      const MatMulProblem sized = matmul_problem_of(op, inputs[0].sizes(), inputs[right].sizes());
      multiply(run, op, sized, inputs[0].data, inputs[right].data,
               addend ? inputs[*addend].data : nullptr, outputs[0].data);
    });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer_matmul(ProposeContext& context, const Node& node, const Activations& activations) {
  for (const size_t index : {size_t{0}, size_t{1}}) {
    if (!node.input(index).type().is_known()) refuse("takes tensors of known shape only");
  }
  if (node.output(0).type().elements() == 0) refuse("the matmul has no elements");
  if (node.input(2).is_present() && !node.input(2).type().is_known()) {
    refuse("takes tensors of known shape only");
  }
  if (node.output(0).type().data_type != TESSERA_FLOAT32) return offer_generic(context, node);
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (node.input(index).is_present()) check_usable(node.input(index));
  }
  MatMulOffer(context, node, activations).offer();
}

}  // namespace

void propose_matmuls(ProposeContext& context) {
  // Activations are searched for only in graphs that have products.
  std::optional<Activations> activations;
  context.for_each({"MatMul", "Gemm"}, [&](const Node& node) {
    if (!activations) activations = find_activations(context.graph());
    offer_matmul(context, node, *activations);
  });
}

}  // namespace tessera::native
