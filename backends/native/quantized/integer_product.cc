// A unit of work is a block of rows of one product by some panels. The rows of a block stay in the
// cache of a core while the panels pass; integer_left.h says where they are.
#include "quantized/integer_product.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/divide_up.h"
#include "base/grain.h"
#include "base/shared_parts.h"
#include "quantized/integer_left.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// The largest size of a block of rows, which leaves room for two panels in the second-level cache,
// and its least and largest number of rows: multiples of what the loops hold in registers.
constexpr int64_t kLeftBlockBytes = 192 * 1024;
constexpr int64_t kMinLeftRows = 12;
constexpr int64_t kMaxLeftRows = 384;

// Units for each thread, if there are enough, so that a thread on a slow core does fewer.
constexpr int64_t kUnitsOfThread = 4;

constexpr int64_t kLineBytes = 64;

struct ProductDivision {
  int64_t rows = 0;    // of a block
  int64_t blocks = 0;  // of all products
  int64_t blocks_of_product = 0;
  int64_t panels = 0;
  int64_t unit_panels = 0;
  int64_t units_of_block = 0;
  int64_t slots = 1;

  int64_t units() const { return blocks * units_of_block; }
  // What LeftRows needs for a block, and the sums of its rows.
  int64_t slot_bytes(const LeftAccess& left) const {
    const int64_t sums = rows * static_cast<int64_t>(sizeof(int32_t));
    return divide_up(left.block_bytes(rows) + sums, kLineBytes) * kLineBytes;
  }
};

ProductDivision product_division(const IntegerProduct& product, const IntegerLoops& loops,
                                 const LeftAccess& left, int64_t threads) {
  ProductDivision division;
  division.panels = divide_up(product.columns, loops.panel);
  const auto worth = static_cast<int64_t>(product.flops() / kGrainFlops) + 1;
  threads = std::clamp<int64_t>(threads, 1, worth);
  const int64_t fitting = kLeftBlockBytes / (left.row_bytes() + 1);
  int64_t blocks = divide_up(product.rows, std::clamp(fitting, kMinLeftRows, kMaxLeftRows));
  const int64_t wanted = threads == 1 ? 1 : kUnitsOfThread * threads;
  if (product.count * blocks * division.panels < wanted) {
    const int64_t most = divide_up(product.rows, 2 * kIntegerRowUnit);
    blocks = std::clamp(divide_up(wanted, product.count * division.panels), blocks,
                        std::max(most, blocks));
  }
  division.rows = divide_up(divide_up(product.rows, blocks), kIntegerRowUnit) * kIntegerRowUnit;
  division.blocks_of_product = divide_up(product.rows, division.rows);
  division.blocks = product.count * division.blocks_of_product;
  const int64_t units = std::clamp<int64_t>(divide_up(wanted, division.blocks), 1, division.panels);
  division.unit_panels = divide_up(division.panels, units);
  division.units_of_block = divide_up(division.panels, division.unit_panels);
  division.slots = std::min(threads, std::max<int64_t>(division.units(), 1));
  return division;
}

class ProductRun {
 public:
  ProductRun(const IntegerProduct& product, const IntegerLoops& loops,
             const ProductDivision& division, const IntegerOperands& operands, const LeftRows& left)
      : product_(product),
        loops_(loops),
        division_(division),
        operands_(operands),
        left_(left),
        panels_(right_panels(
            {.depth = product.depth, .columns = product.columns, .runs = left.runs()}, loops)) {}

  void run_slot(int64_t slot, SharedParts& units, uint8_t* memory) const {
    auto* const sums = reinterpret_cast<int32_t*>(memory + left_.block_bytes(division_.rows));
    const uint8_t* const* found = nullptr;
    int64_t block_of_found = -1;
    units.for_each(slot, [&](int64_t unit) {
      const int64_t block = unit / division_.units_of_block;
      const int64_t product = block / division_.blocks_of_product;
      const int64_t row = block % division_.blocks_of_product * division_.rows;
      const int64_t rows = std::min(division_.rows, product_.rows - row);
      if (block_of_found != block) {
        found = left_.find(product, row, rows, memory);
        if (operands_.epilogue.right_zeros != nullptr) left_.sum(found, rows, sums);
      }
      block_of_found = block;
      const int64_t panel = unit % division_.units_of_block * division_.unit_panels;
      const int64_t end = std::min(panel + division_.unit_panels, division_.panels);
      for (int64_t each = panel; each < end; ++each) {
        multiply(product, row, rows, each, found, sums);
      }
    });
  }

 private:
  int64_t right_matrix(int64_t product) const {
    return product_.has_batch ? product_.batch.offsets_of(product).right
                              : product * product_.right_stride;
  }

  void multiply(int64_t product, int64_t row, int64_t rows, int64_t panel,
                const uint8_t* const* found, const int32_t* sums) const {
    const int64_t column = panel * loops_.panel;
    const int64_t matrix = right_matrix(product);
    const auto* const packed = static_cast<const int8_t*>(operands_.right) +
                               matrix * panels_.matrix_bytes() + panel * panels_.panel_bytes();
    const int64_t at = product * product_.to_stride + row * product_.to_row_stride + column;
    IntegerBlock block = {.left = found,
                          .runs = left_.runs(),
                          .steps = left_.run_steps(),
                          .right = packed + loops_.panel * static_cast<int64_t>(sizeof(int32_t)),
                          .rows = rows,
                          .columns = std::min(loops_.panel, product_.columns - column),
                          .to = static_cast<uint8_t*>(operands_.to) + at * operands_.to_bytes,
                          .to_row_stride = product_.to_row_stride,
                          .epilogue = operands_.epilogue};
    const int64_t first = matrix * panels_.padded_columns() + column;
    IntegerEpilogue& epilogue = block.epilogue;
    epilogue.terms += first;
    if (epilogue.factors != nullptr) epilogue.factors += first;
    if (epilogue.offsets != nullptr) epilogue.offsets += first;
    if (epilogue.exact.scales != nullptr) epilogue.exact.scales += first;
    if (epilogue.right_zeros != nullptr) {
      epilogue.right_zeros += first;
      epilogue.row_sums = sums;
    }
    loops_.multiply(block);
  }

  const IntegerProduct& product_;
  const IntegerLoops& loops_;
  const ProductDivision& division_;
  const IntegerOperands& operands_;
  const LeftRows& left_;
  RightPanels panels_;
};

}  // namespace

// --- The right side ------------------------------------------------------------------------------

namespace {

class RightReader {
 public:
  RightReader(const RightSource& source, const void* from)
      : source_(source),
        from_(static_cast<const uint8_t*>(from)),
        channels_(std::max<int64_t>(source.depth / source.parts, 1)),
        flip_(source.is_signed ? 0 : 0x80) {}

  int8_t at(int64_t matrix, int64_t depth, int64_t column) const {
    const int64_t part = depth / channels_;
    const int64_t position = matrix * source_.matrix_stride + column * source_.column_stride +
                             (depth - part * channels_) * source_.depth_stride + part;
    return static_cast<int8_t>(from_[position] ^ flip_);
  }

 private:
  const RightSource& source_;
  const uint8_t* from_;
  int64_t channels_;  // of a part
  unsigned flip_;
};

void pack_panel(const RightSource& source, const RightReader& reader, const RightPanels& panels,
                int64_t matrix, int64_t column, int8_t* to) {
  const int64_t columns = std::min(panels.panel, source.columns - column);
  int8_t* const elements = to + panels.panel * static_cast<int64_t>(sizeof(int32_t));
  std::memset(to, 0, static_cast<size_t>(panels.panel_bytes()));
  const int64_t run_depth = std::max<int64_t>(source.depth / source.runs, 1);
  const int64_t run_steps = panels.steps / source.runs;
  for (int64_t lane = 0; lane < columns; ++lane) {
    int32_t sum = 0;
    for (int64_t depth = 0; depth < source.depth; ++depth) {
      const int8_t element = reader.at(matrix, depth, column + lane);
      sum += element;
      const int64_t run = depth / run_depth;
      const int64_t in_run = depth - run * run_depth;
      const int64_t step = run * run_steps + in_run / panels.unit;
      elements[(step * panels.panel + lane) * panels.unit + in_run % panels.unit] = element;
    }
    std::memcpy(to + lane * static_cast<int64_t>(sizeof(sum)), &sum, sizeof(sum));
  }
}

// The columns of a panel as they are in memory, which runs that pack their right side need to be
// fast: no parts, no runs.
class PlainPanel {
 public:
  PlainPanel(const RightSource& source, const void* from, const RightPanels& panels, int64_t matrix,
             int64_t column)
      : source_(source),
        panels_(panels),
        from_(static_cast<const uint8_t*>(from) + matrix * source.matrix_stride +
              column * source.column_stride),
        columns_(std::min(panels.panel, source.columns - column)),
        flip_(source.is_signed ? 0 : 0x80) {}

  void pack(int8_t* to) const {
    std::memset(to, 0, static_cast<size_t>(panels_.panel_bytes()));
    int32_t sums[kMaxPanel] = {};
    int8_t* const elements = to + panels_.panel * static_cast<int64_t>(sizeof(int32_t));
    source_.depth_stride == 1 ? by_column(elements, sums) : by_row(elements, sums);
    std::memcpy(to, sums, static_cast<size_t>(panels_.panel) * sizeof(int32_t));
  }

  static constexpr int64_t kMaxPanel = 64;

 private:
  int8_t element(const uint8_t* from) const { return static_cast<int8_t>(*from ^ flip_); }

  void by_row(int8_t* elements, int32_t* sums) const {
    const uint8_t* row = from_;
    for (int64_t depth = 0; depth < source_.depth; ++depth, row += source_.depth_stride) {
      int8_t* const to =
          elements + depth / panels_.unit * panels_.panel * panels_.unit + depth % panels_.unit;
      for (int64_t lane = 0; lane < columns_; ++lane) {
        const int8_t each = element(row + lane * source_.column_stride);
        to[lane * panels_.unit] = each;
        sums[lane] += each;
      }
    }
  }

  void by_column(int8_t* elements, int32_t* sums) const {
    const int64_t step_bytes = panels_.panel * panels_.unit;
    for (int64_t lane = 0; lane < columns_; ++lane) {
      const uint8_t* from = from_ + lane * source_.column_stride;
      int8_t* to = elements + lane * panels_.unit;
      int32_t sum = 0;
      for (int64_t left = source_.depth; left > 0; left -= panels_.unit, to += step_bytes) {
        const int64_t count = std::min(left, panels_.unit);
        for (int64_t index = 0; index < count; ++index, ++from) {
          to[index] = element(from);
          sum += to[index];
        }
      }
      sums[lane] = sum;
    }
  }

  const RightSource& source_;
  const RightPanels& panels_;
  const uint8_t* from_;
  int64_t columns_;
  unsigned flip_;
};

}  // namespace

bool has_small_weights(const plugin::Value& weights) {
  if (weights.type().data_type != TESSERA_INT8 || weights.constant() == nullptr) return false;
  // Two neighbours of at most 64 times 255 are an int16.
  constexpr int8_t kLargest = 64;
  return std::ranges::all_of(weights.constant_as<int8_t>(), [](int8_t element) {
    return element >= -kLargest && element <= kLargest;
  });
}

RightPanels right_panels(const RightSource& source, const IntegerLoops& loops) {
  return {.count = source.count,
          .columns = source.columns,
          .panel = loops.panel,
          .panels = divide_up(source.columns, loops.panel),
          .steps = source.runs * divide_up(source.depth / source.runs, loops.unit()),
          .unit = loops.unit()};
}

void pack_right(const RightSource& source, const IntegerLoops& loops, int64_t first, int64_t end,
                const void* from, void* to) {
  const RightPanels panels = right_panels(source, loops);
  const RightReader reader(source, from);
  const bool is_plain =
      source.parts == 1 && source.runs == 1 && panels.panel <= PlainPanel::kMaxPanel;
  for (int64_t matrix = first; matrix < end; ++matrix) {
    auto* const matrix_to = static_cast<int8_t*>(to) + matrix * panels.matrix_bytes();
    for (int64_t panel = 0; panel < panels.panels; ++panel) {
      const int64_t column = panel * panels.panel;
      int8_t* const panel_to = matrix_to + panel * panels.panel_bytes();
      if (is_plain) {
        PlainPanel(source, from, panels, matrix, column).pack(panel_to);
      } else {
        pack_panel(source, reader, panels, matrix, column, panel_to);
      }
    }
  }
}

plugin::Pack right_pack(const RightSource& source, const IntegerLoops& loops) {
  const RightPanels panels = right_panels(source, loops);
  plugin::Pack pack;
  pack.id = "bytes" + std::to_string(panels.panel) + "x" + std::to_string(panels.unit) + "_" +
            std::to_string(source.count) + "_" + std::to_string(source.depth) + "_" +
            std::to_string(source.parts) + "_" + std::to_string(source.runs);
  if (source.depth_stride == 1 && source.column_stride != 1) pack.id += "_turned";
  pack.bytes = panels.bytes();
  pack.pack = [source, loops](RunContext&, const Buffer& from, void* to) {
    pack_right(source, loops, 0, source.count, from.data, to);
  };
  return pack;
}

// --- Running -------------------------------------------------------------------------------------

int64_t integer_product_workspace(const IntegerProduct& product, const IntegerLoops& loops,
                                  bool is_left_signed, int64_t threads) {
  const LeftAccess left(product, loops, is_left_signed);
  const ProductDivision division = product_division(product, loops, left, threads);
  return left.shared_bytes() + division.slots * division.slot_bytes(left);
}

void run_integer_product(RunContext& context, const IntegerProduct& product,
                         const IntegerLoops& loops, int64_t threads,
                         const IntegerOperands& operands, void* workspace) {
  if (product.count * product.rows * product.columns == 0) return;
  auto* const shared = static_cast<uint8_t*>(workspace);
  const LeftRows left(product, loops, operands.left_elements, operands.left, shared);
  left.prepare(context);
  const ProductDivision division = product_division(product, loops, left, threads);
  const ProductRun run(product, loops, division, operands, left);
  uint8_t* const slots = shared + left.shared_bytes();
  const int64_t slot_bytes = division.slot_bytes(left);
  SharedParts units(division.units(), division.slots);
  context.parallel_for(division.slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      run.run_slot(slot, units, slots + slot * slot_bytes);
    }
  });
}

}  // namespace tessera::native
