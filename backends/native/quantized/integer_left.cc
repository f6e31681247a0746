#include "quantized/integer_left.h"

#include <algorithm>
#include <cstring>

#include "base/divide_up.h"
#include "base/grain.h"

namespace tessera::native {

using plugin::RunContext;
using plugin::WindowAxis;

namespace {

constexpr int64_t kLeftStep = 4;  // bytes
constexpr int64_t kLineOfCache = 64;
constexpr auto kAddressBytes = static_cast<int64_t>(sizeof(const uint8_t*));

int64_t in_lines(int64_t bytes) { return divide_up(bytes, kLineOfCache) * kLineOfCache; }

}  // namespace

// --- LeftAccess ----------------------------------------------------------------------------------

LeftAccess::LeftAccess(const IntegerProduct& product, const IntegerLoops& loops, bool is_signed)
    : product_(product), loops_(loops), bytes_(loops.left_bytes()) {
  const bool has_form = loops.form == LeftForm::Bytes && !is_signed;
  const auto can_read = [&](int64_t stride, int64_t elements) {
    return has_form && stride == 1 && elements % loops.unit() == 0;
  };
  if (!product.has_patches) {
    if (can_read(product.left_depth_stride, product.depth)) way_ = Way::InPlace;
    return;
  }
  const BytePatches& patches = product.patches;
  way_ = can_read(patches.channel_stride, patches.channels) ? Way::InPlace : Way::Staged;
  // Staged rows have their padding beside them, so the taps of a row are neighbours.
  const bool is_joined = way_ == Way::Staged && patches.columns.dilation == 1 && product.count == 1;
  runs_ = patches.rows.kernel * (is_joined ? 1 : patches.columns.kernel);
}

int64_t LeftAccess::run_steps() const { return divide_up(run_elements(), loops_.unit()); }

int64_t LeftAccess::line_bytes() const { return run_steps() * kLeftStep; }

int64_t LeftAccess::row_bytes() const {
  if (!product_.has_patches) return line_bytes();
  const BytePatches& patches = product_.patches;
  // Neighbouring rows share pixels.
  const int64_t pixels = std::min(patches.rows.stride * patches.columns.stride,
                                  patches.rows.kernel * patches.columns.kernel);
  return pixels * patches.channels * bytes_ + runs_ * kAddressBytes;
}

// The loops may read one step behind the last element of a run.
int64_t LeftAccess::padding_bytes() const {
  return product_.has_patches ? in_lines(run_elements() * bytes_ + kLeftStep) : 0;
}

int64_t LeftAccess::staged_row_bytes() const {
  return staged_columns() * product_.patches.pixel_channels * bytes_;
}

int64_t LeftAccess::images() const {
  const BytePatches& patches = product_.patches;
  return product_.rows / std::max<int64_t>(patches.rows.output * patches.columns.output, 1);
}

int64_t LeftAccess::shared_bytes() const {
  if (way_ != Way::Staged) return padding_bytes();
  const int64_t rows = images() * product_.patches.rows.input;
  return padding_bytes() + in_lines(rows * staged_row_bytes() + kLeftStep);
}

int64_t LeftAccess::block_bytes(int64_t rows) const {
  const int64_t copied = way_ == Way::Copied ? in_lines(rows * line_bytes()) : 0;
  return copied + rows * runs_ * kAddressBytes;
}

// --- LeftRows ------------------------------------------------------------------------------------

LeftRows::LeftRows(const IntegerProduct& product, const IntegerLoops& loops,
                   const LeftElements& elements, const uint8_t* from, uint8_t* shared)
    : LeftAccess(product, loops, elements.is_signed),
      elements_(elements),
      from_(from),
      shared_(shared) {}

void LeftRows::prepare(RunContext& context) const {
  if (!product_.has_patches) return;
  fill(run_elements(), shared_);
  if (way_ != Way::Staged) return;
  const int64_t row_bytes = staged_row_bytes();
  const int64_t rows = images() * product_.patches.rows.input;
  const int64_t grain = kGrain / std::max<int64_t>(row_bytes, 1) + 1;
  context.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      stage_row(row, shared_ + padding_bytes() + row * row_bytes);
    }
  });
}

void LeftRows::fill(int64_t count, uint8_t* to) const {
  std::memset(to, loops_.left_zero(elements_), static_cast<size_t>(count * bytes_));
}

// Row `row` of the rows of all images.
void LeftRows::stage_row(int64_t row, uint8_t* to) const {
  const BytePatches& patches = product_.patches;
  const WindowAxis& columns = patches.columns;
  const int64_t channels = patches.pixel_channels;
  const int64_t first = std::clamp<int64_t>(columns.pad_begin, 0, staged_columns());
  const int64_t end =
      std::clamp<int64_t>(columns.pad_begin + columns.input, first, staged_columns());
  const uint8_t* const from =
      from_ + row / patches.rows.input * patches.image_stride +
      (row % patches.rows.input * columns.input + first - columns.pad_begin) * patches.pixel_stride;
  fill(first * channels, to);
  uint8_t* const inner = to + first * channels * bytes_;
  if (patches.channel_stride == 1) {
    loops_.copy(from, (end - first) * channels, elements_, inner);
  } else {
    for (int64_t channel = 0; channel < channels; ++channel) {
      loops_.spread(from + channel * patches.channel_stride, end - first, elements_, channels,
                    inner + channel * bytes_);
    }
  }
  fill((staged_columns() - end) * channels, to + end * channels * bytes_);
}

const uint8_t* const* LeftRows::find(int64_t product, int64_t row, int64_t rows,
                                     uint8_t* memory) const {
  const int64_t copied = way_ == Way::Copied ? in_lines(rows * line_bytes()) : 0;
  const auto** const addresses = reinterpret_cast<const uint8_t**>(memory + copied);
  if (product_.has_patches) {
    find_patches(product, row, rows, addresses);
    return addresses;
  }
  const int64_t offset =
      product_.has_batch ? product_.batch.offsets_of(product).left : product * product_.left_stride;
  const uint8_t* from = from_ + offset + row * product_.left_row_stride;
  for (int64_t each = 0; each < rows; ++each, from += product_.left_row_stride) {
    addresses[each] = from;
    if (way_ == Way::InPlace) continue;
    copy_line(from, memory);
    addresses[each] = memory;
    memory += line_bytes();
  }
  return addresses;
}

void LeftRows::copy_line(const uint8_t* from, uint8_t* to) const {
  const int64_t stride = product_.left_depth_stride;
  if (stride == 1) {
    loops_.copy(from, product_.depth, elements_, to);
  } else {
    for (int64_t index = 0; index < product_.depth; ++index) {
      loops_.copy(from + index * stride, 1, elements_, to + index * bytes_);
    }
  }
  const int64_t used = product_.depth * bytes_;
  std::memset(to + used, 0, static_cast<size_t>(line_bytes() - used));
}

void LeftRows::find_patches(int64_t product, int64_t row, int64_t rows, const uint8_t** to) const {
  const int64_t width = product_.patches.columns.output;
  int64_t line = row / width;
  int64_t column = row % width;
  for (int64_t found = 0; found < rows; ++line) {
    const int64_t count = std::min(width - column, rows - found);
    find_patches_of_line(product, line, column, count, to + found * runs_);
    found += count;
    column = 0;
  }
}

// Those of some neighbouring outputs, of line `line` of the lines of all images.
void LeftRows::find_patches_of_line(int64_t product, int64_t line, int64_t column, int64_t count,
                                    const uint8_t** to) const {
  const BytePatches& patches = product_.patches;
  const WindowAxis& lines = patches.rows;
  const WindowAxis& columns = patches.columns;
  const bool is_staged = way_ == Way::Staged;
  const int64_t width = is_staged ? staged_columns() : columns.input;
  const int64_t pixel_bytes = patches.pixel_channels * bytes_;
  const int64_t row_bytes = width * pixel_bytes;
  const uint8_t* const image = (is_staged ? shared_ + padding_bytes() : from_) +
                               product * patches.channels * bytes_ +
                               line / lines.output * lines.input * row_bytes;
  const int64_t top = line % lines.output * lines.stride - lines.pad_begin;
  const int64_t left = column * columns.stride - (is_staged ? 0 : columns.pad_begin);
  const int64_t across = runs_ / lines.kernel;  // runs in a row of the window
  for (int64_t run = 0; run < runs_; ++run) {
    const int64_t input_row = top + run / across * lines.dilation;
    const bool has_row = input_row >= 0 && input_row < lines.input;
    // None of the pixels of a row of padding are inside.
    const int64_t end = has_row ? width : 0;
    int64_t input_column = left + run % across * columns.dilation;
    const uint8_t* from = image + input_row * row_bytes + input_column * pixel_bytes;
    const uint8_t** address = to + run;
    for (int64_t each = 0; each < count; ++each, address += runs_) {
      *address = input_column >= 0 && input_column < end ? from : shared_;
      input_column += columns.stride;
      from += columns.stride * pixel_bytes;
    }
  }
}

void LeftRows::sum(const uint8_t* const* found, int64_t rows, int32_t* sums) const {
  const auto zeros =
      static_cast<uint32_t>(product_.depth) * static_cast<uint32_t>(loops_.left_zero(elements_));
  for (int64_t row = 0; row < rows; ++row) {
    uint32_t total = 0;
    for (int64_t run = 0; run < runs_; ++run) total += loops_.sum(*found++, run_elements());
    sums[row] = static_cast<int32_t>(total - zeros);
  }
}

}  // namespace tessera::native
