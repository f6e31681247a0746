#include "copy/strided_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/streaming.h"
#include "hwy/cache_control.h"

namespace tessera::native {

namespace {

// Longer rows are split into units.
constexpr int64_t kLongRowBytes = 2 * StridedCopy::kUnitBytes;
// Each longer row is copied by one call.
constexpr int64_t kMaxInlineRowBytes = 2048;
// The sides of the tiles of a transpose, in bytes of the result and of the source: a few cache
// lines each way, more of them where they are written.
constexpr int64_t kTileRowBytes = 1024;
constexpr int64_t kTileColumnBytes = 256;
// Strides between rows of a result whose lines compete with each other.
constexpr int64_t kCompetingStrideBytes = 512;
constexpr int64_t kLongStrideBytes = int64_t{128} * 1024;
// repeat_row() doubles the pattern that it copies up to this size.
constexpr int64_t kPatternBytes = 512;

// The position of a row in the outer axes of a loop nest, with its offsets; advances from row to
// row.
class Odometer {
 public:
  // Iterates over the first `rank` axes.
  Odometer(const LoopNest& nest, int rank, int64_t row) : nest_(nest), rank_(rank) {
    for (int axis = rank; axis-- > 0;) {
      const LoopNest::Axis& along = nest.axes[static_cast<size_t>(axis)];
      int64_t& position = positions_[static_cast<size_t>(axis)];
      position = row % along.count;
      row /= along.count;
      from_ += position * along.from;
      to_ += position * along.to;
    }
  }

  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  // The remaining steps along the last axis.
  int64_t left() const {
    const auto last = static_cast<size_t>(rank_ - 1);
    return rank_ == 0 ? 1 : nest_.axes[last].count - positions_[last];
  }
  // `steps` is at most left().
  void advance(int64_t steps) {
    for (int axis = rank_; axis-- > 0;) {
      const LoopNest::Axis& along = nest_.axes[static_cast<size_t>(axis)];
      int64_t& position = positions_[static_cast<size_t>(axis)];
      position += steps;
      from_ += steps * along.from;
      to_ += steps * along.to;
      if (position < along.count) return;
      from_ -= along.count * along.from;
      to_ -= along.count * along.to;
      position = 0;
      steps = 1;
    }
  }

 private:
  const LoopNest& nest_;
  int rank_;
  int64_t from_ = 0;
  int64_t to_ = 0;
  std::array<int64_t, LoopNest::kMaxAxes> positions_ = {};
};

template <int64_t kBytes>
void copy_fixed(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t count) {
  for (int64_t row = 0; row < count; ++row) {
    std::memcpy(to + row * to_stride, from + row * from_stride, kBytes);
  }
}

// Rows of kHalf to 2 * kHalf bytes, as two halves that may overlap: no call and no inner loop.
template <int64_t kHalf>
void copy_halves(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t count,
                 int64_t bytes) {
  for (int64_t row = 0; row < count; ++row) {
    const char* source = from + row * from_stride;
    char* target = to + row * to_stride;
    char first[kHalf];
    char second[kHalf];
    std::memcpy(first, source, kHalf);
    std::memcpy(second, source + bytes - kHalf, kHalf);
    std::memcpy(target, first, kHalf);
    std::memcpy(target + bytes - kHalf, second, kHalf);
  }
}

// `count` copies of one row of `bytes`, side by side.
void repeat_row(const char* row, char* to, int64_t bytes, int64_t count) {
  const int64_t total = bytes * count;
  int64_t done = bytes;
  std::memcpy(to, row, static_cast<size_t>(bytes));
  while (done < total) {
    const int64_t pattern = std::max(bytes, std::min(done, kPatternBytes / bytes * bytes));
    const int64_t step = std::min(pattern, total - done);
    std::memcpy(to + done, to, static_cast<size_t>(step));
    done += step;
  }
}

// Rows of `bytes`; strides in bytes.
void copy_short_rows(const char* from, int64_t from_stride, char* to, int64_t to_stride,
                     int64_t count, int64_t bytes) {
  if (from_stride == 0 && to_stride == bytes) return repeat_row(from, to, bytes, count);
  switch (bytes) {
    case 1:
      return copy_fixed<1>(from, from_stride, to, to_stride, count);
    case 2:
      return copy_fixed<2>(from, from_stride, to, to_stride, count);
    case 4:
      return copy_fixed<4>(from, from_stride, to, to_stride, count);
    case 8:
      return copy_fixed<8>(from, from_stride, to, to_stride, count);
    case 16:
      return copy_fixed<16>(from, from_stride, to, to_stride, count);
    default:
      break;
  }
  if (bytes > 8 && bytes < 16) {
    return copy_halves<8>(from, from_stride, to, to_stride, count, bytes);
  }
  if (bytes > 16 && bytes <= 32) {
    return copy_halves<16>(from, from_stride, to, to_stride, count, bytes);
  }
  if (bytes > 32 && bytes <= 64) {
    return copy_halves<32>(from, from_stride, to, to_stride, count, bytes);
  }
  for (int64_t row = 0; row < count; ++row) {
    std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<size_t>(bytes));
  }
}

}  // namespace

void LoopNest::add(int64_t count, int64_t from, int64_t to) {
  if (count == 1) return;
  if (rank == kMaxAxes) {
    throw plugin::Failure(
        TESSERA_UNSUPPORTED,
        "takes tensors of up to " + std::to_string(kMaxAxes) + " axes longer than 1 only");
  }
  axes[static_cast<size_t>(rank++)] = {count, from, to};
}

StridedCopy::StridedCopy(LoopNest nest, int64_t element_bytes, const CopyKernels& kernels,
                         int64_t output_bytes)
    : nest_(nest), element_bytes_(element_bytes), stream_(kernels.stream), row_loop_(kernels.rows) {
  for (int axis = 0; axis < nest_.rank; ++axis) {
    if (nest_.axes[static_cast<size_t>(axis)].count == 0) return;
  }
  order_axes();
  merge_axes();
  widen_elements();
  choose_form();
  is_streamed_ = is_worth_streaming(output_bytes);
  follows_result_ = form_ == Form::Tiles && follows_result(output_bytes);
  loops_ = loops_for(kernels.loops, element_bytes_);
  rows_ = 1;
  for (int axis = 0; axis + 1 < nest_.rank; ++axis) {
    rows_ *= nest_.axes[static_cast<size_t>(axis)].count;
  }
  if (form_ == Form::Tiles) {
    plan_tiles();
  } else {
    plan_rows();
  }
}

const char* StridedCopy::form_name() const {
  switch (form_) {
    case Form::Nothing:
      return "nothing";
    case Form::Rows:
      return "rows";
    case Form::Fill:
      return "fill";
    case Form::Tiles:
      return "tiles";
    case Form::Steps:
      return "steps";
    case Form::Elements:
      return "elements";
  }
  return "";
}

namespace {

// Sorts the first `count` axes and keeps the order of those that are equal. std::stable_sort
// allocates memory.
template <class IsBefore>
void sort_axes(LoopNest& nest, int count, const IsBefore& is_before) {
  const auto begin = nest.axes.begin();
  for (auto axis = begin; axis != begin + count; ++axis) {
    for (auto moved = axis; moved != begin && is_before(*moved, *(moved - 1)); --moved) {
      std::iter_swap(moved, moved - 1);
    }
  }
}

}  // namespace

// The outermost axis of the target first.
void StridedCopy::order_axes() {
  sort_axes(nest_, nest_.rank, [](const LoopNest::Axis& one, const LoopNest::Axis& other) {
    return one.to > other.to;
  });
}

void StridedCopy::merge_axes() {
  int rank = 0;
  for (int axis = 0; axis < nest_.rank; ++axis) {
    const LoopNest::Axis next = nest_.axes[static_cast<size_t>(axis)];
    if (rank > 0) {
      LoopNest::Axis& last = nest_.axes[static_cast<size_t>(rank - 1)];
      if (last.from == next.from * next.count && last.to == next.to * next.count) {
        last = {last.count * next.count, next.from, next.to};
        continue;
      }
    }
    nest_.axes[static_cast<size_t>(rank++)] = next;
  }
  if (rank == 0) nest_.axes[static_cast<size_t>(rank++)] = {1, 1, 1};
  nest_.rank = rank;
}

bool StridedCopy::is_worth_streaming(int64_t output_bytes) const {
  if (form_ != Form::Tiles) return output_bytes >= kStreamedCopyBytes;
  if (has_aligned_rows()) return output_bytes >= kStreamedTransposeBytes;
  const int64_t row_bytes = nest_.axes[static_cast<size_t>(nest_.rank - 1)].count * element_bytes_;
  return output_bytes >= kStreamedCopyBytes && row_bytes >= kStreamedRunBytes;
}

// Whether a transpose follows the rows of its result. In the order of the source, one line of each
// row after the other is written: rows that begin at few offsets in pages compete for few sets of
// the caches, and very long rows for entries of the table of pages. If the result goes to memory
// past the caches, the order of reading matters more.
bool StridedCopy::follows_result(int64_t output_bytes) const {
  const LoopNest::Axis& columns = nest_.axes[static_cast<size_t>(nest_.rank - 2)];
  const LoopNest::Axis& rows = nest_.axes[static_cast<size_t>(nest_.rank - 1)];
  const int64_t stride = columns.to * element_bytes_;
  if (stride % kCompetingStrideBytes != 0 && stride < kLongStrideBytes) return false;
  const bool is_in_memory = is_streamed_ && output_bytes >= kStreamedCopyBytes;
  return !is_in_memory || rows.from * element_bytes_ >= kFarRowBytes;
}

// Whether all rows of the result of a transpose begin at lines if the result does.
bool StridedCopy::has_aligned_rows() const {
  return nest_.axes[static_cast<size_t>(nest_.rank - 2)].to * element_bytes_ % kLineBytes == 0;
}

// A few neighbouring elements are copied as one wider element.
void StridedCopy::widen_elements() {
  const LoopNest::Axis last = nest_.axes[static_cast<size_t>(nest_.rank - 1)];
  const bool is_power = std::has_single_bit(static_cast<uint64_t>(last.count));
  if (nest_.rank < 2 || last.from != 1 || last.to != 1 || !is_power ||
      last.count * element_bytes_ > kMaxElementBytes) {
    return;
  }
  for (int axis = 0; axis + 1 < nest_.rank; ++axis) {
    const LoopNest::Axis& other = nest_.axes[static_cast<size_t>(axis)];
    if (other.from % last.count != 0 || other.to % last.count != 0) return;
  }
  --nest_.rank;
  element_bytes_ *= last.count;
  for (int axis = 0; axis < nest_.rank; ++axis) {
    nest_.axes[static_cast<size_t>(axis)].from /= last.count;
    nest_.axes[static_cast<size_t>(axis)].to /= last.count;
  }
}

void StridedCopy::choose_form() {
  const auto end = nest_.axes.begin() + nest_.rank;
  const LoopNest::Axis last = *(end - 1);
  if (last.to != 1) {
    form_ = Form::Elements;
  } else if (last.from == 1) {
    form_ = Form::Rows;
  } else if (last.from == 0) {
    form_ = Form::Fill;
  } else {
    const auto found = std::find_if(nest_.axes.begin(), end - 1,
                                    [](const LoopNest::Axis& axis) { return axis.from == 1; });
    form_ = found == end - 1 ? Form::Steps : Form::Tiles;
    // The axis along which the source is contiguous becomes the second last one.
    if (form_ == Form::Tiles) std::rotate(found, found + 1, end - 1);
  }
}

void StridedCopy::plan_rows() {
  const int64_t length = nest_.axes[static_cast<size_t>(nest_.rank - 1)].count;
  const int64_t bytes = length * element_bytes_;
  if (bytes > kLongRowBytes) {
    part_ = kUnitBytes / element_bytes_;
    parts_per_row_ = divide_up(length, part_);
    units_ = rows_ * parts_per_row_;
  } else {
    rows_per_unit_ = std::max<int64_t>(1, kUnitBytes / bytes);
    units_ = divide_up(rows_, rows_per_unit_);
  }
  if (form_ == Form::Rows && is_streamed_ && bytes >= kMinRowBytes) read_in_order();
}

// The order of streamed writes does not matter, but reads should follow the order of memory.
// Repeated rows (stride 0) stay together.
void StridedCopy::read_in_order() {
  sort_axes(nest_, nest_.rank - 1, [](const LoopNest::Axis& one, const LoopNest::Axis& other) {
    return one.from != 0 && other.from != 0 && one.from > other.from;
  });
}

void StridedCopy::plan_tiles() {
  const LoopNest::Axis& columns = nest_.axes[static_cast<size_t>(nest_.rank - 2)];
  const LoopNest::Axis& rows = nest_.axes[static_cast<size_t>(nest_.rank - 1)];
  rows_ /= columns.count;  // now the number of matrices
  const bool has_runs = is_streamed_ && !has_aligned_rows();
  const int64_t row_side = (has_runs ? kStreamedRunBytes : kTileRowBytes) / element_bytes_;
  const int64_t column_side = kTileColumnBytes / element_bytes_;
  const int64_t area = row_side * column_side;
  // Narrow matrices are split along their longer side only.
  tile_rows_ = std::min(rows.count, row_side);
  tile_columns_ = std::min(columns.count, column_side);
  if (columns.count < column_side) {
    tile_rows_ = std::min(rows.count, area / columns.count / row_side * row_side);
  }
  if (rows.count < row_side) {
    tile_columns_ = std::min(columns.count, area / rows.count / column_side * column_side);
  }
  row_tiles_ = divide_up(rows.count, tile_rows_);
  column_tiles_ = divide_up(columns.count, tile_columns_);
  const int64_t bytes = tile_rows_ * tile_columns_ * element_bytes_;
  rows_per_unit_ = std::max<int64_t>(1, kUnitBytes / bytes);
  unit_bytes_ = rows_per_unit_ * bytes;
  units_ = divide_up(rows_ * row_tiles_ * column_tiles_, rows_per_unit_);
}

void StridedCopy::run(int64_t begin, int64_t end, const void* from, void* to) const {
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(to);
  if (form_ == Form::Tiles) {
    const int64_t tiles = rows_ * row_tiles_ * column_tiles_;
    run_tiles(begin * rows_per_unit_, std::min(end * rows_per_unit_, tiles), source, target);
  } else if (parts_per_row_ > 1) {
    run_row_parts(begin, end, source, target);
  } else {
    run_rows(begin * rows_per_unit_, std::min(end * rows_per_unit_, rows_), source, target);
  }
  if (is_streamed_) hwy::FlushStream();
}

void StridedCopy::run_rows(int64_t begin, int64_t end, const char* from, char* to) const {
  Odometer odometer(nest_, nest_.rank - 1, begin);
  while (begin < end) {
    const int64_t count = std::min(end - begin, odometer.left());
    copy_rows(from + odometer.from() * element_bytes_, to + odometer.to() * element_bytes_, count);
    odometer.advance(count);
    begin += count;
  }
}

// Copies `count` rows along the second last axis.
void StridedCopy::copy_rows(const char* from, char* to, int64_t count) const {
  const LoopNest::Axis& last = nest_.axes[static_cast<size_t>(nest_.rank - 1)];
  const LoopNest::Axis outer =
      nest_.rank > 1 ? nest_.axes[static_cast<size_t>(nest_.rank - 2)] : LoopNest::Axis{1, 0, 0};
  const int64_t from_stride = outer.from * element_bytes_;
  const int64_t to_stride = outer.to * element_bytes_;
  const int64_t bytes = last.count * element_bytes_;
  if (form_ == Form::Rows && bytes < kMinRowBytes) {
    return copy_short_rows(from, from_stride, to, to_stride, count, bytes);
  }
  if (form_ == Form::Rows && bytes <= kMaxInlineRowBytes) {
    return row_loop_({.from = from,
                      .from_stride = from_stride,
                      .to = to,
                      .to_stride = to_stride,
                      .count = count,
                      .bytes = bytes,
                      .is_streamed = is_streamed_});
  }
  for (int64_t row = 0; row < count; ++row) {
    copy_row(from + row * from_stride, to + row * to_stride, last.count);
  }
}

// Copies `count` elements along the last axis.
void StridedCopy::copy_row(const char* from, char* to, int64_t count) const {
  const LoopNest::Axis& last = nest_.axes[static_cast<size_t>(nest_.rank - 1)];
  switch (form_) {
    case Form::Rows:
      if (is_streamed_) return stream_(from, to, count * element_bytes_);
      std::memcpy(to, from, static_cast<size_t>(count * element_bytes_));
      return;
    case Form::Fill:
      return (is_streamed_ ? loops_->stream_fill : loops_->fill)(from, to, count);
    case Form::Steps:
      return loops_->strided(from, last.from, to, count);
    default:
      return copy_short_rows(from, last.from * element_bytes_, to, last.to * element_bytes_, count,
                             element_bytes_);
  }
}

void StridedCopy::run_row_parts(int64_t begin, int64_t end, const char* from, char* to) const {
  const LoopNest::Axis& last = nest_.axes[static_cast<size_t>(nest_.rank - 1)];
  int64_t row = begin / parts_per_row_;
  int64_t part = begin % parts_per_row_;
  Odometer odometer(nest_, nest_.rank - 1, row);
  while (begin < end) {
    // Consecutive parts of one row are copied at once.
    const int64_t parts = std::min(end - begin, parts_per_row_ - part);
    const int64_t first = part * part_;
    const int64_t count = std::min((part + parts) * part_, last.count) - first;
    const char* source = from + (odometer.from() + first * last.from) * element_bytes_;
    char* target = to + (odometer.to() + first * last.to) * element_bytes_;
    copy_row(source, target, count);
    begin += parts;
    part = 0;
    odometer.advance(1);
  }
}

void StridedCopy::run_tiles(int64_t begin, int64_t end, const char* from, char* to) const {
  const LoopNest::Axis& columns = nest_.axes[static_cast<size_t>(nest_.rank - 2)];
  const LoopNest::Axis& rows = nest_.axes[static_cast<size_t>(nest_.rank - 1)];
  const int64_t tiles = row_tiles_ * column_tiles_;
  Odometer odometer(nest_, nest_.rank - 2, begin / tiles);
  int64_t tile = begin % tiles;
  for (; begin < end; ++begin) {
    const int64_t row = tile % row_tiles_ * tile_rows_;
    const int64_t column = tile / row_tiles_ * tile_columns_;
    MatrixTranspose matrix;
    matrix.from = from + (odometer.from() + row * rows.from + column) * element_bytes_;
    matrix.from_stride = rows.from;
    matrix.to = to + (odometer.to() + column * columns.to + row) * element_bytes_;
    matrix.to_stride = columns.to;
    matrix.rows = std::min(tile_rows_, rows.count - row);
    matrix.columns = std::min(tile_columns_, columns.count - column);
    matrix.is_streamed = is_streamed_;
    matrix.follows_result = follows_result_;
    loops_->transpose(matrix);
    if (++tile < tiles) continue;
    tile = 0;
    odometer.advance(1);
  }
}

}  // namespace tessera::native
