// Rows of row_sparse tensors: gathered into dense ones (Gather), and updated by addition
// (ScatterND).
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/families.h"
#include "base/grain.h"
#include "base/indices.h"
#include "sparse/sparse.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RowSparseTarget;
using plugin::RowSparseView;
using plugin::RunContext;

namespace {

int64_t grain_of(int64_t row_bytes) {
  return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, row_bytes));
}

class GatherRowsKernel : public plugin::Kernel {
 public:
  GatherRowsKernel(int64_t rows, int64_t row_bytes) : rows_(rows), row_bytes_(row_bytes) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const RowSparseView table(inputs[0].data);
    const Indices indices(inputs[1]);
    char* to = outputs[0].as<char>();
    const auto size = static_cast<size_t>(row_bytes_);
    const int64_t* const end_of_rows = table.rows + table.stored();
    context.parallel_for(
        inputs[1].elements(), grain_of(row_bytes_), [&](int64_t begin, int64_t end) {
          for (int64_t position = begin; position < end; ++position) {
            const int64_t row = indices.at(position, rows_);
            const int64_t* found = std::lower_bound(table.rows, end_of_rows, row);
            char* target = to + position * row_bytes_;
            if (size == 0) continue;
            if (found == end_of_rows || *found != row) {
              std::memset(target, 0, size);
            } else {
              std::memcpy(target, table.values_as<char>() + (found - table.rows) * row_bytes_,
                          size);
            }
          }
        });
  }

 private:
  int64_t rows_;
  int64_t row_bytes_;
};

void offer_gather(ProposeContext& context, const Node& node) {
  const SparseShape shape = sparse_shape(node.input(0));
  const plugin::Type indices = node.input(1).type();
  const plugin::Type type = node.input(0).type();
  const bool is_offered = shape.format == TESSERA_ROW_SPARSE &&
                          node.attributes().get_int("axis") == 0 && indices.is_known() &&
                          plugin::element_bytes(type.data_type) > 0;
  if (!is_offered) return;
  plugin::Candidate candidate = sparse_candidate(node, 0);
  const int64_t row_bytes = shape.width * plugin::element_bytes(type.data_type);
  const auto bytes = 2.0 * static_cast<double>(indices.elements() * row_bytes);
  candidate.optimistic_seconds = sparse_seconds(context, 0, bytes);
  candidate.build = [rows = shape.rows, row_bytes](const plugin::BuildOptions&) {
    return std::make_unique<GatherRowsKernel>(rows, row_bytes);
  };
  context.add(std::move(candidate));
}

// A row, and the index of one of its updates.
struct UpdateOfRow {
  int64_t row = 0;
  int64_t update = 0;
  bool operator<(const UpdateOfRow& other) const {
    return row != other.row ? row < other.row : update < other.update;
  }
};

// The rows of a tensor and those of the updates; each update is added, in order.
class ScatterRowsKernel : public plugin::Kernel {
 public:
  ScatterRowsKernel(SparseShape shape, int64_t capacity, int64_t updates)
      : shape_(shape), capacity_(capacity), updates_(updates) {}

  static int64_t workspace_of(int64_t updates) {
    return updates * static_cast<int64_t>(sizeof(UpdateOfRow));
  }
  int64_t workspace_bytes() const override { return workspace_of(updates_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const RowSparseView data(inputs[0].data);
    const Indices indices(inputs[1]);
    auto* order = static_cast<UpdateOfRow*>(context.workspace());
    for (int64_t update = 0; update < updates_; ++update) {
      order[update] = {indices.at(update, shape_.rows), update};
    }
    std::sort(order, order + updates_);
    const int64_t row_bytes = shape_.width * static_cast<int64_t>(sizeof(float));
    const RowSparseTarget result(outputs[0].data, capacity_, row_bytes);
    const int64_t stored = merge_rows(data, order, result);
    result.header->stored = stored;
    context.parallel_for(stored, grain_of(row_bytes), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        fill_row(data, order, inputs[2].as<float>(), result, at);
      }
    });
  }

 private:
  // Writes the indices of rows that data or updates have, each once; returns their number.
  int64_t merge_rows(const RowSparseView& data, const UpdateOfRow* order,
                     const RowSparseTarget& result) const {
    int64_t count = 0;
    int64_t at = 0;
    int64_t update = 0;
    while (at < data.stored() || update < updates_) {
      const bool is_of_data =
          update == updates_ || (at < data.stored() && data.rows[at] <= order[update].row);
      const int64_t row = is_of_data ? data.rows[at] : order[update].row;
      if (is_of_data) ++at;
      while (update < updates_ && order[update].row == row) ++update;
      if (count < capacity_) result.rows[count] = row;
      ++count;
    }
    check_capacity(count, capacity_);
    return count;
  }

  void fill_row(const RowSparseView& data, const UpdateOfRow* order, const float* updates,
                const RowSparseTarget& result, int64_t at) const {
    const int64_t row = result.rows[at];
    float* target = result.values_as<float>() + at * shape_.width;
    const int64_t* const end_of_rows = data.rows + data.stored();
    const int64_t* found = std::lower_bound(data.rows, end_of_rows, row);
    const bool is_present = found != end_of_rows && *found == row;
    const float* source = data.values_as<float>() + (found - data.rows) * shape_.width;
    for (int64_t column = 0; column < shape_.width; ++column) {
      target[column] = is_present ? source[column] : 0;
    }
    const UpdateOfRow* next = std::lower_bound(order, order + updates_, UpdateOfRow{row, 0});
    for (; next != order + updates_ && next->row == row; ++next) {
      const float* update = updates + next->update * shape_.width;
      for (int64_t column = 0; column < shape_.width; ++column) target[column] += update[column];
    }
  }

  SparseShape shape_;
  int64_t capacity_;
  int64_t updates_;
};

void offer_scatter(ProposeContext& context, const Node& node) {
  const SparseShape shape = sparse_shape(node.input(0));
  const SparseShape result = sparse_shape(node.output(0));
  const plugin::Type indices = node.input(1).type();
  const bool is_offered =
      shape.format == TESSERA_ROW_SPARSE && result.format == TESSERA_ROW_SPARSE &&
      node.input(0).type().data_type == TESSERA_FLOAT32 && indices.is_known() && indices.rank > 0 &&
      indices.dims.back() == 1 && node.attributes().get_string("reduction") == "add" &&
      node.input(2).id() != node.input(0).id();
  if (!is_offered) return;
  plugin::Candidate candidate = sparse_candidate(node, 0);
  candidate.outputs[0].layout = TESSERA_LAYOUT_ROW_SPARSE;
  const int64_t updates = indices.elements();
  candidate.workspace_bytes = ScatterRowsKernel::workspace_of(updates);
  const double added = static_cast<double>(updates) * static_cast<double>(shape.width);
  candidate.optimistic_seconds =
      sparse_seconds(context, added, sizeof(float) * (2 * result.stored() + added));
  candidate.build = [shape, capacity = result.capacity, updates](const plugin::BuildOptions&) {
    return std::make_unique<ScatterRowsKernel>(shape, capacity, updates);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_sparse_rows(ProposeContext& context) {
  context.for_each({"Gather"}, [&](const Node& node) { offer_gather(context, node); });
  context.for_each({"ScatterND"}, [&](const Node& node) { offer_scatter(context, node); });
}

}  // namespace tessera::native
