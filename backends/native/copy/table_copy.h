// Copies with a table of source indices for each axis: padding, and resizing to the nearest
// element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "copy/copy_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// For each index along one axis of the target, the index in the source; kFill for elements without
// a source.
using SourceTable = std::vector<int64_t>;
inline constexpr int64_t kFill = -1;

SourceTable identity_table(int64_t dim);

// Tables and the strides of the source, with the axes in the order of memory; the lanes of blocks
// of channels are an axis of their own.
struct StorageTables {
  std::vector<SourceTable> tables;
  std::vector<int64_t> strides;
};

// `tables` are those of the logical axes, `dims` the sizes of the source. If the layout has blocks
// of channels, the table of channels must be the identity.
StorageTables storage_tables(const std::string& layout, const std::vector<int64_t>& dims,
                             std::vector<SourceTable> tables);

// One axis of a copy, in the order of memory.
struct TableAxis {
  const int64_t* table = nullptr;  // a SourceTable of `size` entries; null: the identity
  int64_t size = 1;                // of the target
  int64_t stride = 1;              // of the source, in elements

  int64_t source_of(int64_t index) const { return table == nullptr ? index : table[index]; }
};

// A planned copy, whose axes, tables and memory belong to the caller: a kernel can plan it in its
// workspace for the sizes of a run.
class TablePlan {
 public:
  // The memory that a plan needs if the longest of its tables has this many entries.
  static int64_t memory_bytes(int64_t longest_table);

  TablePlan() = default;
  // Source and target are dense in the order of `axes`; those without a table have as many elements
  // in both. `memory` is aligned for int64_t. All of them must outlive the plan.
  TablePlan(std::span<const TableAxis> axes, int64_t element_bytes, void* memory);

  // `fill` points to the element for indices without a source.
  void run(plugin::RunContext& context, const void* from, void* to, const void* fill) const;

 private:
  enum class Kind : uint8_t { Fill, Copy, Reverse };
  // Consecutive elements of a line with consecutive sources, or without a source.
  struct Run {
    Kind kind = Kind::Copy;
    int64_t index = 0;   // in the target's line
    int64_t source = 0;  // of its first element
    int64_t count = 0;
  };
  enum class Form : uint8_t { Runs, Repeat, Gather };

  void find_runs(const TableAxis& line);
  void choose_form(const TableAxis& line);
  void fill_line(char* to, const void* fill) const;
  void copy_few(const char* from, int64_t step, char* to, int64_t count) const;
  void copy_line(const char* from, char* to, const void* fill) const;

  std::span<const TableAxis> outer_;
  int64_t lines_ = 1;
  int64_t element_bytes_ = 1;
  int64_t cell_ = 1;         // elements side by side that belong to one index of a line
  int64_t line_stride_ = 1;  // between positions of a line in the source
  int64_t line_cells_ = 1;
  Run* runs_ = nullptr;
  int64_t run_count_ = 0;
  Form form_ = Form::Runs;
  int64_t factor_ = 1;                 // Repeat
  int32_t* gather_indices_ = nullptr;  // Gather
  const CopyLoops* loops_ = nullptr;
};

// A copy for one shape that has memory of its own, which its copies share.
class TableCopy {
 public:
  // `strides` are those of the source, in elements. The target is dense, in the order of `tables`.
  TableCopy(std::vector<SourceTable> tables, const std::vector<int64_t>& strides,
            int64_t element_bytes);

  // As TablePlan::run().
  void run(plugin::RunContext& context, const void* from, void* to, const void* fill) const;

 private:
  struct Planned {
    std::vector<SourceTable> tables;
    std::vector<TableAxis> axes;
    std::vector<std::byte> memory;
    TablePlan plan;
  };
  std::shared_ptr<const Planned> planned_;
};

}  // namespace tessera::native
