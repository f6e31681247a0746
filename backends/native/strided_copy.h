// Copies from one arrangement of elements in memory to another: what transposing, slicing, joining,
// repeating and moving blocks about have in common. The host's copies of views
// (src/engine/strided_copy.h) know nothing of this: plug-ins and host share the contract alone.
#pragma once

#include <array>
#include <cstdint>

#include "copy_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// Loops over axes of any order: the element at (i, j, ...) goes from offset i * from[0] + j *
// from[1] ... to i * to[0] + .... Strides and offsets count elements; those of `from` may be zero
// or negative, and no two elements go to one place.
struct Nest {
  static constexpr int kMostAxes = 16;
  struct Axis {
    int64_t count = 0;
    int64_t from = 0;
    int64_t to = 0;
  };

  int rank = 0;
  std::array<Axis, kMostAxes> axes = {};

  // Axes of one element are left out. Throws Failure (TESSERA_UNSUPPORTED) where there are too many
  // others.
  void add(int64_t count, int64_t from, int64_t to);
};

// A nest, brought into the form that runs fastest. It owns nothing: making one allocates nothing.
class StridedCopy {
 public:
  enum class Form : uint8_t { Nothing, Rows, Fill, Tiles, Steps, Elements };

  StridedCopy() = default;
  // `output_bytes`: of the whole output, of which this may be a part. Where it is large, it is
  // written past the caches.
  StridedCopy(Nest nest, int64_t element_bytes, const CopyKernels& kernels, int64_t output_bytes);

  Form form() const { return form_; }
  const char* form_name() const;

  // Pieces of roughly kUnitBytes, to be shared out among threads.
  static constexpr int64_t kUnitBytes = int64_t{16} * 1024;
  int64_t units() const { return units_; }
  // Copies pieces [begin, end).
  void run(int64_t begin, int64_t end, const void* from, void* to) const;

 private:
  void order_axes();
  void merge_axes();
  void widen_elements();
  void choose_form();
  void read_in_order();
  void plan_rows();
  void plan_tiles();
  void run_rows(int64_t begin, int64_t end, const char* from, char* to) const;
  void run_row_parts(int64_t begin, int64_t end, const char* from, char* to) const;
  void run_tiles(int64_t begin, int64_t end, const char* from, char* to) const;
  void copy_rows(const char* from, char* to, int64_t count) const;
  void copy_row(const char* from, char* to, int64_t count) const;

  Nest nest_;
  Form form_ = Form::Nothing;
  int64_t element_bytes_ = 1;
  const CopyLoops* loops_ = nullptr;  // for elements of element_bytes_
  StreamLoop stream_ = nullptr;
  RowLoop row_loop_ = nullptr;
  bool is_streamed_ = false;
  int64_t units_ = 0;
  int64_t rows_ = 1;           // in all axes but the last one
  int64_t rows_per_unit_ = 1;  // Rows and its like; for Tiles: tiles
  int64_t parts_per_row_ = 1;  // where rows are longer than a unit
  int64_t part_ = 0;           // elements of a row in one unit
  int64_t row_tiles_ = 1;      // Tiles: how many there are along both sides of each matrix
  int64_t column_tiles_ = 1;
  int64_t tile_rows_ = 0;
  int64_t tile_columns_ = 0;
};

}  // namespace tessera::native
