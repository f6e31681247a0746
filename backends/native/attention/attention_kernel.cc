// A unit of work is some rows of one product. A thread packs the keys and values of its product,
// and computes as many rows of scores at a time as stay in the cache of a core, so that scores
// never reach memory. Rows of scores are whole: softmax needs no second pass over the products
// before.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "matmul/gemm_kernels.h"
#include "matmul/panel_copy.h"
#include "normalization/softmax_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// The largest size of a block of scores, which leaves the rest of the second-level cache to keys
// and values. Its largest number of rows is a multiple of those that the loops hold in registers.
constexpr int64_t kBlockBytes = 256 * 1024;
constexpr int64_t kMaxRows = 96;

// Longer sums are computed in parts, because a panel of values would not stay in the cache while
// the rows of a block pass.
constexpr int64_t kMaxDepth = 1024;

// Units for each thread, if there are enough, so that a thread on a slow core does fewer.
constexpr int64_t kUnitsOfSlot = 4;

struct Division {
  int64_t block_rows = 0;
  int64_t unit_rows = 0;
  int64_t units_of_product = 0;
  int64_t slots = 1;
};

Division division_of(const AttentionProblem& problem, int64_t threads) {
  Division division;
  const auto worth = static_cast<int64_t>(problem.flops() / kGrainFlops) + 1;
  threads = std::clamp<int64_t>(threads, 1, worth);
  const int64_t fitting = kBlockBytes / (problem.keys * kFloatBytes) / kGemmRowUnit * kGemmRowUnit;
  const int64_t most = std::clamp(fitting, kGemmRowUnit, kMaxRows);
  const int64_t blocks = divide_up(problem.rows, most);
  division.block_rows = divide_up(divide_up(problem.rows, blocks), kGemmRowUnit) * kGemmRowUnit;
  const int64_t wanted = threads == 1 ? 1 : kUnitsOfSlot * threads;
  // Units of one product pack its keys and values once for each thread at least.
  const int64_t most_units = divide_up(problem.rows, 2 * kGemmRowUnit);
  const int64_t units = std::clamp<int64_t>(divide_up(wanted, problem.products), 1, most_units);
  division.unit_rows = divide_up(divide_up(problem.rows, units), kGemmRowUnit) * kGemmRowUnit;
  division.units_of_product = divide_up(problem.rows, division.unit_rows);
  division.slots = std::min(threads, problem.products * division.units_of_product);
  return division;
}

PanelSource source_of(const StridedMatrices& matrices, int64_t depth, int64_t columns) {
  return {.depth = depth,
          .columns = columns,
          .depth_stride = matrices.row_stride,
          .column_stride = matrices.column_stride};
}

// The parts of the workspace of a slot, in floats.
struct Workspace {
  int64_t keys = 0;
  int64_t values = 0;
  int64_t scores = 0;

  int64_t floats() const { return keys + values + scores; }
};

Workspace workspace_of(const AttentionProblem& problem, const Division& division) {
  return {.keys = packed_floats(source_of(problem.key, problem.depth, problem.keys)),
          .values = packed_floats(source_of(problem.value, problem.keys, problem.width)),
          .scores = std::min(division.block_rows, problem.rows) * problem.keys};
}

int64_t all_bytes(const Division& division, const Workspace& workspace) {
  return division.slots * workspace.floats() * kFloatBytes;
}

// The first elements of the tensors, or of their parts for one product.
struct Operands {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  const float* mask = nullptr;
  float* result = nullptr;

  Operands of_product(const AttentionProblem& problem, int64_t product) const {
    Operands part = *this;
    for (size_t axis = problem.batch_rank; axis-- > 0; product /= problem.batch[axis]) {
      const int64_t index = product % problem.batch[axis];
      part.query += index * problem.query.strides[axis];
      part.key += index * problem.key.strides[axis];
      part.value += index * problem.value.strides[axis];
      if (problem.mask) part.mask += index * problem.mask->strides[axis];
      part.result += index * problem.result.strides[axis];
    }
    return part;
  }
};

// What a kernel knows about some sizes. Owns no memory.
struct AttentionPlan {
  AttentionPlan(const AttentionProblem& of, int64_t threads)
      : problem(of),
        division(division_of(of, threads)),
        workspace(workspace_of(of, division)),
        key_copy(source_of(of.key, of.depth, of.keys)),
        value_copy(source_of(of.value, of.keys, of.width)) {}

  AttentionProblem problem;
  Division division;
  Workspace workspace;
  PanelCopy key_copy;
  PanelCopy value_copy;
};

// The plan for the proposed sizes is kept; runs of other sizes make their own.
class AttentionKernel : public plugin::Kernel {
 public:
  AttentionKernel(const AttentionGroup& group, const AttentionPorts& ports, int64_t threads)
      : form_(group.form),
        ports_(ports),
        threads_(threads),
        dims_(group.dims),
        planned_(group.problem, threads),
        loops_(find_gemm_loops()),
        softmax_(find_softmax_loops(false)) {}

  int64_t workspace_bytes() const override {
    return all_bytes(planned_.division, planned_.workspace);
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override;

 private:
  bool is_planned(const AttentionDims& dims) const;
  void run_plan(RunContext& context, const AttentionPlan& plan, const Operands& operands) const;
  void run_slot(const AttentionPlan& plan, const Operands& operands, int64_t slot,
                SharedParts& units, float* memory) const;
  // Rows of one product, whose operands are given, from `row` on; `keys` and `values` are packed.
  void run_block(const AttentionProblem& problem, const Operands& operands, int64_t row,
                 int64_t rows, const float* keys, const float* values, float* scores) const;
  void multiply_queries(const AttentionProblem& problem, const float* query, int64_t rows,
                        const float* keys, float* scores) const;
  void multiply_values(const AttentionProblem& problem, const float* scores, int64_t rows,
                       const float* values, float* to) const;

  AttentionForm form_;
  AttentionPorts ports_;
  int64_t threads_;
  std::vector<int64_t> dims_;  // those of planned_, as AttentionGroup has them
  AttentionPlan planned_;
  GemmLoops loops_;
  SoftmaxLoops softmax_;
};

void AttentionKernel::multiply_queries(const AttentionProblem& problem, const float* query,
                                       int64_t rows, const float* keys, float* scores) const {
  for (int64_t column = 0; column < problem.keys; column += loops_.panel) {
    loops_.padded({.left = query,
                   .left_row_stride = problem.query.row_stride,
                   .left_depth_stride = problem.query.column_stride,
                   .right = keys + column * problem.depth,
                   .right_depth_stride = loops_.panel,
                   .rows = rows,
                   .columns = std::min(loops_.panel, problem.keys - column),
                   .depth = problem.depth,
                   .to = scores + column,
                   .to_row_stride = problem.keys});
  }
}

void AttentionKernel::multiply_values(const AttentionProblem& problem, const float* scores,
                                      int64_t rows, const float* values, float* to) const {
  const int64_t parts = divide_up(problem.keys, kMaxDepth);
  const int64_t depth = divide_up(problem.keys, parts);
  for (int64_t column = 0; column < problem.width; column += loops_.panel) {
    for (int64_t done = 0; done < problem.keys; done += depth) {
      GemmBlock block = {.left = scores + done,
                         .left_row_stride = problem.keys,
                         .right = values + column * problem.keys + done * loops_.panel,
                         .right_depth_stride = loops_.panel,
                         .rows = rows,
                         .columns = std::min(loops_.panel, problem.width - column),
                         .depth = std::min(depth, problem.keys - done),
                         .to = to + column,
                         .to_row_stride = problem.result.row_stride};
      if (done > 0) {
        block.epilogue.addend = block.to;
        block.epilogue.addend_row_stride = block.to_row_stride;
        block.epilogue.addend_column_stride = 1;
      }
      loops_.padded(block);
    }
  }
}

void AttentionKernel::run_block(const AttentionProblem& problem, const Operands& operands,
                                int64_t row, int64_t rows, const float* keys, const float* values,
                                float* scores) const {
  multiply_queries(problem, operands.query + row * problem.query.row_stride, rows, keys, scores);
  RowInput input = {.scale = problem.scale};
  if (problem.mask) {
    input.addend = operands.mask + row * problem.mask->row_stride;
    input.addend_stride = problem.mask->row_stride;
  }
  softmax_.rows(scores, scores, rows, problem.keys, input);
  multiply_values(problem, scores, rows, values, operands.result + row * problem.result.row_stride);
}

void AttentionKernel::run_slot(const AttentionPlan& plan, const Operands& operands, int64_t slot,
                               SharedParts& units, float* memory) const {
  const Division& division = plan.division;
  float* keys = memory;
  float* values = keys + plan.workspace.keys;
  float* scores = values + plan.workspace.values;
  // The packed keys and values, which several products may share.
  const float* packed_key = nullptr;
  const float* packed_value = nullptr;
  units.for_each(slot, [&](int64_t unit) {
    const Operands part = operands.of_product(plan.problem, unit / division.units_of_product);
    if (packed_key != part.key) {
      packed_key = part.key;
      plan.key_copy.run_all(packed_key, keys);
    }
    if (packed_value != part.value) {
      packed_value = part.value;
      plan.value_copy.run_all(packed_value, values);
    }
    const int64_t first = unit % division.units_of_product * division.unit_rows;
    const int64_t end = std::min(first + division.unit_rows, plan.problem.rows);
    for (int64_t row = first; row < end; row += division.block_rows) {
      run_block(plan.problem, part, row, std::min(division.block_rows, end - row), keys, values,
                scores);
    }
  });
}

void AttentionKernel::run_plan(RunContext& context, const AttentionPlan& plan,
                               const Operands& operands) const {
  const Division& division = plan.division;
  SharedParts units(plan.problem.products * division.units_of_product, division.slots);
  context.parallel_for(division.slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      run_slot(plan, operands, slot, units,
               static_cast<float*>(context.workspace()) + slot * plan.workspace.floats());
    }
  });
}

bool AttentionKernel::is_planned(const AttentionDims& dims) const {
  auto planned = dims_.begin();
  for (const std::span<const int64_t> one : dims.all()) {
    if (!std::equal(one.begin(), one.end(), planned)) return false;
    planned += static_cast<int64_t>(one.size());
  }
  return true;
}

void AttentionKernel::run(RunContext& context, std::span<const Buffer> inputs,
                          std::span<const Buffer> outputs) {
  const Operands operands = {.query = inputs[ports_.query].as<const float>(),
                             .key = inputs[ports_.key].as<const float>(),
                             .value = inputs[ports_.value].as<const float>(),
                             .mask = ports_.mask ? inputs[*ports_.mask].as<const float>() : nullptr,
                             .result = outputs[0].as<float>()};
  const AttentionDims dims = ports_.dims_of(inputs, outputs);
  if (is_planned(dims)) return run_plan(context, planned_, operands);
  run_plan(context, AttentionPlan(attention_problem_of(form_, dims), threads_), operands);
}

// The axes of a factor, a result or the scores, with their strides in memory.
struct Axes {
  std::array<int64_t, kMaxScoreRank> lengths = {};
  std::array<int64_t, kMaxScoreRank> strides = {};
};

Axes axes_of(const AttentionOperand& operand, std::span<const int64_t> dims) {
  std::array<int64_t, kMaxScoreRank> own = {};
  int64_t stride = 1;
  for (size_t axis = operand.rank; axis-- > 0; stride *= dims[axis]) own[axis] = stride;
  Axes axes;
  for (size_t axis = 0; axis < operand.rank; ++axis) {
    axes.lengths[axis] = dims[operand.axes[axis]];
    axes.strides[axis] = own[operand.axes[axis]];
  }
  return axes;
}

// The matrices in the last two axes, for batches that broadcast to one of `batch_rank` axes.
StridedMatrices matrices_of(const Axes& axes, size_t rank, size_t batch_rank) {
  StridedMatrices matrices = {.row_stride = axes.strides[rank - 2],
                              .column_stride = axes.strides[rank - 1]};
  const size_t missing = batch_rank + 2 - rank;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if (axes.lengths[axis] != 1) matrices.strides[missing + axis] = axes.strides[axis];
  }
  return matrices;
}

}  // namespace

AttentionProblem attention_problem_of(const AttentionForm& form, const AttentionDims& dims) {
  const size_t rank = form.result.rank;
  const Axes query = axes_of(form.query, dims.query);
  const Axes key = axes_of(form.key, dims.key);
  const Axes value = axes_of(form.value, dims.value);
  const Axes result = axes_of(form.result, dims.result);
  const size_t batch_rank = rank - 2;
  AttentionProblem problem = {.rows = result.lengths[rank - 2],
                              .keys = key.lengths[form.key.rank - 1],
                              .depth = query.lengths[form.query.rank - 1],
                              .width = result.lengths[rank - 1],
                              .query = matrices_of(query, form.query.rank, batch_rank),
                              .key = matrices_of(key, form.key.rank, batch_rank),
                              .value = matrices_of(value, form.value.rank, batch_rank),
                              .result = matrices_of(result, rank, batch_rank),
                              .scale = form.scale,
                              .batch_rank = batch_rank};
  for (size_t axis = 0; axis < batch_rank; ++axis) {
    problem.batch[axis] = result.lengths[axis];
    problem.products *= result.lengths[axis];
  }
  if (dims.mask.empty()) return problem;
  std::array<int64_t, kMaxScoreRank> scores = result.lengths;
  scores[rank - 1] = problem.keys;
  problem.mask = softmax_mask_of(dims.mask, std::span(scores).first(rank));
  return problem;
}

std::unique_ptr<plugin::Kernel> make_attention_kernel(const AttentionGroup& group,
                                                      const AttentionPorts& ports,
                                                      int64_t threads) {
  return std::make_unique<AttentionKernel>(group, ports, threads);
}

int64_t attention_workspace_bytes(const AttentionProblem& problem, int64_t threads) {
  const Division division = division_of(problem, threads);
  return all_bytes(division, workspace_of(problem, division));
}

}  // namespace tessera::native
