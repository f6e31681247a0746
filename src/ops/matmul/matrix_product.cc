#include "ops/matmul/matrix_product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "base/threads/parallel_slots.h"

namespace tessera::ops {
namespace {

// The tile of the sums that the innermost loops compute.
constexpr int64_t kTileRows = 4;
constexpr int64_t kTileColumns = 16;
// The block that one task computes, kBlockDepth terms of the sums at a time, so that its working
// set (about 0.6 MB) fits the L2 cache.
constexpr int64_t kBlockRows = 64;
constexpr int64_t kBlockColumns = 192;
constexpr int64_t kBlockDepth = 256;
// Below this number of rows, packing costs more than it saves (depthwise convolutions, vectors).
constexpr int64_t kMaxUnpackedRows = 2;
// Tasks with less work than this are not worth a thread of their own.
constexpr int64_t kTaskWork = 32768;

int64_t ceil_to(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The state and the packing buffers of one task.
template <class Sum>
struct Panels {
  std::array<Sum, kBlockRows * kBlockDepth> left;
  std::array<Sum, kBlockColumns * kBlockDepth> right;
  std::array<Sum, kBlockRows * kBlockColumns> sums;
  std::array<Sum, std::max(kBlockColumns, kBlockDepth)> line;
};

// A range of rows, of columns, or of terms of the sum.
struct Range {
  int64_t begin = 0;
  int64_t count = 0;
};

// Packs a block of an operand into `panel`: strips of `width` rows (columns), stored term by term.
// Lanes beyond the block are zero; their sums are never stored.
template <class Sum>
void pack(const MatrixOperand<Sum>& operand, int64_t product, Range lanes, Range depth,
          int64_t width, Sum* line, Sum* panel) {
  const auto offset_of = [&](int64_t lane, int64_t step) {
    return (lane / width * depth.count + step) * width + lane % width;
  };
  if (operand.runs_along_depth) {
    for (int64_t lane = 0; lane < lanes.count; ++lane) {
      operand.read(product, lanes.begin + lane, depth.begin, depth.count, line);
      Sum* target = panel + offset_of(lane, 0);
      for (int64_t step = 0; step < depth.count; ++step) target[step * width] = line[step];
    }
  } else {
    for (int64_t step = 0; step < depth.count; ++step) {
      operand.read(product, depth.begin + step, lanes.begin, lanes.count, line);
      for (int64_t lane = 0; lane < lanes.count; lane += width) {
        const int64_t count = std::min(width, lanes.count - lane);
        std::copy_n(line + lane, count, panel + offset_of(lane, step));
      }
    }
  }
  for (int64_t lane = lanes.count; lane < ceil_to(lanes.count, width); ++lane) {
    for (int64_t step = 0; step < depth.count; ++step) panel[offset_of(lane, step)] = Sum{0};
  }
}

// Adds the product of two strips to a tile of the sums, whose rows are kBlockColumns apart. Its
// columns are computed two vectors at a time, so that the sums stay in registers. Each sum adds its
// terms in order, so vectors of every width give the same bits.
template <size_t kVectorBytes, class Sum>
[[gnu::always_inline]] inline void add_product(const Sum* left, const Sum* right, int64_t depth,
                                               Sum* sums) {
  // As elements lie in memory.
  using Vector [[gnu::vector_size(kVectorBytes), gnu::aligned(alignof(Sum)), gnu::may_alias]] = Sum;
  constexpr int64_t kVectors = 2;
  constexpr auto kLanes = static_cast<int64_t>(kVectorBytes / sizeof(Sum));
  static_assert(kTileColumns % (kVectors * kLanes) == 0);
  for (int64_t column = 0; column < kTileColumns; column += kVectors * kLanes) {
    Sum* const place = sums + column;
    Vector tile[kTileRows][kVectors];
    for (int64_t row = 0; row < kTileRows; ++row) {
      for (int64_t at = 0; at < kVectors; ++at) {
        tile[row][at] = *reinterpret_cast<const Vector*>(place + row * kBlockColumns + at * kLanes);
      }
    }
    for (int64_t step = 0; step < depth; ++step) {
      const Sum* const columns = right + step * kTileColumns + column;
      const auto first = *reinterpret_cast<const Vector*>(columns);
      const auto second = *reinterpret_cast<const Vector*>(columns + kLanes);
      for (int64_t row = 0; row < kTileRows; ++row) {
        const Sum factor = left[step * kTileRows + row];
        tile[row][0] += factor * first;
        tile[row][1] += factor * second;
      }
    }
    for (int64_t row = 0; row < kTileRows; ++row) {
      for (int64_t at = 0; at < kVectors; ++at) {
        *reinterpret_cast<Vector*>(place + row * kBlockColumns + at * kLanes) = tile[row][at];
      }
    }
  }
}

// Most of the time of the reference is spent here. Vectors are as wide as the processor's: the
// compiler splits wider ones in memory, which takes eighty times as long. So there is a function
// for each width, and none is compiled for several instruction sets.
template <class Sum>
using MultiplyTile = void (*)(const Sum*, const Sum*, int64_t, Sum*);

template <class Sum>
void multiply_tile_128(const Sum* left, const Sum* right, int64_t depth, Sum* sums) {
  add_product<16>(left, right, depth, sums);
}

#if defined(__x86_64__)
template <class Sum>
[[gnu::target("avx2")]] void multiply_tile_256(const Sum* left, const Sum* right, int64_t depth,
                                               Sum* sums) {
  add_product<32>(left, right, depth, sums);
}

template <class Sum>
[[gnu::target("avx512f,avx512dq")]] void multiply_tile_512(const Sum* left, const Sum* right,
                                                           int64_t depth, Sum* sums) {
  add_product<64>(left, right, depth, sums);
}
#endif

// The function for the widest vectors of this processor.
template <class Sum>
MultiplyTile<Sum> choose_multiply_tile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return multiply_tile_512<Sum>;
  }
  if (__builtin_cpu_supports("avx2")) return multiply_tile_256<Sum>;
#endif
  return multiply_tile_128<Sum>;
}

template <class Sum>
void multiply_block(const MatrixProduct<Sum>& problem, int64_t product, Range rows, Range columns,
                    Panels<Sum>& panels) {
  const MultiplyTile<Sum> multiply_tile = choose_multiply_tile<Sum>();
  std::fill(panels.sums.begin(), panels.sums.end(), Sum{0});
  for (int64_t begin = 0; begin < problem.depth; begin += kBlockDepth) {
    const Range depth = {begin, std::min(kBlockDepth, problem.depth - begin)};
    pack(problem.left, product, rows, depth, kTileRows, panels.line.data(), panels.left.data());
    pack(problem.right, product, columns, depth, kTileColumns, panels.line.data(),
         panels.right.data());
    for (int64_t column = 0; column < columns.count; column += kTileColumns) {
      for (int64_t row = 0; row < rows.count; row += kTileRows) {
        multiply_tile(panels.left.data() + row * depth.count,
                      panels.right.data() + column * depth.count, depth.count,
                      panels.sums.data() + row * kBlockColumns + column);
      }
    }
  }
  for (int64_t row = 0; row < rows.count; ++row) {
    problem.store(product, rows.begin + row, columns.begin, columns.count,
                  panels.sums.data() + row * kBlockColumns);
  }
}

// Computes four independent sums to hide the latency of additions.
template <class Sum>
Sum dot(const Sum* left, const Sum* right, int64_t count) {
  std::array<Sum, 4> sums = {};
  int64_t index = 0;
  for (; index + 4 <= count; index += 4) {
    for (size_t lane = 0; lane < 4; ++lane) {
      sums[lane] +=
          left[index + static_cast<int64_t>(lane)] * right[index + static_cast<int64_t>(lane)];
    }
  }
  for (; index < count; ++index) sums[0] += left[index] * right[index];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Reads elements of a row of the left matrix in either line direction.
template <class Sum>
void read_left_row(const MatrixOperand<Sum>& left, int64_t product, int64_t row, Range depth,
                   Sum* target) {
  if (left.runs_along_depth) {
    left.read(product, row, depth.begin, depth.count, target);
    return;
  }
  for (int64_t step = 0; step < depth.count; ++step) {
    left.read(product, depth.begin + step, row, 1, target + step);
  }
}

// Computes a block of at most kMaxUnpackedRows rows without packing: each element of the right
// matrix is used too few times.
template <class Sum>
void multiply_few_rows(const MatrixProduct<Sum>& problem, int64_t product, Range columns,
                       Panels<Sum>& panels) {
  std::fill(panels.sums.begin(), panels.sums.begin() + kMaxUnpackedRows * kBlockColumns, Sum{0});
  Sum* line = panels.line.data();
  for (int64_t begin = 0; begin < problem.depth; begin += kBlockDepth) {
    const Range depth = {begin, std::min(kBlockDepth, problem.depth - begin)};
    for (int64_t row = 0; row < problem.rows; ++row) {
      read_left_row(problem.left, product, row, depth, panels.left.data() + row * kBlockDepth);
    }
    const bool is_dot = problem.right.runs_along_depth;
    for (int64_t index = 0; index < (is_dot ? columns.count : depth.count); ++index) {
      if (is_dot) {
        problem.right.read(product, columns.begin + index, depth.begin, depth.count, line);
      } else {
        problem.right.read(product, depth.begin + index, columns.begin, columns.count, line);
      }
      for (int64_t row = 0; row < problem.rows; ++row) {
        const Sum* left = panels.left.data() + row * kBlockDepth;
        Sum* sums = panels.sums.data() + row * kBlockColumns;
        if (is_dot) {
          sums[index] += dot(left, line, depth.count);
        } else {
          const Sum factor = left[index];
          for (int64_t column = 0; column < columns.count; ++column) {
            sums[column] += factor * line[column];
          }
        }
      }
    }
  }
  for (int64_t row = 0; row < problem.rows; ++row) {
    problem.store(product, row, columns.begin, columns.count,
                  panels.sums.data() + row * kBlockColumns);
  }
}

}  // namespace

template <class Sum>
void multiply_matrices(const KernelCall& call, const MatrixProduct<Sum>& problem) {
  if (problem.count == 0 || problem.rows == 0 || problem.columns == 0) return;
  const int64_t row_blocks = (problem.rows - 1) / kBlockRows + 1;
  const int64_t column_blocks = (problem.columns - 1) / kBlockColumns + 1;
  const int64_t block_work = std::min(problem.rows, kBlockRows) *
                             std::min(problem.columns, kBlockColumns) *
                             std::clamp<int64_t>(problem.depth, 1, kTaskWork);
  const int64_t grain = kTaskWork / block_work + 1;
  const int64_t tasks = problem.count * row_blocks * column_blocks;
  const int64_t slots = slot_count(call.pool, tasks, grain);
  std::pmr::vector<Panels<Sum>> panels(static_cast<size_t>(slots), &call.scratch);
  parallel_for_in_slots(call.pool, tasks, grain, [&](int64_t slot, int64_t begin, int64_t end) {
    Panels<Sum>& own = panels[static_cast<size_t>(slot)];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t product = task / (row_blocks * column_blocks);
      const int64_t row = task / column_blocks % row_blocks * kBlockRows;
      const int64_t column = task % column_blocks * kBlockColumns;
      const Range rows = {row, std::min(kBlockRows, problem.rows - row)};
      const Range columns = {column, std::min(kBlockColumns, problem.columns - column)};
      if (problem.rows <= kMaxUnpackedRows) {
        multiply_few_rows(problem, product, columns, own);
      } else {
        multiply_block(problem, product, rows, columns, own);
      }
    }
  });
}

template void multiply_matrices<double>(const KernelCall&, const MatrixProduct<double>&);
template void multiply_matrices<uint64_t>(const KernelCall&, const MatrixProduct<uint64_t>&);

}  // namespace tessera::ops
