// Copies in which a table for each axis says where elements come from: padding, and resizing to the
// nearest element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "copy_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// Along one axis: the place in the source for each place in the target, kFilled for none.
using SourceTable = std::vector<int64_t>;
inline constexpr int64_t kFilled = -1;

SourceTable identity_table(int64_t dim);

// Tables and the source's strides, in the order in which a layout keeps the axes, the lanes of
// blocks of channels included.
struct ArrangedTables {
  std::vector<SourceTable> tables;
  std::vector<int64_t> strides;
};

// `tables` are those of the logical axes, `dims` of the source. Where the layout has blocks of
// channels, all channels must stay what they are.
ArrangedTables arrange_tables(const std::string& layout, const std::vector<int64_t>& dims,
                              std::vector<SourceTable> tables);

class TableCopy {
 public:
  // `strides` are those of the source, in elements; the target is dense in the order of `tables`.
  TableCopy(const std::vector<SourceTable>& tables, const std::vector<int64_t>& strides,
            int64_t element_bytes);

  // `fill` points at the element that stands where there is no source.
  void run(plugin::RunContext& context, const void* from, void* to, const void* fill) const;

 private:
  enum class Kind : uint8_t { Fill, Copy, Reverse };
  // Neighbours in a line that come from neighbours, or from nowhere.
  struct Run {
    Kind kind = Kind::Copy;
    int64_t place = 0;   // in the target's line
    int64_t source = 0;  // of its first element
    int64_t count = 0;
  };
  enum class Form : uint8_t { Runs, Repeat, Pick };

  void find_runs(const SourceTable& line);
  void choose_form(const SourceTable& line);
  void fill_line(char* to, const void* fill) const;
  void put_few(const char* from, int64_t step, char* to, int64_t count) const;
  void copy_line(const char* from, char* to, const void* fill) const;

  std::vector<SourceTable> outer_;  // offsets into the source, in elements; kFilled
  int64_t lines_ = 1;
  int64_t element_bytes_;
  int64_t cell_ = 1;         // elements side by side that belong to one place of a line
  int64_t line_stride_ = 1;  // between places of a line in the source
  int64_t line_cells_ = 1;
  std::vector<Run> runs_;
  Form form_ = Form::Runs;
  int64_t factor_ = 1;           // Repeat
  std::vector<int32_t> places_;  // Pick
  const CopyLoops* loops_ = nullptr;
};

}  // namespace tessera::native
