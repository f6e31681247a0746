#include "copy/table_copy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/grain.h"
#include "layout/strided_layout.h"

namespace tessera::native {

namespace {

// If runs are shorter than this on average, elements are gathered one by one.
constexpr int64_t kShortRun = 8;
// Up to this many floats are copied without a call.
constexpr int64_t kFew = 4;

bool is_identity(const SourceTable& table) {
  for (size_t index = 0; index < table.size(); ++index) {
    if (table[index] != static_cast<int64_t>(index)) return false;
  }
  return true;
}

// How often each element is repeated in a row, if all are repeated equally often; else 0.
int64_t repeat_factor(const SourceTable& table) {
  const auto factor = static_cast<int64_t>(std::count(table.begin(), table.end(), 0));
  if (factor < 2 || static_cast<int64_t>(table.size()) % factor != 0) return 0;
  for (size_t index = 0; index < table.size(); ++index) {
    if (table[index] != static_cast<int64_t>(index) / factor) return 0;
  }
  return factor;
}

}  // namespace

SourceTable identity_table(int64_t dim) {
  SourceTable table;
  for (int64_t index = 0; index < dim; ++index) table.push_back(index);
  return table;
}

StorageTables storage_tables(const std::string& layout, const std::vector<int64_t>& dims,
                             std::vector<SourceTable> tables) {
  const StridedLayout source = strided_layout(layout, dims);
  if (source.block > 1) {
    tables[1] = identity_table(source.dims[1]);
    tables.push_back(identity_table(source.block));
  }
  StorageTables result{std::move(tables), source.strides};
  if (layout == "nhwc") {
    // Channels go last.
    std::rotate(result.tables.begin() + 1, result.tables.begin() + 2, result.tables.end());
    std::rotate(result.strides.begin() + 1, result.strides.begin() + 2, result.strides.end());
  }
  return result;
}

TableCopy::TableCopy(const std::vector<SourceTable>& tables, const std::vector<int64_t>& strides,
                     int64_t element_bytes)
    : element_bytes_(element_bytes), loops_(loops_for(find_copy_loops(), element_bytes)) {
  // Trailing axes along which nothing changes form a cell, as long as they are dense.
  size_t axes = tables.size();
  while (axes > 1 && is_identity(tables[axes - 1]) && strides[axes - 1] == cell_) {
    cell_ *= static_cast<int64_t>(tables[axes - 1].size());
    --axes;
  }
  const SourceTable single = {0};
  const SourceTable& line = axes == 0 ? single : tables[axes - 1];
  line_stride_ = axes == 0 ? 1 : strides[axes - 1];
  line_cells_ = static_cast<int64_t>(line.size());
  for (size_t axis = 0; axis + 1 < axes; ++axis) {
    SourceTable offsets = tables[axis];
    for (int64_t& offset : offsets) {
      if (offset != kFill) offset *= strides[axis];
    }
    lines_ *= static_cast<int64_t>(offsets.size());
    outer_.push_back(std::move(offsets));
  }
  if (line_cells_ == 0 || cell_ == 0) lines_ = 0;
  find_runs(line);
  choose_form(line);
}

void TableCopy::find_runs(const SourceTable& line) {
  for (int64_t index = 0; index < line_cells_; ++index) {
    const int64_t source = line[static_cast<size_t>(index)];
    if (!runs_.empty()) {
      Run& last = runs_.back();
      const bool is_next = last.kind == Kind::Copy && source != kFill && line_stride_ == cell_ &&
                           source == last.source + last.count;
      const bool is_before = (last.kind == Kind::Reverse || last.count == 1) &&
                             last.kind != Kind::Fill && source != kFill && line_stride_ == 1 &&
                             cell_ == 1 && source == last.source - last.count;
      if (is_next || is_before || (last.kind == Kind::Fill && source == kFill)) {
        if (is_before) last.kind = Kind::Reverse;
        ++last.count;
        continue;
      }
    }
    runs_.push_back({source == kFill ? Kind::Fill : Kind::Copy, index, source, 1});
  }
}

void TableCopy::choose_form(const SourceTable& line) {
  if (cell_ != 1 || line_stride_ != 1) return;
  factor_ = repeat_factor(line);
  if (factor_ > 1) {
    form_ = Form::Repeat;
    return;
  }
  const bool is_small = std::all_of(line.begin(), line.end(), [](int64_t source) {
    return source <= std::numeric_limits<int32_t>::max();
  });
  // A source without elements has nothing to gather.
  const bool has_source =
      std::any_of(line.begin(), line.end(), [](int64_t source) { return source != kFill; });
  if (!is_small || !has_source || static_cast<int64_t>(runs_.size()) * kShortRun < line_cells_)
    return;
  form_ = Form::Gather;
  // Elements that are filled later first take any source.
  for (const int64_t source : line)
    gather_indices_.push_back(static_cast<int32_t>(std::max<int64_t>(source, 0)));
}

void TableCopy::fill_line(char* to, const void* fill) const {
  loops_->fill(fill, to, line_cells_ * cell_);
}

// Copies `count` elements. If `step` is 0, each is a copy of the element at `from`; otherwise
// `step` is the size of an element, and neighbouring elements are copied.
void TableCopy::copy_few(const char* from, int64_t step, char* to, int64_t count) const {
  if (element_bytes_ == sizeof(float) && count <= kFew) {
    for (int64_t index = 0; index < count; ++index) {
      std::memcpy(to + index * element_bytes_, from + index * step, sizeof(float));
    }
  } else if (step == 0) {
    loops_->fill(from, to, count);
  } else {
    std::memcpy(to, from, static_cast<size_t>(count * element_bytes_));
  }
}

void TableCopy::copy_line(const char* from, char* to, const void* fill) const {
  if (form_ == Form::Repeat) return loops_->repeat_each(from, factor_, to, line_cells_ / factor_);
  if (form_ == Form::Gather) loops_->gather(from, gather_indices_.data(), to, line_cells_);
  for (const Run& run : runs_) {
    char* target = to + run.index * cell_ * element_bytes_;
    if (run.kind == Kind::Fill) {
      copy_few(static_cast<const char*>(fill), 0, target, run.count * cell_);
      continue;
    }
    if (form_ == Form::Gather) continue;
    const char* source = from + run.source * line_stride_ * element_bytes_;
    if (run.kind == Kind::Reverse) {
      loops_->strided(source, -1, target, run.count);
    } else {
      copy_few(source, element_bytes_, target, run.count * cell_);
    }
  }
}

void TableCopy::run(plugin::RunContext& context, const void* from, void* to,
                    const void* fill) const {
  if (lines_ == 0) return;
  const char* source = static_cast<const char*>(from);
  const int64_t line_bytes = line_cells_ * cell_ * element_bytes_;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / line_bytes);
  context.parallel_for(lines_, grain, [&](int64_t begin, int64_t end) {
    int64_t before = kFill;  // the source offset of the previous line
    for (int64_t line = begin; line < end; ++line) {
      int64_t position = line;
      int64_t offset = 0;
      for (size_t axis = outer_.size(); axis-- > 0;) {
        const auto dim = static_cast<int64_t>(outer_[axis].size());
        const int64_t part = outer_[axis][static_cast<size_t>(position % dim)];
        position /= dim;
        offset = part == kFill || offset == kFill ? kFill : offset + part;
      }
      char* target = static_cast<char*>(to) + line * line_bytes;
      if (offset == kFill) {
        fill_line(target, fill);
      } else if (offset == before) {
        std::memcpy(target, target - line_bytes, static_cast<size_t>(line_bytes));
      } else {
        copy_line(source + offset * element_bytes_, target, fill);
      }
      before = offset;
    }
  });
}

}  // namespace tessera::native
