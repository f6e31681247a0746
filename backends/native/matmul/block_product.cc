// A unit of work is some panels of columns. Few rows are multiplied with weights that become
// numbers in registers, so that the product takes as long as reading the weights. For more rows, a
// thread unpacks a panel into its workspace, which stays in the cache while all rows pass.
#include "matmul/block_product.h"

#include <algorithm>
#include <string>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "matmul/gemm_kernels.h"
#include "matmul/packed_product.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// From so many rows on, unpacking pays.
constexpr int64_t kMinUnpackedRows = 12;

// The largest depth of a panel that is unpacked at once, and of rows that are multiplied with it
// before the next rows.
constexpr int64_t kMaxUnpackedDepth = 1536;
constexpr int64_t kUnpackedRowBlock = 96;

// Units for each thread, if there are enough, so that a thread on a slow core does fewer.
constexpr int64_t kBlockUnitsOfSlot = 8;

struct BlockDivision {
  int64_t panels = 0;
  int64_t unit_panels = 1;
  int64_t units = 0;
  int64_t slots = 1;
  int64_t part_depth = 0;   // of a panel that is unpacked; a multiple of a block
  int64_t slot_floats = 0;  // 0: nothing is unpacked
};

BlockDivision block_division_of(const BlockWeights& weights, int64_t rows, int64_t threads,
                                int64_t panel) {
  BlockDivision division;
  division.panels = divide_up(weights.columns, panel);
  const double flops = 2 * static_cast<double>(rows) * static_cast<double>(weights.columns) *
                       static_cast<double>(weights.depth);
  const auto worth = static_cast<int64_t>(flops / kGrainFlops) + 1;
  threads = std::clamp<int64_t>(threads, 1, worth);
  const int64_t wanted = threads == 1 ? 1 : std::min(kBlockUnitsOfSlot * threads, division.panels);
  division.unit_panels = divide_up(division.panels, wanted);
  division.units = divide_up(division.panels, division.unit_panels);
  division.slots = std::min(threads, division.units);
  if (rows < kMinUnpackedRows) return division;
  const int64_t most = std::max<int64_t>(kMaxUnpackedDepth / weights.block, 1);
  division.part_depth = std::min(most, weights.blocks()) * weights.block;
  division.slot_floats = std::min(division.part_depth, weights.depth) * panel;
  return division;
}

class BlockRun {
 public:
  BlockRun(const BlockWeights& weights, int64_t rows, const BlockDivision& division,
           const BlockOperands& operands)
      : weights_(weights),
        rows_(rows),
        division_(division),
        operands_(operands),
        gemm_(find_gemm_loops()),
        loops_(find_block_loops(weights.bits, weights.zeros)) {}

  void run_unit(int64_t unit, float* buffer) const {
    const int64_t first = unit * division_.unit_panels;
    const int64_t end = std::min(first + division_.unit_panels, division_.panels);
    for (int64_t panel = first; panel < end; ++panel) {
      if (division_.slot_floats == 0) {
        loops_.multiply(part_of(panel));
      } else {
        multiply_unpacked(part_of(panel), buffer);
      }
    }
  }

 private:
  BlockPart part_of(int64_t panel) const {
    const int64_t column = panel * gemm_.panel;
    const int64_t scales = column * weights_.blocks();
    const int64_t zero_bytes = weights_.zeros == BlockZeros::Bytes ? 1 : kFloatBytes;
    return {.left = operands_.left,
            .left_row_stride = weights_.depth,
            .rows = rows_,
            .words = operands_.words + column * weights_.words(),
            .scales = operands_.scales + scales,
            .zeros = static_cast<const char*>(operands_.zeros) +
                     (weights_.zeros == BlockZeros::None ? 0 : scales * zero_bytes),
            .block = weights_.block,
            .depth = weights_.depth,
            .columns = std::min(gemm_.panel, weights_.columns - column),
            .bias = operands_.bias == nullptr ? nullptr : operands_.bias + column,
            .to = operands_.to + column,
            .to_row_stride = weights_.columns};
  }

  void multiply_unpacked(const BlockPart& whole, float* buffer) const {
    for (int64_t done = 0; done < weights_.depth; done += division_.part_depth) {
      const int64_t depth = std::min(division_.part_depth, weights_.depth - done);
      BlockPart part = whole;
      const int64_t blocks = done / weights_.block;
      part.words += done * weights_.bits / 32 * gemm_.panel;
      part.scales += blocks * gemm_.panel;
      if (weights_.zeros != BlockZeros::None) {
        const int64_t bytes = weights_.zeros == BlockZeros::Bytes ? 1 : kFloatBytes;
        part.zeros = static_cast<const char*>(part.zeros) + blocks * gemm_.panel * bytes;
      }
      part.depth = depth;
      part.to = buffer;
      loops_.unpack(part);
      for (int64_t row = 0; row < rows_; row += kUnpackedRowBlock) {
        multiply_rows(whole, buffer, done, depth, row);
      }
    }
  }

  // A block of rows from `row` on by the part of the panel in `buffer`, from `done` on.
  void multiply_rows(const BlockPart& whole, const float* buffer, int64_t done, int64_t depth,
                     int64_t row) const {
    GemmBlock block = {.left = whole.left + row * weights_.depth + done,
                       .left_row_stride = weights_.depth,
                       .right = buffer,
                       .right_depth_stride = gemm_.panel,
                       .rows = std::min(kUnpackedRowBlock, rows_ - row),
                       .columns = whole.columns,
                       .depth = depth,
                       .to = whole.to + row * weights_.columns,
                       .to_row_stride = weights_.columns};
    if (done == 0) {
      block.epilogue.bias = whole.bias;
    } else {
      block.epilogue.addend = block.to;
      block.epilogue.addend_row_stride = weights_.columns;
      block.epilogue.addend_column_stride = 1;
    }
    gemm_.padded(block);
  }

  const BlockWeights& weights_;
  int64_t rows_;
  const BlockDivision& division_;
  const BlockOperands& operands_;
  GemmLoops gemm_;
  BlockLoops loops_;
};

// A tensor [columns, depth] of 4 bytes each.
PanelSource rows_of(const BlockWeights& weights, int64_t depth) {
  return {.depth = depth, .columns = weights.columns, .depth_stride = 1, .column_stride = depth};
}

// The zero points of some panels as bytes; `from` has those of a column in whole bytes.
void pack_zero_bytes(const BlockWeights& weights, int64_t panel, int64_t begin, int64_t end,
                     const uint8_t* from, uint8_t* to) {
  const int64_t blocks = weights.blocks();
  const int64_t column_bytes = divide_up(blocks * weights.bits, 8);
  const int64_t mask = (int64_t{1} << weights.bits) - 1;
  for (int64_t index = begin; index < end; ++index) {
    for (int64_t block = 0; block < blocks; ++block) {
      uint8_t* const row = to + (index * blocks + block) * panel;
      const int64_t bit = block * weights.bits;
      for (int64_t lane = 0; lane < panel; ++lane) {
        const int64_t column = index * panel + lane;
        const int64_t byte = column < weights.columns ? from[column * column_bytes + bit / 8] : 0;
        row[lane] = static_cast<uint8_t>((byte >> (bit % 8)) & mask);
      }
    }
  }
}

}  // namespace

plugin::Pack block_words_pack(const BlockWeights& weights) {
  return panels_pack(rows_of(weights, weights.words()));
}

plugin::Pack block_scales_pack(const BlockWeights& weights) {
  return panels_pack(rows_of(weights, weights.blocks()));
}

plugin::Pack block_zeros_pack(const BlockWeights& weights) {
  if (weights.zeros == BlockZeros::Numbers) return block_scales_pack(weights);
  const int64_t panel = find_gemm_loops().panel;
  const int64_t panels = divide_up(weights.columns, panel);
  plugin::Pack pack;
  pack.id = "zeros" + std::to_string(panel) + "_" + std::to_string(weights.bits) + "_" +
            std::to_string(weights.blocks());
  pack.bytes = panels * panel * weights.blocks();
  pack.pack = [weights, panel, panels](RunContext& context, const Buffer& from, void* to) {
    context.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
      pack_zero_bytes(weights, panel, begin, end, from.as<const uint8_t>(),
                      static_cast<uint8_t*>(to));
    });
  };
  return pack;
}

int64_t block_product_workspace_bytes(const BlockWeights& weights, int64_t rows, int64_t threads) {
  const BlockDivision division = block_division_of(weights, rows, threads, find_gemm_loops().panel);
  return division.slots * division.slot_floats * kFloatBytes;
}

void run_block_product(RunContext& context, const BlockWeights& weights, int64_t rows,
                       int64_t threads, const BlockOperands& operands, void* workspace) {
  const BlockDivision division = block_division_of(weights, rows, threads, find_gemm_loops().panel);
  const BlockRun run(weights, rows, division, operands);
  SharedParts units(division.units, division.slots);
  context.parallel_for(division.slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* const buffer = static_cast<float*>(workspace) + slot * division.slot_floats;
      units.for_each(slot, [&](int64_t unit) { run.run_unit(unit, buffer); });
    }
  });
}

}  // namespace tessera::native
