// Tiled transposes. Part of copy_kernels.cc, which includes it once for each instruction set.
#include "copy/copy_kernels.h"

#if defined(TESSERA_NATIVE_TRANSPOSE_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_TRANSPOSE_KERNELS
#undef TESSERA_NATIVE_TRANSPOSE_KERNELS
#else
#define TESSERA_NATIVE_TRANSPOSE_KERNELS
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/partial_vector.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Widened elements may be misaligned for their type: they are copied one by one through these
// functions, and by vectors only if the target has vectors.
constexpr bool kHasVectors = HWY_TARGET != HWY_SCALAR;

template <class T>
HWY_INLINE T load_element(const T* from) {
  T element;
  std::memcpy(&element, static_cast<const void*>(from), sizeof(T));
  return element;
}

template <class T>
HWY_INLINE void store_element(T element, T* to) {
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

// For few rows that become contiguous in the result: interleaves one vector of each row. Gives the
// number of columns that it has done.
template <class T>
int64_t interleave_rows(const T* from, int64_t stride, T* to, int64_t rows, int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (!kHasVectors || columns < lanes) return 0;
  for (int64_t next = 0; next < columns; next += lanes) {
    // The last vector overlaps the previous one.
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

// For few columns that are contiguous in the source. Gives the number of rows that it has done.
template <class T>
int64_t deinterleave_columns(const T* from, T* to, int64_t stride, int64_t rows, int64_t columns) {
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
void transpose_elements(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                        int64_t columns) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      store_element(load_element(from + row * from_stride + column), to + column * to_stride + row);
    }
  }
}

// The part of the source from some row and column on.
template <class T>
struct SourceBlock {
  const T* from = nullptr;
  int64_t stride = 0;
  int64_t readable = 0;  // elements that may be read, from `from` on
  int64_t rows = 0;      // of the source
  int64_t columns = 0;
};

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// Vectors whose size is not known at compile time cannot be in arrays, which tiles need.
template <class T>
constexpr int64_t kSide = 16;
template <class T>
constexpr bool kIsOneSquare = false;

template <class T>
void transpose_tile(const SourceBlock<T>& block, T* to, int64_t to_stride, int64_t /*writable*/,
                    bool /*is_streamed*/) {
  transpose_elements(block.from, block.stride, to, to_stride, std::min(block.rows, kSide<T>),
                     std::min(block.columns, kSide<T>));
}

#else

// A tile has as many rows and columns as a cache line has elements, so that every line is read once
// and written once as a whole, for any strides.
constexpr int64_t kLineBytes = 64;
template <class T>
constexpr int64_t kSide = kLineBytes / static_cast<int64_t>(sizeof(T));

constexpr size_t kBlockBytes = 16;

// Squares are transposed in registers as elements of at least 4 bytes; for narrower elements,
// several rows are interleaved first.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
constexpr int64_t kJoined = static_cast<int64_t>(sizeof(Wide<T>) / sizeof(T));
// Rows and columns of a square.
template <class T>
constexpr int64_t kSquare = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
// Whether a tile is one square, whose elements need not be joined.
template <class T>
constexpr bool kIsOneSquare = kJoined<T> == 1 && kSquare<T> == kSide<T>;
template <class T>
using WideVector = hn::Vec<hn::ScalableTag<Wide<T> > >;

// Transposes within 16-byte blocks: block b of vector j of the result holds lane j of block b of
// all vectors. A perfect shuffle for each bit of the lane index does it.
template <class W, class V>
HWY_INLINE void transpose_blocks(V* vectors) {
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

template <class V>
struct BlockPair {
  V even;
  V odd;
};

// The even and the odd blocks of two vectors of four blocks.
template <class W, class V>
HWY_INLINE BlockPair<V> split_blocks(V first, V second) {
#if HWY_TARGET <= HWY_AVX3
  return {V{_mm512_shuffle_i32x4(first.raw, second.raw, 0x88)},
          V{_mm512_shuffle_i32x4(first.raw, second.raw, 0xDD)}};
#else
  const hn::ScalableTag<W> d;
  const V low = hn::ConcatLowerLower(d, second, first);
  const V high = hn::ConcatUpperUpper(d, second, first);
  const V even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high), low);
  const V odd = hn::OddEvenBlocks(high, hn::SwapAdjacentBlocks(low));
  return {even, odd};
#endif
}

// Transposes a square: vector r holds row r, and in the end column r.
template <class W, class V>
HWY_INLINE void transpose_square(V* vectors) {
  constexpr size_t kCount = kBlockBytes / sizeof(W);
  constexpr size_t kBlocks = hn::MaxLanes(hn::ScalableTag<W>()) / kCount;
  for (size_t group = 0; group < kBlocks; ++group) transpose_blocks<W>(vectors + group * kCount);
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
      V* position = vectors + index;
      const BlockPair<V> low = split_blocks<W>(position[0], position[kCount]);
      const BlockPair<V> high = split_blocks<W>(position[2 * kCount], position[3 * kCount]);
      const BlockPair<V> even = split_blocks<W>(low.even, high.even);
      const BlockPair<V> odd = split_blocks<W>(low.odd, high.odd);
      position[0] = even.even;
      position[kCount] = odd.even;
      position[2 * kCount] = even.odd;
      position[3 * kCount] = odd.odd;
    }
  }
#endif
  static_assert(kBlocks <= 4, "no vector has more blocks");
}

// Loads a row of a square. The lanes of rows and columns outside the source are never used.
template <bool kIsWhole, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T> > load_row(const SourceBlock<T>& block, int64_t row) {
  const hn::ScalableTag<T> d;
  if (kIsWhole) return hn::LoadU(d, block.from + row * block.stride);
  const int64_t start = std::min(row, block.rows - 1) * block.stride;
  if (block.stride > 0 && start + kSquare<T> <= block.readable) {
    return hn::LoadU(d, block.from + start);
  }
  HWY_ALIGN T part[static_cast<size_t>(kSquare<T>)] = {};
  // Copied as bytes, because a widened T may be misaligned.
  std::memcpy(part, reinterpret_cast<const char*>(block.from + start),
              static_cast<size_t>(std::min(block.columns, kSquare<T>)) * sizeof(T));
  return hn::Load(d, part);
}

// Interleaves the lanes of half `half` of each block of two vectors.
template <class T, class V>
HWY_INLINE V interleave(V first, V second, int64_t half) {
  const hn::ScalableTag<T> d;
  return half == 0 ? hn::InterleaveLower(d, first, second) : hn::InterleaveUpper(d, first, second);
}

// Interleaves kJoined rows from `row` on; `part` selects the part of each block.
template <bool kIsWhole, class T>
HWY_INLINE WideVector<T> load_joined(const SourceBlock<T>& block, int64_t row, int64_t part) {
  const hn::ScalableTag<Wide<T> > dw;
  if constexpr (kJoined<T> == 1) {
    return load_row<kIsWhole>(block, row);
  } else if constexpr (kJoined<T> == 2) {
    return hn::BitCast(dw, interleave<T>(load_row<kIsWhole>(block, row),
                                         load_row<kIsWhole>(block, row + 1), part));
  } else {
    const hn::ScalableTag<uint16_t> d2;
    const auto first =
        interleave<T>(load_row<kIsWhole>(block, row), load_row<kIsWhole>(block, row + 1), part / 2);
    const auto second = interleave<T>(load_row<kIsWhole>(block, row + 2),
                                      load_row<kIsWhole>(block, row + 3), part / 2);
    return hn::BitCast(
        dw, interleave<uint16_t>(hn::BitCast(d2, first), hn::BitCast(d2, second), part % 2));
  }
}

// Transposes a square of the source into `to`, whose rows are `to_stride` apart.
template <bool kIsWhole, class T>
HWY_INLINE void transpose_block(const SourceBlock<T>& block, T* to, int64_t to_stride,
                                bool is_streamed) {
  using W = Wide<T>;
  const hn::ScalableTag<W> d;
  constexpr int64_t kLanes = kSquare<W>;
  constexpr int64_t kBlockLanes = static_cast<int64_t>(kBlockBytes / sizeof(W));
  for (int64_t part = 0; part < kJoined<T>; ++part) {
    WideVector<T> vectors[static_cast<size_t>(kLanes)];
    for (int64_t row = 0; row < kLanes; ++row) {
      vectors[row] = load_joined<kIsWhole>(block, row * kJoined<T>, part);
    }
    transpose_square<W>(vectors);
    for (int64_t line = 0; line < kLanes; ++line) {
      const int64_t column =
          line / kBlockLanes * kBlockLanes * kJoined<T> + part * kBlockLanes + line % kBlockLanes;
      // The elements are copied as bits, so their type does not matter.
      W* target = reinterpret_cast<W*>(to + column * to_stride);
      if (is_streamed) {
        hn::Stream(vectors[line], d, target);
      } else {
        hn::StoreU(vectors[line], d, target);
      }
    }
  }
}

// Whether masked loads and stores access a part of a tile.
template <class T>
constexpr bool kMasksParts = kMasksMemory && kIsOneSquare<T>;

// Transposes a part of a square; `writable` as in transpose_any_tile(). Masked loads and stores are
// slow where lines are not in the first-level cache, so they access only what others must not.
template <class T>
HWY_INLINE void transpose_part(const SourceBlock<T>& block, T* to, int64_t to_stride,
                               int64_t writable, bool is_streamed) {
  const hn::ScalableTag<T> d;
  const int64_t rows = std::min(block.rows, kSquare<T>);
  const int64_t columns = std::min(block.columns, kSquare<T>);
  const auto used_columns = hn::FirstN(d, static_cast<size_t>(columns));
  const auto used_rows = hn::FirstN(d, static_cast<size_t>(rows));
  hn::Vec<hn::ScalableTag<T> > vectors[static_cast<size_t>(kSquare<T>)];
  for (int64_t row = 0; row < kSquare<T>; ++row) {
    const int64_t start = std::min(row, rows - 1) * block.stride;
    vectors[row] = block.stride > 0 && start + kSquare<T> <= block.readable
                       ? hn::LoadU(d, block.from + start)
                       : hn::MaskedLoad(used_columns, d, block.from + start);
  }
  transpose_square<T>(vectors);
  // How many columns may be stored with the surplus lanes, which the next columns overwrite.
  const int64_t whole = rows == kSquare<T>      ? columns
                        : writable < kSquare<T> ? 0
                                                : (writable - kSquare<T>) / to_stride + 1;
  for (int64_t line = 0; line < kSquare<T>; ++line) {
    if (line >= columns) continue;
    T* target = to + line * to_stride;
    if (line >= whole) {
      hn::BlendedStore(vectors[line], used_rows, d, target);
    } else if (is_streamed && rows == kSquare<T>) {
      hn::Stream(vectors[line], d, target);
    } else {
      hn::StoreU(vectors[line], d, target);
    }
  }
}

// Copies `bytes` rounded up to whole blocks; the surplus bytes may be overwritten later.
HWY_INLINE void copy_blocks(const void* from, void* to, int64_t bytes) {
  for (int64_t index = 0; index < bytes; index += static_cast<int64_t>(kBlockBytes)) {
    std::memcpy(static_cast<char*>(to) + index, static_cast<const char*>(from) + index,
                kBlockBytes);
  }
}

// Transposes at most kSide rows and columns. Columns are written in order, and `writable` elements
// from `to` on may be overwritten with intermediate data.
template <class T>
HWY_NOINLINE void transpose_any_tile(const SourceBlock<T>& block, T* HWY_RESTRICT to,
                                     int64_t to_stride, int64_t writable, bool is_streamed) {
  const int64_t rows = std::min(block.rows, kSide<T>);
  const int64_t columns = std::min(block.columns, kSide<T>);
  if constexpr (kMasksParts<T>) {
    return transpose_part(block, to, to_stride, writable, is_streamed);
  }
  const bool is_whole = rows == kSide<T> && columns == kSide<T>;
  if (is_whole && kSquare<T> == kSide<T>)
    return transpose_block<true>(block, to, to_stride, is_streamed);
  HWY_ALIGN T transposed[static_cast<size_t>(kSide<T> * kSide<T>)];
  for (int64_t row = 0; row < rows; row += kSquare<T>) {
    for (int64_t column = 0; column < columns; column += kSquare<T>) {
      const int64_t start = row * block.stride + column;
      const SourceBlock<T> square = {block.from + start, block.stride, block.readable - start,
                                     block.rows - row, block.columns - column};
      T* target = transposed + column * kSide<T> + row;
      if (is_whole) {
        transpose_block<true>(square, target, kSide<T>, false);
      } else {
        transpose_block<false>(square, target, kSide<T>, false);
      }
    }
  }
  const hn::ScalableTag<T> d;
  const int64_t bytes = rows * static_cast<int64_t>(sizeof(T));
  for (int64_t column = 0; column < columns; ++column) {
    const T* line = transposed + column * kSide<T>;
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

// Same as transpose_any_tile(), but a whole square is transposed at once, without a call.
template <class T>
HWY_INLINE void transpose_tile(const SourceBlock<T>& block, T* HWY_RESTRICT to, int64_t to_stride,
                               int64_t writable, bool is_streamed) {
  if (kIsOneSquare<T> && block.rows >= kSide<T> && block.columns >= kSide<T>) {
    return transpose_block<true>(block, to, to_stride, is_streamed);
  }
  transpose_any_tile(block, to, to_stride, writable, is_streamed);
}

#endif

// How many tiles further along its rows a source with far rows is prefetched.
constexpr int64_t kAheadTiles = 4;

// Transposes a matrix tile by tile.
template <class T>
void transpose_directly(const MatrixTranspose& matrix, bool is_streamed) {
  constexpr int64_t kTile = kSide<T>;
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  const T* from = static_cast<const T*>(matrix.from);
  T* to = static_cast<T*>(matrix.to);
  const int64_t readable = (matrix.rows - 1) * matrix.from_stride + matrix.columns;
  // Columns without gaps between them.
  const bool is_dense = matrix.to_stride == matrix.rows && matrix.rows < kTile;
  const int64_t writable = is_dense ? matrix.rows * matrix.columns : 0;
  const auto transpose_at = [&](int64_t row, int64_t column) HWY_ATTR {
    const int64_t start = row * matrix.from_stride + column;
    const SourceBlock<T> block = {from + start, matrix.from_stride, readable - start,
                                  matrix.rows - row, matrix.columns - column};
    const int64_t position = column * matrix.to_stride + row;
    transpose_tile(block, to + position, matrix.to_stride, writable - position, is_streamed);
  };
  const auto prefetch = [&](int64_t row, int64_t column) HWY_ATTR {
    const int64_t end = std::min(row + kTile, matrix.rows);
    for (int64_t line = row; line < end; ++line) {
      hwy::Prefetch(from + line * matrix.from_stride + column);
    }
  };
  // While the processor transposes one square, it already loads the next ones from a cache.
  const bool needs_next = !kIsOneSquare<T> || matrix.is_streamed;
  if (!matrix.follows_result) {
    for (int64_t row = 0; row < matrix.rows; row += kTile) {
      for (int64_t column = 0; column < matrix.columns; column += kTile) {
        if (needs_next) prefetch(row + kTile, column);
        transpose_at(row, column);
      }
    }
    return;
  }
  const bool is_far = matrix.from_stride * kBytes >= kFarRowBytes;
  for (int64_t column = 0; column < matrix.columns; column += kTile) {
    for (int64_t row = 0; row < matrix.rows; row += kTile) {
      if (is_far) {
        prefetch(row, column + kAheadTiles * kTile);
      } else if (needs_next) {
        prefetch(row + kTile, column);
      }
      transpose_at(row, column);
    }
  }
}

// Same as transpose_directly(), if rows of the result are not aligned to cache lines: collects long
// runs of a row first, so that few lines are written in two halves.
template <class T>
void transpose_by_runs(const MatrixTranspose& matrix) {
  constexpr int64_t kTile = kSide<T>;
  constexpr auto kRun = kStreamedRunBytes / static_cast<int64_t>(sizeof(T));
  HWY_ALIGN T runs[static_cast<size_t>(kTile * kRun)];
  const T* from = static_cast<const T*>(matrix.from);
  T* to = static_cast<T*>(matrix.to);
  const int64_t readable = (matrix.rows - 1) * matrix.from_stride + matrix.columns;
  for (int64_t first = 0; first < matrix.rows; first += kRun) {
    const int64_t count = std::min(kRun, matrix.rows - first);
    for (int64_t column = 0; column < matrix.columns; column += kTile) {
      const int64_t columns = std::min(kTile, matrix.columns - column);
      // The lines at both ends of a run are not streamed: they are prefetched, so that stores do
      // not wait for them.
      for (int64_t line = 0; line < columns; ++line) {
        const T* run = to + (column + line) * matrix.to_stride + first;
        hwy::Prefetch(run);
        hwy::Prefetch(run + count - 1);
      }
      for (int64_t row = 0; row < count; row += kTile) {
        const int64_t start = (first + row) * matrix.from_stride + column;
        const SourceBlock<T> block = {from + start, matrix.from_stride, readable - start,
                                      count - row, columns};
        const bool is_last = column + kTile >= matrix.columns;
        const int64_t ahead = is_last ? kTile * matrix.from_stride : kTile;
        for (int64_t line = 0; line < std::min(kTile, count - row); ++line) {
          hwy::Prefetch(block.from + line * matrix.from_stride + ahead);
        }
        transpose_tile(block, runs + row, kRun, 0, false);
      }
      for (int64_t line = 0; line < columns; ++line) {
        stream(runs + line * kRun, to + (column + line) * matrix.to_stride + first,
               count * static_cast<int64_t>(sizeof(T)));
      }
    }
  }
}

template <class T>
void transpose_tiles(const MatrixTranspose& matrix) {
  constexpr int64_t kTile = kSide<T>;
  // Only whole lines are streamed from registers.
  const bool is_aligned = reinterpret_cast<uintptr_t>(matrix.to) % (kTile * sizeof(T)) == 0 &&
                          matrix.to_stride % kTile == 0;
  if (matrix.is_streamed && !is_aligned && matrix.rows >= kTile)
    return transpose_by_runs<T>(matrix);
  transpose_directly<T>(matrix, matrix.is_streamed && is_aligned);
}

constexpr int64_t kMaxInterleaved = 4;

template <class T>
void transpose(const MatrixTranspose& matrix) {
  const T* from = static_cast<const T*>(matrix.from);
  T* to = static_cast<T*>(matrix.to);
  if (matrix.rows >= 2 && matrix.rows <= kMaxInterleaved && matrix.to_stride == matrix.rows) {
    const int64_t done = interleave_rows(from, matrix.from_stride, to, matrix.rows, matrix.columns);
    return transpose_elements(from + done, matrix.from_stride, to + done * matrix.rows,
                              matrix.to_stride, matrix.rows, matrix.columns - done);
  }
  if (matrix.columns >= 2 && matrix.columns <= kMaxInterleaved &&
      matrix.from_stride == matrix.columns) {
    const int64_t done =
        deinterleave_columns(from, to, matrix.to_stride, matrix.rows, matrix.columns);
    return transpose_elements(from + done * matrix.columns, matrix.from_stride, to + done,
                              matrix.to_stride, matrix.rows - done, matrix.columns);
  }
  transpose_tiles<T>(matrix);
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
