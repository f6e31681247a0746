// The loops of copies, compiled for every instruction set that the processor may have.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera::native {

// An output of this many bytes or more is written past the caches: it would not stay there. (Such
// stores are faster already where input and output exceed a core's own cache, but who reads the
// output next is then slower than the copy was faster.)
inline constexpr int64_t kStreamedBytes = int64_t{8} << 20;
// Turned matrices gain more: they would read every line that they write.
inline constexpr int64_t kStreamedTurnBytes = int64_t{2} << 20;

// A matrix read by rows and written by columns; strides count elements.
struct Turn {
  const void* from = nullptr;
  int64_t from_stride = 0;  // between rows of `from`
  void* to = nullptr;
  int64_t to_stride = 0;  // between rows of `to`, which are columns of `from`
  int64_t rows = 0;       // of `from`
  int64_t columns = 0;    // of `from`
  bool is_streamed = false;
};

// For elements of one size. Nothing needs to be aligned.
struct CopyLoops {
  // Every one of `count` elements becomes *element.
  void (*fill)(const void* element, void* to, int64_t count);
  void (*stream_fill)(const void* element, void* to, int64_t count);
  // to[i] = from[i * step]
  void (*step)(const void* from, int64_t step, void* to, int64_t count);
  // to[i] = from[places[i]]
  void (*pick)(const void* from, const int32_t* places, void* to, int64_t count);
  // to[factor * i + k] = from[i] for k below `factor`
  void (*repeat)(const void* from, int64_t factor, void* to, int64_t count);
  void (*turn)(const Turn& turn);
};

// For the best instruction set of this processor: for elements of 1, 2, 4 and 8 bytes.
const CopyLoops* find_copy_loops();
// Those of `loops` for elements of so many bytes.
inline const CopyLoops* loops_for(const CopyLoops* loops, int64_t element_bytes) {
  return loops + (std::bit_width(static_cast<uint64_t>(element_bytes)) - 1);
}

// Copies past the caches, as turns do that are streamed. Worth its while for outputs of
// kStreamedBytes and more. hwy::FlushStream() must follow before others may read.
using StreamLoop = void (*)(const void* from, void* to, int64_t bytes);
StreamLoop find_stream_loop();

// Rows of at least kLeastRowBytes; strides count bytes.
struct RowCopy {
  const void* from = nullptr;
  int64_t from_stride = 0;
  void* to = nullptr;
  int64_t to_stride = 0;
  int64_t count = 0;
  int64_t bytes = 0;  // of a row
  bool is_streamed = false;
};
inline constexpr int64_t kLeastRowBytes = 64;
using RowLoop = void (*)(const RowCopy& rows);
RowLoop find_row_loop();

// All of these.
struct CopyKernels {
  const CopyLoops* loops = find_copy_loops();
  StreamLoop stream = find_stream_loop();
  RowLoop rows = find_row_loop();
};

}  // namespace tessera::native
