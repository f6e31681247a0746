// A unit of work is a block of rows by some panels. The rows of a block stay in the cache of a core
// while the panels pass, each of which is fetched while the one before it is multiplied.
#include "matmul/packed_product.h"

#include <algorithm>
#include <string>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "matmul/panel_copy.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// The largest size of a block of rows, which leaves room for two panels in the second-level cache,
// and its least and largest number of rows: multiples of what the loops hold in registers.
constexpr int64_t kBlockBytes = 256 * 1024;
constexpr int64_t kMinBlockRows = 48;
constexpr int64_t kMaxBlockRows = 384;

// Deeper sums are computed in parts, because a panel would not stay in the cache while the rows of
// a block pass.
constexpr int64_t kMaxDepth = 1536;

// Units for each thread, if there are enough, so that a thread on a slow core does fewer.
constexpr int64_t kUnitsOfSlot = 4;

struct Division {
  int64_t rows = 0;  // of a block
  int64_t blocks = 0;
  int64_t panels = 0;
  int64_t unit_panels = 0;
  int64_t units_of_block = 0;
  int64_t depth = 0;  // of a part
  int64_t slots = 1;

  int64_t units() const { return blocks * units_of_block; }
};

Division division_of(const PackedProduct& product, int64_t threads, int64_t panel) {
  Division division;
  division.panels = divide_up(product.columns, panel);
  const auto worth = static_cast<int64_t>(product.flops() / kGrainFlops) + 1;
  threads = std::clamp<int64_t>(threads, 1, worth);
  const int64_t fitting = kBlockBytes / (product.depth * kFloatBytes + 1);
  division.blocks = divide_up(product.rows, std::clamp(fitting, kMinBlockRows, kMaxBlockRows));
  const int64_t wanted = threads == 1 ? 1 : kUnitsOfSlot * threads;
  if (division.blocks * division.panels < wanted) {
    const int64_t most = divide_up(product.rows, 2 * kGemmRowUnit);
    division.blocks = std::clamp(divide_up(wanted, division.panels), division.blocks,
                                 std::max(most, division.blocks));
  }
  division.rows = divide_up(divide_up(product.rows, division.blocks), kGemmRowUnit) * kGemmRowUnit;
  division.blocks = divide_up(product.rows, division.rows);
  const int64_t units = std::clamp<int64_t>(divide_up(wanted, division.blocks), 1, division.panels);
  division.unit_panels = divide_up(division.panels, units);
  division.units_of_block = divide_up(division.panels, division.unit_panels);
  const int64_t parts = std::max<int64_t>(divide_up(product.depth, kMaxDepth), 1);
  division.depth = divide_up(product.depth, parts);
  division.slots = std::min(threads, division.units());
  return division;
}

class PackedRun {
 public:
  PackedRun(const PackedProduct& product, const Division& division, const GemmLoops& loops,
            const PackedOperands& operands)
      : product_(product), division_(division), loops_(loops), operands_(operands) {}

  // `buffer` has room for the rows of a block, if they are gathered.
  void run_slot(int64_t slot, SharedParts& units, float* buffer) const {
    int64_t gathered = -1;  // the block in the buffer
    units.for_each(slot, [&](int64_t unit) {
      const int64_t block = unit / division_.units_of_block;
      const int64_t row = block * division_.rows;
      const int64_t rows = std::min(division_.rows, product_.rows - row);
      if (product_.is_gathered && gathered != block) {
        product_.gathered.gather(operands_.left, row, rows, buffer);
      }
      gathered = block;
      const int64_t panel = unit % division_.units_of_block * division_.unit_panels;
      const int64_t end = std::min(panel + division_.unit_panels, division_.panels);
      multiply(row, rows, panel, end, buffer);
    });
  }

 private:
  int64_t to_row_stride() const {
    return product_.to_row_stride == 0 ? product_.columns : product_.to_row_stride;
  }

  void multiply(int64_t row, int64_t rows, int64_t first, int64_t end, const float* buffer) const {
    int64_t done = 0;
    // Empty sums are zeros, to which the epilogue is applied too.
    do {
      for (int64_t panel = first; panel < end; ++panel) {
        multiply_panel(row, rows, panel, done, panel + 1 < end ? panel + 1 : first, buffer);
      }
      done += division_.depth;
    } while (done < product_.depth);
  }

  // The part of the sums from `done` on. `next` is the panel that follows.
  void multiply_panel(int64_t row, int64_t rows, int64_t panel, int64_t done, int64_t next,
                      const float* buffer) const {
    const int64_t column = panel * loops_.panel;
    const auto weights_of = [&](int64_t index) {
      return operands_.right + (index * product_.depth + done) * loops_.panel;
    };
    GemmBlock block = {.right = weights_of(panel),
                       .right_depth_stride = loops_.panel,
                       .ahead = weights_of(next),
                       .rows = rows,
                       .columns = std::min(loops_.panel, product_.columns - column),
                       .depth = std::min(division_.depth, product_.depth - done),
                       .to = operands_.to + row * to_row_stride() + column,
                       .to_row_stride = to_row_stride(),
                       .epilogue = operands_.epilogue};
    if (product_.is_gathered) {
      block.left = buffer + done;
      block.left_row_stride = product_.depth;
    } else {
      block.left_row_stride = product_.left_row_stride;
      block.left_depth_stride = product_.left_depth_stride;
      block.left = operands_.left + row * block.left_row_stride + done * block.left_depth_stride;
    }
    // A panel that is used again is in the cache.
    if (next == panel) block.ahead = nullptr;
    GemmEpilogue& epilogue = block.epilogue;
    if (done + block.depth < product_.depth) epilogue.activation = {};
    if (done > 0) {
      // The first part has added everything else.
      epilogue.bias = nullptr;
      epilogue.addend = block.to;
      epilogue.beta = 1;
      epilogue.addend_row_stride = to_row_stride();
      epilogue.addend_column_stride = 1;
    } else {
      if (epilogue.bias != nullptr) epilogue.bias += column;
      if (epilogue.addend != nullptr) {
        epilogue.addend +=
            row * epilogue.addend_row_stride + column * epilogue.addend_column_stride;
      }
    }
    loops_.padded(block);
  }

  const PackedProduct& product_;
  const Division& division_;
  const GemmLoops& loops_;
  const PackedOperands& operands_;
};

int64_t slot_floats(const PackedProduct& product, const Division& division) {
  return product.is_gathered ? division.rows * product.depth : 0;
}

}  // namespace

void PatchRows::gather(const float* from, int64_t first, int64_t count, float* to) const {
  const int64_t line = columns.input * channels;
  for (int64_t row = first; row < first + count; ++row) {
    const int64_t column = row % columns.output;
    const int64_t output_line = row / columns.output;
    const int64_t image = output_line / rows.output;
    const int64_t top = output_line % rows.output * rows.stride - rows.pad_begin;
    const int64_t left = column * columns.stride - columns.pad_begin;
    // Windows may lie in the padding as a whole.
    const plugin::TapRange range = plugin::taps_inside(columns, column);
    const int64_t begin = std::min(range.begin, columns.kernel);
    const int64_t end = std::clamp(range.end, begin, columns.kernel);
    for (int64_t tap = 0; tap < rows.kernel; ++tap, to += columns.kernel * channels) {
      const int64_t input_row = top + tap * rows.dilation;
      if (input_row < 0 || input_row >= rows.input) {
        std::fill_n(to, columns.kernel * channels, 0.0F);
        continue;
      }
      const float* pixels = from + (image * rows.input + input_row) * line + left * channels;
      std::fill_n(to, begin * channels, 0.0F);
      if (columns.dilation == 1) {
        std::copy_n(pixels + begin * channels, (end - begin) * channels, to + begin * channels);
      } else {
        for (int64_t each = begin; each < end; ++each) {
          std::copy_n(pixels + each * columns.dilation * channels, channels, to + each * channels);
        }
      }
      std::fill_n(to + end * channels, (columns.kernel - end) * channels, 0.0F);
    }
  }
}

int64_t packed_product_workspace_bytes(const PackedProduct& product, int64_t threads) {
  const Division division = division_of(product, threads, find_gemm_loops().panel);
  return division.slots * slot_floats(product, division) * kFloatBytes;
}

void run_packed_product(RunContext& context, const PackedProduct& product, int64_t threads,
                        const PackedOperands& operands, void* workspace) {
  const GemmLoops loops = find_gemm_loops();
  const Division division = division_of(product, threads, loops.panel);
  const PackedRun run(product, division, loops, operands);
  SharedParts units(division.units(), std::max<int64_t>(division.slots, 1));
  context.parallel_for(division.slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* buffer = workspace == nullptr
                          ? nullptr
                          : static_cast<float*>(workspace) + slot * slot_floats(product, division);
      run.run_slot(slot, units, buffer);
    }
  });
}

int64_t packed_floats(const PanelSource& source) {
  const int64_t panel = find_gemm_loops().panel;
  return divide_up(source.columns, panel) * panel * source.depth;
}

void pack_panels(RunContext& context, const PanelSource& source, const float* from, float* to) {
  if (source.depth * source.columns == 0) return;
  const PanelCopy copy(source);
  context.parallel_for(copy.units(), 1,
                       [&](int64_t begin, int64_t end) { copy.run(begin, end, from, to); });
}

plugin::Pack panels_pack(const PanelSource& source) {
  const bool is_transposed = source.depth_stride == 1 && source.column_stride != 1;
  plugin::Pack pack;
  pack.id = "panels" + std::to_string(find_gemm_loops().panel) + (is_transposed ? "_turned" : "") +
            "_" + std::to_string(source.depth);
  if (source.parts > 1) pack.id.append("_").append(std::to_string(source.parts));
  pack.bytes = packed_floats(source) * kFloatBytes;
  pack.pack = [source](RunContext& context, const Buffer& from, void* to) {
    pack_panels(context, source, from.as<const float>(), static_cast<float*>(to));
  };
  return pack;
}

}  // namespace tessera::native
