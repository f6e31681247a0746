// Copies with a table of source indices for each axis: padding, and resizing to the nearest
// element.
#pragma once

#include <cstdint>
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

class TableCopy {
 public:
  // `strides` are those of the source, in elements. The target is dense, in the order of `tables`.
  TableCopy(const std::vector<SourceTable>& tables, const std::vector<int64_t>& strides,
            int64_t element_bytes);

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

  void find_runs(const SourceTable& line);
  void choose_form(const SourceTable& line);
  void fill_line(char* to, const void* fill) const;
  void copy_few(const char* from, int64_t step, char* to, int64_t count) const;
  void copy_line(const char* from, char* to, const void* fill) const;

  std::vector<SourceTable> outer_;  // offsets into the source, in elements; kFill
  int64_t lines_ = 1;
  int64_t element_bytes_;
  int64_t cell_ = 1;         // elements side by side that belong to one index of a line
  int64_t line_stride_ = 1;  // between positions of a line in the source
  int64_t line_cells_ = 1;
  std::vector<Run> runs_;
  Form form_ = Form::Runs;
  int64_t factor_ = 1;                   // Repeat
  std::vector<int32_t> gather_indices_;  // Gather
  const CopyLoops* loops_ = nullptr;
};

}  // namespace tessera::native
