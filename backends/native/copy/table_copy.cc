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

// The only index of a line if no axis has a table.
constexpr int64_t kFirst = 0;

bool is_identity(const TableAxis& axis) {
  if (axis.table == nullptr) return true;
  for (int64_t index = 0; index < axis.size; ++index) {
    if (axis.table[index] != index) return false;
  }
  return true;
}

// How often each element is repeated in a row, if all are repeated equally often; else 0.
int64_t repeat_factor(std::span<const int64_t> table) {
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

int64_t TablePlan::memory_bytes(int64_t longest_table) {
  const auto entry = static_cast<int64_t>(sizeof(Run) + sizeof(int32_t));
  return std::max<int64_t>(1, longest_table) * entry;
}

TablePlan::TablePlan(std::span<const TableAxis> axes, int64_t element_bytes, void* memory)
    : element_bytes_(element_bytes),
      runs_(static_cast<Run*>(memory)),
      loops_(loops_for(find_copy_loops(), element_bytes)) {
  for (const TableAxis& axis : axes) lines_ *= axis.size;
  if (lines_ == 0) return;
  // Trailing axes along which nothing changes form a cell, as long as they are dense.
  size_t count = axes.size();
  while (count > 0 && axes[count - 1].stride == cell_ && is_identity(axes[count - 1])) {
    cell_ *= axes[count - 1].size;
    --count;
  }
  // The axis behind it lost its last elements, so it has a table, for which there is memory.
  if (count > 0 && axes[count - 1].table == nullptr) {
    cell_ /= axes[count].size;
    ++count;
  }
  const TableAxis line = count == 0 ? TableAxis{&kFirst, 1, 1} : axes[count - 1];
  line_stride_ = line.stride;
  line_cells_ = line.size;
  lines_ /= line_cells_ * cell_;
  if (count > 0) outer_ = axes.first(count - 1);
  find_runs(line);
  choose_form(line);
}

void TablePlan::find_runs(const TableAxis& line) {
  for (int64_t index = 0; index < line_cells_; ++index) {
    const int64_t source = line.source_of(index);
    if (run_count_ > 0) {
      Run& last = runs_[run_count_ - 1];
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
    runs_[run_count_++] = {source == kFill ? Kind::Fill : Kind::Copy, index, source, 1};
  }
}

void TablePlan::choose_form(const TableAxis& line) {
  if (cell_ != 1 || line_stride_ != 1) return;
  const std::span<const int64_t> table(line.table, static_cast<size_t>(line.size));
  factor_ = repeat_factor(table);
  if (factor_ > 1) {
    form_ = Form::Repeat;
    return;
  }
  const bool is_small = std::all_of(table.begin(), table.end(), [](int64_t source) {
    return source <= std::numeric_limits<int32_t>::max();
  });
  // A source without elements has nothing to gather.
  const bool has_source =
      std::any_of(table.begin(), table.end(), [](int64_t source) { return source != kFill; });
  if (!is_small || !has_source || run_count_ * kShortRun < line_cells_) return;
  form_ = Form::Gather;
  // The indices come after as many runs as there can be.
  gather_indices_ = reinterpret_cast<int32_t*>(runs_ + line_cells_);
  // Elements that are filled later first take any source.
  for (int64_t index = 0; index < line_cells_; ++index) {
    gather_indices_[index] = static_cast<int32_t>(std::max<int64_t>(line.table[index], 0));
  }
}

void TablePlan::fill_line(char* to, const void* fill) const {
  loops_->fill(fill, to, line_cells_ * cell_);
}

// Copies `count` elements. If `step` is 0, each is a copy of the element at `from`; otherwise
// `step` is the size of an element, and neighbouring elements are copied.
void TablePlan::copy_few(const char* from, int64_t step, char* to, int64_t count) const {
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

void TablePlan::copy_line(const char* from, char* to, const void* fill) const {
  if (form_ == Form::Repeat) return loops_->repeat_each(from, factor_, to, line_cells_ / factor_);
  if (form_ == Form::Gather) loops_->gather(from, gather_indices_, to, line_cells_);
  for (const Run& run : std::span<const Run>(runs_, static_cast<size_t>(run_count_))) {
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

void TablePlan::run(plugin::RunContext& context, const void* from, void* to,
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
        const TableAxis& along = outer_[axis];
        const int64_t part = along.source_of(position % along.size);
        position /= along.size;
        offset = part == kFill || offset == kFill ? kFill : offset + part * along.stride;
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

TableCopy::TableCopy(std::vector<SourceTable> tables, const std::vector<int64_t>& strides,
                     int64_t element_bytes) {
  const auto planned = std::make_shared<Planned>();
  planned->tables = std::move(tables);
  int64_t longest = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    const SourceTable& table = planned->tables[axis];
    const auto size = static_cast<int64_t>(table.size());
    planned->axes.push_back({.table = table.data(), .size = size, .stride = strides[axis]});
    longest = std::max(longest, size);
  }
  planned->memory.resize(static_cast<size_t>(TablePlan::memory_bytes(longest)));
  planned->plan = TablePlan(planned->axes, element_bytes, planned->memory.data());
  planned_ = planned;
}

void TableCopy::run(plugin::RunContext& context, const void* from, void* to,
                    const void* fill) const {
  planned_->plan.run(context, from, to, fill);
}

}  // namespace tessera::native
