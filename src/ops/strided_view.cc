#include "ops/strided_view.h"

#include <algorithm>
#include <cstring>

#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int64_t kGrainElements = 16384;

int64_t count_of(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim == 0) return 0;
  }
  for (const int64_t dim : dims) count *= dim;
  return count;
}

}  // namespace

std::pmr::vector<int64_t> dense_strides(std::span<const int64_t> dims,
                                        std::pmr::memory_resource* memory) {
  std::pmr::vector<int64_t> strides(dims.size(), 0, memory);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return strides;
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

StridedView dense_view(std::span<const int64_t> dims, std::pmr::memory_resource* memory) {
  StridedView view(memory);
  view.dims.assign(dims.begin(), dims.end());
  view.strides = dense_strides(dims, memory);
  return view;
}

StridedView merged(const StridedView& view) {
  StridedView result(view.memory());
  result.offset = view.offset;
  for (size_t axis = 0; axis < view.dims.size(); ++axis) {
    const int64_t dim = view.dims[axis];
    const int64_t stride = view.strides[axis];
    if (dim == 1) continue;
    if (!result.dims.empty() && result.strides.back() == stride * dim) {
      result.dims.back() *= dim;
      result.strides.back() = stride;
    } else {
      result.dims.push_back(dim);
      result.strides.push_back(stride);
    }
  }
  if (result.dims.empty()) {
    result.dims = {1};
    result.strides = {1};
  }
  return result;
}

Odometer::Odometer(const StridedView& view, int64_t position)
    : view_(view), coordinates_(view.dims.size(), view.memory()), offset_(view.offset) {
  const std::span<int64_t> coordinates = coordinates_.values();
  for (size_t axis = view.dims.size(); axis-- > 0;) {
    coordinates[axis] = position % view.dims[axis];
    position /= view.dims[axis];
    offset_ += coordinates[axis] * view.strides[axis];
  }
}

void Odometer::advance() {
  const std::span<int64_t> coordinates = coordinates_.values();
  for (size_t axis = coordinates.size(); axis-- > 0;) {
    offset_ += view_.strides[axis];
    if (++coordinates[axis] < view_.dims[axis]) return;
    offset_ -= view_.strides[axis] * view_.dims[axis];
    coordinates[axis] = 0;
  }
}

void copy_view(const KernelCall& call, const StridedView& view) {
  if (count_of(view.dims) == 0) return;
  StridedView rows = merged(view);
  const int64_t length = rows.dims.back();
  const int64_t stride = rows.strides.back();
  rows.dims.pop_back();
  rows.strides.pop_back();
  const int64_t grain = std::max<int64_t>(1, kGrainElements / length);
  visit_size(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = call.inputs[0].as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(count_of(rows.dims), grain, [&](int64_t begin, int64_t end) {
      Odometer odometer(rows, begin);
      for (int64_t row = begin; row < end; ++row, odometer.advance()) {
        const T* from = source + odometer.offset();
        T* to = target + row * length;
        if (stride == 1) {
          std::memcpy(to, from, static_cast<size_t>(length) * sizeof(T));
        } else {
          for (int64_t index = 0; index < length; ++index) to[index] = from[index * stride];
        }
      }
    });
  });
}

std::vector<Dim> view_elements(const StridedView& view, const std::vector<Dim>& source) {
  std::vector<Dim> elements;
  const int64_t count = count_of(view.dims);
  if (count == 0) return elements;
  Odometer odometer(view, 0);
  for (int64_t index = 0; index < count; ++index, odometer.advance()) {
    elements.push_back(source[static_cast<size_t>(odometer.offset())]);
  }
  return elements;
}

void copy_indexed(const KernelCall& call, const SourceTables& tables, const void* fill) {
  const TensorView& source = call.inputs[0];
  const MutableTensorView& target = call.outputs[0];
  if (target.elements == 0) return;
  // A scalar is one row of one element.
  const int64_t alone = 0;
  const std::span<const int64_t> columns =
      tables.empty() ? std::span(&alone, 1) : std::span(tables.back());
  const size_t outer_axes = tables.empty() ? 0 : tables.size() - 1;
  const auto length = static_cast<int64_t>(columns.size());
  const std::pmr::vector<int64_t> strides = dense_strides(source.dims, &call.scratch);
  visit_size(source.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T filler;
    std::memcpy(&filler, fill, sizeof(T));
    const T* from = source.as<T>().data();
    T* to = target.as<T>().data();
    const int64_t grain = std::max<int64_t>(1, kGrainElements / length);
    call.pool.parallel_for(target.elements / length, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t position = row;
        int64_t offset = 0;
        bool is_inside = true;
        for (size_t axis = outer_axes; axis-- > 0;) {
          const auto dim = static_cast<int64_t>(tables[axis].size());
          const int64_t coordinate = tables[axis][static_cast<size_t>(position % dim)];
          position /= dim;
          is_inside = is_inside && coordinate >= 0;
          offset += coordinate * strides[axis];
        }
        T* out = to + row * length;
        for (int64_t column = 0; column < length; ++column) {
          const int64_t coordinate = columns[static_cast<size_t>(column)];
          out[column] = is_inside && coordinate >= 0 ? from[offset + coordinate] : filler;
        }
      }
    });
  });
}

void run_view(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  std::memcpy(call.outputs[0].data, input.data,
              static_cast<size_t>(input.elements * element_bytes(input.type)));
}

}  // namespace tessera::ops
