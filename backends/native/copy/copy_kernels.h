// The loops of copies, compiled for every instruction set that Highway supports.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera::native {

// An output of this many bytes or more is stored past the caches, because it would not stay in
// them. (Such stores are faster as soon as input and output exceed the cache of a core, but for
// smaller outputs the next reader loses more than the copy gains.)
inline constexpr int64_t kStreamedCopyBytes = int64_t{8} << 20;
// Transposes gain more: ordinary stores would read every line that they write.
inline constexpr int64_t kStreamedTransposeBytes = int64_t{2} << 20;
// If rows of a transposed matrix do not begin at lines, this many bytes of a row are collected
// before they are streamed, so that few lines are written in two parts. That gains less.
inline constexpr int64_t kStreamedRunBytes = 2048;

// Rows of a source that begin at least this many bytes apart are on different pages, and hardware
// does not predict that a line of each is read.
inline constexpr int64_t kFarRowBytes = 4096;

// A transpose: a matrix that is read by rows and written by columns. Strides count elements.
struct MatrixTranspose {
  const void* from = nullptr;
  int64_t from_stride = 0;  // between rows of `from`
  void* to = nullptr;
  int64_t to_stride = 0;  // between rows of `to`, which are columns of `from`
  int64_t rows = 0;       // of `from`
  int64_t columns = 0;    // of `from`
  bool is_streamed = false;
  // The order of tiles: along the rows of `to`, or along those of `from`.
  bool follows_result = false;
};

// The loops for elements of one size. Nothing needs to be aligned.
struct CopyLoops {
  // Sets `count` elements to *element.
  void (*fill)(const void* element, void* to, int64_t count);
  void (*stream_fill)(const void* element, void* to, int64_t count);
  // to[i] = from[i * stride]
  void (*strided)(const void* from, int64_t stride, void* to, int64_t count);
  // to[i] = from[indices[i]]
  void (*gather)(const void* from, const int32_t* indices, void* to, int64_t count);
  // to[factor * i + k] = from[i] for k below `factor`
  void (*repeat_each)(const void* from, int64_t factor, void* to, int64_t count);
  void (*transpose)(const MatrixTranspose& matrix);
};

// For the best instruction set of this processor: four entries, for elements of 1, 2, 4 and 8
// bytes.
const CopyLoops* find_copy_loops();
// The entry of `loops` for elements of this size.
inline const CopyLoops* loops_for(const CopyLoops* loops, int64_t element_bytes) {
  return loops + (std::bit_width(static_cast<uint64_t>(element_bytes)) - 1);
}

// Copies past the caches, as streamed transposes do. It pays for outputs of kStreamedCopyBytes and
// more. hwy::FlushStream() must follow before other threads read the result.
using StreamLoop = void (*)(const void* from, void* to, int64_t bytes);
StreamLoop find_stream_loop();

// A copy of rows of at least kMinRowBytes; strides count bytes.
struct RowCopy {
  const void* from = nullptr;
  int64_t from_stride = 0;
  void* to = nullptr;
  int64_t to_stride = 0;
  int64_t count = 0;
  int64_t bytes = 0;  // of a row
  bool is_streamed = false;
};
inline constexpr int64_t kMinRowBytes = 64;
using RowLoop = void (*)(const RowCopy& rows);
RowLoop find_row_loop();

// All loops for copies.
struct CopyKernels {
  const CopyLoops* loops = find_copy_loops();
  StreamLoop stream = find_stream_loop();
  RowLoop rows = find_row_loop();
};

}  // namespace tessera::native
