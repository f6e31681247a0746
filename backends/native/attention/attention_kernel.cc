// A unit of work is some rows of one product. A thread packs the keys and values of its product,
// and computes as many rows of scores at a time as stay in the cache of a core, so that scores
// never reach memory. Rows of scores are whole: softmax needs no second pass over the products
// before.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

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
  const int64_t units = std::clamp<int64_t>(divide_up(wanted, problem.products()), 1, most_units);
  division.unit_rows = divide_up(divide_up(problem.rows, units), kGemmRowUnit) * kGemmRowUnit;
  division.units_of_product = divide_up(problem.rows, division.unit_rows);
  division.slots = std::min(threads, problem.products() * division.units_of_product);
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

struct Operands {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  const float* mask = nullptr;
  float* result = nullptr;
};

class AttentionKernel : public plugin::Kernel {
 public:
  AttentionKernel(AttentionProblem problem, const AttentionPorts& ports, int64_t threads)
      : problem_(std::move(problem)),
        ports_(ports),
        division_(division_of(problem_, threads)),
        workspace_(workspace_of(problem_, division_)),
        loops_(find_gemm_loops()),
        softmax_(find_softmax_loops(false)),
        key_copy_(source_of(problem_.key, problem_.depth, problem_.keys)),
        value_copy_(source_of(problem_.value, problem_.keys, problem_.width)) {}

  int64_t workspace_bytes() const override { return all_bytes(division_, workspace_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override;

 private:
  void run_slot(const Operands& operands, int64_t slot, SharedParts& units, float* memory) const;
  // Rows of one product from `row` on; `keys` and `values` are packed.
  void run_block(const Operands& operands, int64_t product, int64_t row, int64_t rows,
                 const float* keys, const float* values, float* scores) const;
  void multiply_queries(const float* query, int64_t rows, const float* keys, float* scores) const;
  void multiply_values(const float* scores, int64_t rows, const float* values, float* to) const;

  AttentionProblem problem_;
  AttentionPorts ports_;
  Division division_;
  Workspace workspace_;
  GemmLoops loops_;
  SoftmaxLoops softmax_;
  PanelCopy key_copy_;
  PanelCopy value_copy_;
};

void AttentionKernel::multiply_queries(const float* query, int64_t rows, const float* keys,
                                       float* scores) const {
  for (int64_t column = 0; column < problem_.keys; column += loops_.panel) {
    loops_.padded({.left = query,
                   .left_row_stride = problem_.query.row_stride,
                   .left_depth_stride = problem_.query.column_stride,
                   .right = keys + column * problem_.depth,
                   .right_depth_stride = loops_.panel,
                   .rows = rows,
                   .columns = std::min(loops_.panel, problem_.keys - column),
                   .depth = problem_.depth,
                   .to = scores + column,
                   .to_row_stride = problem_.keys});
  }
}

void AttentionKernel::multiply_values(const float* scores, int64_t rows, const float* values,
                                      float* to) const {
  const int64_t parts = divide_up(problem_.keys, kMaxDepth);
  const int64_t depth = divide_up(problem_.keys, parts);
  for (int64_t column = 0; column < problem_.width; column += loops_.panel) {
    for (int64_t done = 0; done < problem_.keys; done += depth) {
      GemmBlock block = {.left = scores + done,
                         .left_row_stride = problem_.keys,
                         .right = values + column * problem_.keys + done * loops_.panel,
                         .right_depth_stride = loops_.panel,
                         .rows = rows,
                         .columns = std::min(loops_.panel, problem_.width - column),
                         .depth = std::min(depth, problem_.keys - done),
                         .to = to + column,
                         .to_row_stride = problem_.result.row_stride};
      if (done > 0) {
        block.epilogue.addend = block.to;
        block.epilogue.addend_row_stride = block.to_row_stride;
        block.epilogue.addend_column_stride = 1;
      }
      loops_.padded(block);
    }
  }
}

void AttentionKernel::run_block(const Operands& operands, int64_t product, int64_t row,
                                int64_t rows, const float* keys, const float* values,
                                float* scores) const {
  const auto index = static_cast<size_t>(product);
  multiply_queries(operands.query + problem_.query.offsets[index] + row * problem_.query.row_stride,
                   rows, keys, scores);
  RowInput input = {.scale = problem_.scale};
  if (problem_.mask) {
    input.addend = operands.mask + problem_.mask->offset(product) + row * problem_.mask->row_stride;
    input.addend_stride = problem_.mask->row_stride;
  }
  softmax_.rows(scores, scores, rows, problem_.keys, input);
  multiply_values(
      scores, rows, values,
      operands.result + problem_.result.offsets[index] + row * problem_.result.row_stride);
}

void AttentionKernel::run_slot(const Operands& operands, int64_t slot, SharedParts& units,
                               float* memory) const {
  float* keys = memory;
  float* values = keys + workspace_.keys;
  float* scores = values + workspace_.values;
  // The offsets of the packed keys and values, which several products may share.
  int64_t key_offset = -1;
  int64_t value_offset = -1;
  units.for_each(slot, [&](int64_t unit) {
    const int64_t product = unit / division_.units_of_product;
    const auto index = static_cast<size_t>(product);
    if (key_offset != problem_.key.offsets[index]) {
      key_offset = problem_.key.offsets[index];
      key_copy_.run_all(operands.key + key_offset, keys);
    }
    if (value_offset != problem_.value.offsets[index]) {
      value_offset = problem_.value.offsets[index];
      value_copy_.run_all(operands.value + value_offset, values);
    }
    const int64_t first = unit % division_.units_of_product * division_.unit_rows;
    const int64_t end = std::min(first + division_.unit_rows, problem_.rows);
    for (int64_t row = first; row < end; row += division_.block_rows) {
      run_block(operands, product, row, std::min(division_.block_rows, end - row), keys, values,
                scores);
    }
  });
}

void AttentionKernel::run(RunContext& context, std::span<const Buffer> inputs,
                          std::span<const Buffer> outputs) {
  const Operands operands = {.query = inputs[ports_.query].as<const float>(),
                             .key = inputs[ports_.key].as<const float>(),
                             .value = inputs[ports_.value].as<const float>(),
                             .mask = ports_.mask ? inputs[*ports_.mask].as<const float>() : nullptr,
                             .result = outputs[0].as<float>()};
  SharedParts units(problem_.products() * division_.units_of_product, division_.slots);
  context.parallel_for(division_.slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      run_slot(operands, slot, units,
               static_cast<float*>(context.workspace()) + slot * workspace_.floats());
    }
  });
}

}  // namespace

std::unique_ptr<plugin::Kernel> make_attention_kernel(const AttentionProblem& problem,
                                                      const AttentionPorts& ports,
                                                      int64_t threads) {
  return std::make_unique<AttentionKernel>(problem, ports, threads);
}

int64_t attention_workspace_bytes(const AttentionProblem& problem, int64_t threads) {
  const Division division = division_of(problem, threads);
  return all_bytes(division, workspace_of(problem, division));
}

}  // namespace tessera::native
