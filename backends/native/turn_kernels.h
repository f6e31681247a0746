// Matrices read by rows and written by columns. Part of copy_kernels.cc, which includes it once for
// each instruction set.
#include "copy_kernels.h"

#if defined(TESSERA_NATIVE_TURN_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_TURN_KERNELS
#undef TESSERA_NATIVE_TURN_KERNELS
#else
#define TESSERA_NATIVE_TURN_KERNELS
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The rows are few and lie side by side in the result: vectors of each are woven together.
// Gives how many columns it has done.
template <class T>
int64_t weave(const T* from, int64_t stride, T* to, int64_t rows, int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t column = 0;
  for (; column + lanes <= columns; column += lanes) {
    const T* source = from + column;
    T* target = to + column * rows;
    const auto first = hn::LoadU(d, source);
    const auto second = hn::LoadU(d, source + stride);
    if (rows == 2) {
      hn::StoreInterleaved2(first, second, d, target);
      continue;
    }
    const auto third = hn::LoadU(d, source + 2 * stride);
    if (rows == 3) {
      hn::StoreInterleaved3(first, second, third, d, target);
    } else {
      hn::StoreInterleaved4(first, second, third, hn::LoadU(d, source + 3 * stride), d, target);
    }
  }
  return column;
}

// The columns are few and lie side by side in the source. Gives how many rows it has done.
template <class T>
int64_t unweave(const T* from, T* to, int64_t stride, int64_t rows, int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t row = 0;
  for (; row + lanes <= rows; row += lanes) {
    const T* source = from + row * columns;
    T* target = to + row;
    auto first = hn::Zero(d);
    auto second = hn::Zero(d);
    auto third = hn::Zero(d);
    auto fourth = hn::Zero(d);
    if (columns == 2) {
      hn::LoadInterleaved2(d, source, first, second);
    } else if (columns == 3) {
      hn::LoadInterleaved3(d, source, first, second, third);
    } else {
      hn::LoadInterleaved4(d, source, first, second, third, fourth);
    }
    hn::StoreU(first, d, target);
    hn::StoreU(second, d, target + stride);
    if (columns > 2) hn::StoreU(third, d, target + 2 * stride);
    if (columns > 3) hn::StoreU(fourth, d, target + 3 * stride);
  }
  return row;
}

template <class T>
void turn_elements(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                   int64_t columns) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      to[column * to_stride + row] = from[row * from_stride + column];
    }
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// Vectors of unknown size cannot stand in arrays, as tiles need them.
template <class T>
constexpr int64_t kSide = 16;

template <class T>
void turn_tile(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
               int64_t columns, bool /*is_streamed*/) {
  turn_elements(from, from_stride, to, to_stride, rows, columns);
}

#else

// A tile has as many rows and columns as a cache line has elements, so that every line is read once
// and written once as a whole, whatever the strides.
constexpr int64_t kLineBytes = 64;
template <class T>
constexpr int64_t kSide = kLineBytes / static_cast<int64_t>(sizeof(T));

constexpr int64_t kBlockBytes = 16;

// Turns squares of block by block: in block b of vector j of the result stands what was lane j of
// block b of all vectors. A perfect shuffle for each bit of the lane's number does it.
template <class D, class V, size_t kCount>
HWY_INLINE void turn_blocks(D d, V (&vectors)[kCount]) {
  for (size_t bit = 1; bit < kCount; bit *= 2) {
    V shuffled[kCount];
    for (size_t index = 0; index < kCount / 2; ++index) {
      const V low = vectors[index];
      const V high = vectors[index + kCount / 2];
      shuffled[2 * index] = hn::InterleaveLower(d, low, high);
      shuffled[2 * index + 1] = hn::InterleaveUpper(d, low, high);
    }
    for (size_t index = 0; index < kCount; ++index) vectors[index] = shuffled[index];
  }
}

// One line of the result.
template <class T>
HWY_INLINE void put_line(const T* line, T* to, int64_t count, bool is_streamed) {
  const hn::CappedTag<T, static_cast<size_t>(kSide<T>)> d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  if (count < kSide<T>) {
    std::memcpy(to, line, static_cast<size_t>(count) * sizeof(T));
  } else if (is_streamed) {
    for (int64_t lane = 0; lane < kSide<T>; lane += kLanes) {
      hn::Stream(hn::Load(d, line + lane), d, to + lane);
    }
  } else {
    for (int64_t lane = 0; lane < kSide<T>; lane += kLanes) {
      hn::StoreU(hn::Load(d, line + lane), d, to + lane);
    }
  }
}

// At most kSide rows and columns.
template <class T>
void turn_tile(const T* HWY_RESTRICT from, int64_t from_stride, T* HWY_RESTRICT to,
               int64_t to_stride, int64_t rows, int64_t columns, bool is_streamed) {
  const hn::CappedTag<T, static_cast<size_t>(kSide<T>)> d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int64_t kCount = kBlockBytes / static_cast<int64_t>(sizeof(T));
  HWY_ALIGN T turned[kSide<T> * kSide<T>];
  for (int64_t row = 0; row < rows; row += kCount) {
    for (int64_t column = 0; column < columns; column += kLanes) {
      hn::Vec<decltype(d)> vectors[kCount];
      for (int64_t line = 0; line < kCount; ++line) {
        // What stands in place of rows that are not there is never read.
        const T* source = from + std::min(row + line, rows - 1) * from_stride + column;
        if (column + kLanes <= columns) {
          vectors[line] = hn::LoadU(d, source);
        } else {
          HWY_ALIGN T part[kLanes] = {};
          std::memcpy(part, source, static_cast<size_t>(columns - column) * sizeof(T));
          vectors[line] = hn::Load(d, part);
        }
      }
      turn_blocks(d, vectors);
      for (int64_t line = 0; line < kCount; ++line) {
        HWY_ALIGN T blocks[kLanes];
        hn::Store(vectors[line], d, blocks);
        for (int64_t block = 0; block < kLanes / kCount; ++block) {
          std::memcpy(turned + (column + block * kCount + line) * kSide<T> + row,
                      blocks + block * kCount, kBlockBytes);
        }
      }
    }
  }
  for (int64_t column = 0; column < columns; ++column) {
    put_line(turned + column * kSide<T>, to + column * to_stride, rows, is_streamed);
  }
}

#endif

constexpr int64_t kMostWoven = 4;

template <class T>
void turn(const Turn& turn) {
  const T* from = static_cast<const T*>(turn.from);
  T* to = static_cast<T*>(turn.to);
  if (turn.rows >= 2 && turn.rows <= kMostWoven && turn.to_stride == turn.rows) {
    const int64_t done = weave(from, turn.from_stride, to, turn.rows, turn.columns);
    return turn_elements(from + done, turn.from_stride, to + done * turn.rows, turn.to_stride,
                         turn.rows, turn.columns - done);
  }
  if (turn.columns >= 2 && turn.columns <= kMostWoven && turn.from_stride == turn.columns) {
    const int64_t done = unweave(from, to, turn.to_stride, turn.rows, turn.columns);
    return turn_elements(from + done * turn.columns, turn.from_stride, to + done, turn.to_stride,
                         turn.rows - done, turn.columns);
  }
  constexpr int64_t kTile = kSide<T>;
  // Lines are streamed only as wholes.
  const bool is_streamed = turn.is_streamed &&
                           reinterpret_cast<uintptr_t>(to) % (kTile * sizeof(T)) == 0 &&
                           turn.to_stride % kTile == 0;
  for (int64_t column = 0; column < turn.columns; column += kTile) {
    for (int64_t row = 0; row < turn.rows; row += kTile) {
      turn_tile(from + row * turn.from_stride + column, turn.from_stride,
                to + column * turn.to_stride + row, turn.to_stride,
                std::min(kTile, turn.rows - row), std::min(kTile, turn.columns - column),
                is_streamed);
    }
  }
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
