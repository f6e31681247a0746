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
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Elements that were widened need not stand where their type should: they are moved one by one
// through these, and by vectors only where there are real ones.
constexpr bool kHasVectors = HWY_TARGET != HWY_SCALAR;

template <class T>
HWY_INLINE T element_at(const T* from) {
  T element;
  std::memcpy(&element, static_cast<const void*>(from), sizeof(T));
  return element;
}

template <class T>
HWY_INLINE void put_element(T element, T* to) {
  std::memcpy(static_cast<void*>(to), &element, sizeof(T));
}

inline void stream(const void* from, void* to, int64_t bytes) {
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Only whole aligned vectors can be streamed.
  const auto misplaced =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(target) % static_cast<uintptr_t>(lanes));
  int64_t index = std::min(misplaced == 0 ? 0 : lanes - misplaced, bytes);
  std::memcpy(target, source, static_cast<size_t>(index));
  for (; index + 4 * lanes <= bytes; index += 4 * lanes) {
    const auto first = hn::LoadU(d, source + index);
    const auto second = hn::LoadU(d, source + index + lanes);
    const auto third = hn::LoadU(d, source + index + 2 * lanes);
    const auto fourth = hn::LoadU(d, source + index + 3 * lanes);
    hn::Stream(first, d, target + index);
    hn::Stream(second, d, target + index + lanes);
    hn::Stream(third, d, target + index + 2 * lanes);
    hn::Stream(fourth, d, target + index + 3 * lanes);
  }
  std::memcpy(target + index, source + index, static_cast<size_t>(bytes - index));
}

// The rows are few and lie side by side in the result: vectors of each are woven together.
// Gives how many columns it has done.
template <class T>
int64_t weave(const T* from, int64_t stride, T* to, int64_t rows, int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (!kHasVectors || columns < lanes) return 0;
  for (int64_t next = 0; next < columns; next += lanes) {
    // The last vectors overlap those before.
    const int64_t column = std::min(next, columns - lanes);
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
  return columns;
}

// The columns are few and lie side by side in the source. Gives how many rows it has done.
template <class T>
int64_t unweave(const T* from, T* to, int64_t stride, int64_t rows, int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (!kHasVectors || rows < lanes) return 0;
  for (int64_t next = 0; next < rows; next += lanes) {
    // The last vectors overlap those before.
    const int64_t row = std::min(next, rows - lanes);
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
  return rows;
}

template <class T>
void turn_elements(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                   int64_t columns) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      put_element(element_at(from + row * from_stride + column), to + column * to_stride + row);
    }
  }
}

// The source from some row and column on.
template <class T>
struct Corner {
  const T* from = nullptr;
  int64_t stride = 0;
  int64_t readable = 0;  // elements that may be read from `from` on
  int64_t rows = 0;      // that count
  int64_t columns = 0;
};

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// Vectors of unknown size cannot stand in arrays, as tiles need them.
template <class T>
constexpr int64_t kSide = 16;

template <class T>
void turn_tile(const Corner<T>& corner, T* to, int64_t to_stride, int64_t /*writable*/,
               bool /*is_streamed*/) {
  turn_elements(corner.from, corner.stride, to, to_stride, std::min(corner.rows, kSide<T>),
                std::min(corner.columns, kSide<T>));
}

#else

// A tile has as many rows and columns as a cache line has elements, so that every line is read once
// and written once as a whole, whatever the strides.
constexpr int64_t kLineBytes = 64;
template <class T>
constexpr int64_t kSide = kLineBytes / static_cast<int64_t>(sizeof(T));

constexpr size_t kBlockBytes = 16;

// Squares are turned in registers as elements of at least 4 bytes; of narrower ones those of
// several rows are joined first.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
constexpr int64_t kJoined = static_cast<int64_t>(sizeof(Wide<T>) / sizeof(T));
// Rows and columns of a square.
template <class T>
constexpr int64_t kSquare = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
template <class T>
using WideVector = hn::Vec<hn::ScalableTag<Wide<T> > >;

// Turns squares of block by block: in block b of vector j of the result stands what was lane j of
// block b of all vectors. A perfect shuffle for each bit of the lane's number does it.
template <class W, class V>
HWY_INLINE void turn_blocks(V* vectors) {
  const hn::ScalableTag<W> d;
  constexpr size_t kCount = kBlockBytes / sizeof(W);
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

// Turns a square: vector r holds row r, and in the end column r.
template <class W, class V>
HWY_INLINE void turn_square(V* vectors) {
  constexpr size_t kCount = kBlockBytes / sizeof(W);
  constexpr size_t kBlocks = hn::MaxLanes(hn::ScalableTag<W>()) / kCount;
  for (size_t group = 0; group < kBlocks; ++group) turn_blocks<W>(vectors + group * kCount);
#if HWY_MAX_BYTES >= 32
  const hn::ScalableTag<W> d;
  if constexpr (kBlocks == 2) {
    for (size_t index = 0; index < kCount; ++index) {
      const V low = vectors[index];
      const V high = vectors[kCount + index];
      vectors[index] = hn::ConcatLowerLower(d, high, low);
      vectors[kCount + index] = hn::ConcatUpperUpper(d, high, low);
    }
  } else if constexpr (kBlocks == 4) {
    for (size_t index = 0; index < kCount; ++index) {
      V* place = vectors + index;
      // Blocks 0 and 1 of two vectors each, then blocks 2 and 3.
      const V even_low = hn::ConcatLowerLower(d, place[2 * kCount], place[0]);
      const V odd_low = hn::ConcatLowerLower(d, place[3 * kCount], place[kCount]);
      const V even_high = hn::ConcatUpperUpper(d, place[2 * kCount], place[0]);
      const V odd_high = hn::ConcatUpperUpper(d, place[3 * kCount], place[kCount]);
      place[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_low), even_low);
      place[kCount] = hn::OddEvenBlocks(odd_low, hn::SwapAdjacentBlocks(even_low));
      place[2 * kCount] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_high), even_high);
      place[3 * kCount] = hn::OddEvenBlocks(odd_high, hn::SwapAdjacentBlocks(even_high));
    }
  }
#endif
  static_assert(kBlocks <= 4, "no vector has more blocks");
}

// A row of a square. What stands in place of rows and columns that do not count is never used.
template <bool kIsWhole, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T> > load_row(const Corner<T>& corner, int64_t row) {
  const hn::ScalableTag<T> d;
  if (kIsWhole) return hn::LoadU(d, corner.from + row * corner.stride);
  const int64_t start = std::min(row, corner.rows - 1) * corner.stride;
  if (corner.stride > 0 && start + kSquare<T> <= corner.readable) {
    return hn::LoadU(d, corner.from + start);
  }
  HWY_ALIGN T part[static_cast<size_t>(kSquare<T>)] = {};
  // Of bytes: a T may begin where a narrower element does.
  std::memcpy(part, reinterpret_cast<const char*>(corner.from + start),
              static_cast<size_t>(std::min(corner.columns, kSquare<T>)) * sizeof(T));
  return hn::Load(d, part);
}

// Half `half` of each block of two vectors, lane by lane in turn.
template <class T, class V>
HWY_INLINE V interleave(V first, V second, int64_t half) {
  const hn::ScalableTag<T> d;
  return half == 0 ? hn::InterleaveLower(d, first, second) : hn::InterleaveUpper(d, first, second);
}

// kJoined rows from `row` on, of whose lanes in each block those of part `part` are joined.
template <bool kIsWhole, class T>
HWY_INLINE WideVector<T> load_joined(const Corner<T>& corner, int64_t row, int64_t part) {
  const hn::ScalableTag<Wide<T> > dw;
  if constexpr (kJoined<T> == 1) {
    return load_row<kIsWhole>(corner, row);
  } else if constexpr (kJoined<T> == 2) {
    return hn::BitCast(dw, interleave<T>(load_row<kIsWhole>(corner, row),
                                         load_row<kIsWhole>(corner, row + 1), part));
  } else {
    const hn::ScalableTag<uint16_t> d2;
    const auto first = interleave<T>(load_row<kIsWhole>(corner, row),
                                     load_row<kIsWhole>(corner, row + 1), part / 2);
    const auto second = interleave<T>(load_row<kIsWhole>(corner, row + 2),
                                      load_row<kIsWhole>(corner, row + 3), part / 2);
    return hn::BitCast(
        dw, interleave<uint16_t>(hn::BitCast(d2, first), hn::BitCast(d2, second), part % 2));
  }
}

// Turns a square of the source into `to`; `to_stride` is that between its rows.
template <bool kIsWhole, class T>
HWY_INLINE void turn_corner(const Corner<T>& corner, T* to, int64_t to_stride, bool is_streamed) {
  using W = Wide<T>;
  const hn::ScalableTag<W> d;
  constexpr int64_t kLanes = kSquare<W>;
  constexpr int64_t kBlockLanes = static_cast<int64_t>(kBlockBytes / sizeof(W));
  for (int64_t part = 0; part < kJoined<T>; ++part) {
    WideVector<T> vectors[static_cast<size_t>(kLanes)];
    for (int64_t row = 0; row < kLanes; ++row) {
      vectors[row] = load_joined<kIsWhole>(corner, row * kJoined<T>, part);
    }
    turn_square<W>(vectors);
    for (int64_t line = 0; line < kLanes; ++line) {
      const int64_t column =
          line / kBlockLanes * kBlockLanes * kJoined<T> + part * kBlockLanes + line % kBlockLanes;
      // Nothing is done to the elements but to move them.
      W* target = reinterpret_cast<W*>(to + column * to_stride);
      if (is_streamed) {
        hn::Stream(vectors[line], d, target);
      } else {
        hn::StoreU(vectors[line], d, target);
      }
    }
  }
}

// Copies `bytes` in steps of a block, and perhaps what follows in the last one.
HWY_INLINE void copy_blocks(const void* from, void* to, int64_t bytes) {
  for (int64_t index = 0; index < bytes; index += static_cast<int64_t>(kBlockBytes)) {
    std::memcpy(static_cast<char*>(to) + index, static_cast<const char*>(from) + index,
                kBlockBytes);
  }
}

// At most kSide rows and columns. `writable` elements from `to` on are written in order of the
// columns, so that something may stand there for a while that does not belong.
template <class T>
void turn_tile(const Corner<T>& corner, T* HWY_RESTRICT to, int64_t to_stride, int64_t writable,
               bool is_streamed) {
  const int64_t rows = std::min(corner.rows, kSide<T>);
  const int64_t columns = std::min(corner.columns, kSide<T>);
  const bool is_whole = rows == kSide<T> && columns == kSide<T>;
  if (is_whole && kSquare<T> == kSide<T>)
    return turn_corner<true>(corner, to, to_stride, is_streamed);
  HWY_ALIGN T turned[static_cast<size_t>(kSide<T> * kSide<T>)];
  for (int64_t row = 0; row < rows; row += kSquare<T>) {
    for (int64_t column = 0; column < columns; column += kSquare<T>) {
      const int64_t start = row * corner.stride + column;
      const Corner<T> square = {corner.from + start, corner.stride, corner.readable - start,
                                corner.rows - row, corner.columns - column};
      T* target = turned + column * kSide<T> + row;
      if (is_whole) {
        turn_corner<true>(square, target, kSide<T>, false);
      } else {
        turn_corner<false>(square, target, kSide<T>, false);
      }
    }
  }
  const hn::ScalableTag<T> d;
  const int64_t bytes = rows * static_cast<int64_t>(sizeof(T));
  for (int64_t column = 0; column < columns; ++column) {
    const T* line = turned + column * kSide<T>;
    T* target = to + column * to_stride;
    if (rows == kSide<T>) {
      for (int64_t lane = 0; lane < kSide<T>; lane += kSquare<T>) {
        if (is_streamed) {
          hn::Stream(hn::Load(d, line + lane), d, target + lane);
        } else {
          hn::StoreU(hn::Load(d, line + lane), d, target + lane);
        }
      }
    } else if (column * to_stride + kSide<T> <= writable) {
      copy_blocks(line, target, bytes);
    } else {
      std::memcpy(target, line, static_cast<size_t>(bytes));
    }
  }
}

#endif

// A piece of a matrix, tile by tile. Rows of the source are followed for as long as they are, and
// what comes next below them is fetched, as the processor does not see it coming.
template <class T>
void turn_directly(const Turn& turn, bool is_streamed) {
  constexpr int64_t kTile = kSide<T>;
  const T* from = static_cast<const T*>(turn.from);
  T* to = static_cast<T*>(turn.to);
  const int64_t readable = (turn.rows - 1) * turn.from_stride + turn.columns;
  // Columns that follow each other without gaps.
  const bool is_dense = turn.to_stride == turn.rows && turn.rows < kTile;
  const int64_t writable = is_dense ? turn.rows * turn.columns : 0;
  for (int64_t row = 0; row < turn.rows; row += kTile) {
    for (int64_t column = 0; column < turn.columns; column += kTile) {
      const int64_t start = row * turn.from_stride + column;
      for (int64_t line = row + kTile; line < std::min(row + 2 * kTile, turn.rows); ++line) {
        hwy::Prefetch(from + line * turn.from_stride + column);
      }
      const Corner<T> corner = {from + start, turn.from_stride, readable - start, turn.rows - row,
                                turn.columns - column};
      const int64_t place = column * turn.to_stride + row;
      turn_tile(corner, to + place, turn.to_stride, writable - place, is_streamed);
    }
  }
}

// Bytes of a row of the result that are gathered before they are streamed.
constexpr int64_t kRunBytes = 2048;

// The same where lines of the result do not begin where cache lines do: long runs of it are put
// together first, so that few lines are written in halves.
template <class T>
void turn_by_runs(const Turn& turn) {
  constexpr int64_t kTile = kSide<T>;
  constexpr auto kRun = kRunBytes / static_cast<int64_t>(sizeof(T));
  HWY_ALIGN T runs[static_cast<size_t>(kTile * kRun)];
  const T* from = static_cast<const T*>(turn.from);
  T* to = static_cast<T*>(turn.to);
  const int64_t readable = (turn.rows - 1) * turn.from_stride + turn.columns;
  for (int64_t first = 0; first < turn.rows; first += kRun) {
    const int64_t count = std::min(kRun, turn.rows - first);
    for (int64_t column = 0; column < turn.columns; column += kTile) {
      const int64_t columns = std::min(kTile, turn.columns - column);
      // The lines at both ends of a run are not streamed, and would be waited for.
      for (int64_t line = 0; line < columns; ++line) {
        const T* run = to + (column + line) * turn.to_stride + first;
        hwy::Prefetch(run);
        hwy::Prefetch(run + count - 1);
      }
      for (int64_t row = 0; row < count; row += kTile) {
        const int64_t start = (first + row) * turn.from_stride + column;
        const Corner<T> corner = {from + start, turn.from_stride, readable - start, count - row,
                                  columns};
        for (int64_t line = 0; line < std::min(kTile, count - row); ++line) {
          if (column + kTile >= turn.columns) break;
          hwy::Prefetch(corner.from + line * turn.from_stride + kTile);
        }
        turn_tile(corner, runs + row, kRun, 0, false);
      }
      for (int64_t line = 0; line < columns; ++line) {
        stream(runs + line * kRun, to + (column + line) * turn.to_stride + first,
               count * static_cast<int64_t>(sizeof(T)));
      }
    }
  }
}

template <class T>
void turn_tiles(const Turn& turn) {
  constexpr int64_t kTile = kSide<T>;
  // Only whole lines are streamed from registers.
  const bool is_aligned = reinterpret_cast<uintptr_t>(turn.to) % (kTile * sizeof(T)) == 0 &&
                          turn.to_stride % kTile == 0;
  if (turn.is_streamed && !is_aligned && turn.rows >= kTile) return turn_by_runs<T>(turn);
  turn_directly<T>(turn, turn.is_streamed && is_aligned);
}

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
  turn_tiles<T>(turn);
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
