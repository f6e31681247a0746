// Copies between strided arrangements of elements: the common core of transposes, slices, concats,
// expands and conversions of layouts. Unrelated to src/engine/strided_copy.h, which copies views
// for the host: plug-ins and host share only the contract.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "copy/copy_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// A nest of loops: element (i, j, ...) goes from offset i * from[0] + j * from[1] + ... to offset i
// * to[0] + j * to[1] + .... Strides and offsets count elements. Source strides may be zero or
// negative. No two elements go to the same offset.
struct LoopNest {
  static constexpr int kMaxAxes = 16;
  struct Axis {
    int64_t count = 0;
    int64_t from = 0;
    int64_t to = 0;
  };

  int rank = 0;
  std::array<Axis, kMaxAxes> axes = {};

  // Leaves out axes of one element. Throws Failure (TESSERA_UNSUPPORTED) if there are too many
  // others.
  void add(int64_t count, int64_t from, int64_t to);
};

// A loop nest transformed into the form that runs fastest. It owns no memory: constructing it
// allocates nothing.
class StridedCopy {
 public:
  enum class Form : uint8_t { Nothing, Rows, Fill, Tiles, Steps, Elements };

  StridedCopy() = default;
  // `output_bytes`: the size of the whole output, of which this copy may write a part. A large
  // output is stored past the caches.
  StridedCopy(LoopNest nest, int64_t element_bytes, const CopyKernels& kernels,
              int64_t output_bytes);

  Form form() const { return form_; }
  const char* form_name() const;

  // The work in units, which threads share: roughly kUnitBytes each, more if they are tiles.
  static constexpr int64_t kUnitBytes = int64_t{16} * 1024;
  int64_t units() const { return units_; }
  // The number of units that copy this number of bytes.
  int64_t units_of(int64_t bytes) const { return std::max<int64_t>(1, bytes / unit_bytes_); }
  // Copies units [begin, end).
  void run(int64_t begin, int64_t end, const void* from, void* to) const;

 private:
  void order_axes();
  void merge_axes();
  void widen_elements();
  void choose_form();
  bool is_worth_streaming(int64_t output_bytes) const;
  bool follows_result(int64_t output_bytes) const;
  bool has_aligned_rows() const;
  void read_in_order();
  void plan_rows();
  void plan_tiles();
  void run_rows(int64_t begin, int64_t end, const char* from, char* to) const;
  void run_row_parts(int64_t begin, int64_t end, const char* from, char* to) const;
  void run_tiles(int64_t begin, int64_t end, const char* from, char* to) const;
  void copy_rows(const char* from, char* to, int64_t count) const;
  void copy_row(const char* from, char* to, int64_t count) const;

  LoopNest nest_;
  Form form_ = Form::Nothing;
  int64_t element_bytes_ = 1;
  const CopyLoops* loops_ = nullptr;  // for elements of element_bytes_
  StreamLoop stream_ = nullptr;
  RowLoop row_loop_ = nullptr;
  bool is_streamed_ = false;
  bool follows_result_ = false;  // Tiles: their order
  int64_t units_ = 0;
  int64_t unit_bytes_ = kUnitBytes;
  int64_t rows_ = 1;           // in all axes but the last one
  int64_t rows_per_unit_ = 1;  // for Tiles: tiles per unit
  int64_t parts_per_row_ = 1;  // if rows are longer than a unit
  int64_t part_ = 0;           // elements of a row per unit
  int64_t row_tiles_ = 1;      // Tiles: tiles along the rows and columns of each matrix
  int64_t column_tiles_ = 1;
  int64_t tile_rows_ = 0;
  int64_t tile_columns_ = 0;
};

}  // namespace tessera::native
