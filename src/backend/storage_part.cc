#include "backend/storage_part.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

constexpr const char* kNhwc = "nhwc";

// A part as ranges of indices of the whole: [first, first + size) in each dimension.
struct Box {
  std::vector<int64_t> first;
  std::vector<int64_t> size;
};

int64_t volume(const std::vector<int64_t>& size) {
  return std::accumulate(size.begin(), size.end(), int64_t{1}, std::multiplies<>());
}

// nullopt if the part is not a box in the whole.
std::optional<Box> box_of(const StoragePart& part, const StoredType& tensor,
                          const StoredType& whole, const std::vector<int64_t>& whole_strides) {
  const std::vector<int64_t>& dims = tensor.type.dims;
  if (dims.size() != whole_strides.size()) return std::nullopt;
  const std::vector<int64_t> own =
      part.is_dense() ? dense_strides(tensor.layout, dims).value_or(std::vector<int64_t>{})
                      : part.strides;
  if (own.size() != dims.size()) return std::nullopt;
  std::vector<size_t> by_stride(dims.size());
  std::iota(by_stride.begin(), by_stride.end(), size_t{0});
  // Among equal strides, the offset counts in the longer dimension.
  std::sort(by_stride.begin(), by_stride.end(), [&](size_t left, size_t right) {
    return std::pair(whole_strides[left], whole.type.dims[left]) >
           std::pair(whole_strides[right], whole.type.dims[right]);
  });
  Box box{std::vector<int64_t>(dims.size(), 0), dims};
  int64_t rest = part.offset_bytes / element_bytes(whole.type.element);
  for (const size_t axis : by_stride) {
    if (dims[axis] > 1 && own[axis] != whole_strides[axis]) return std::nullopt;
    if (whole.type.dims[axis] > 1) {
      box.first[axis] = rest / whole_strides[axis];
      rest %= whole_strides[axis];
    }
    if (box.first[axis] + dims[axis] > whole.type.dims[axis]) return std::nullopt;
  }
  return rest == 0 ? std::optional(box) : std::nullopt;
}

bool overlap(const Box& left, const Box& right) {
  for (size_t axis = 0; axis < left.first.size(); ++axis) {
    const bool is_apart = left.first[axis] + left.size[axis] <= right.first[axis] ||
                          right.first[axis] + right.size[axis] <= left.first[axis];
    if (is_apart) return false;
  }
  return true;
}

std::string explain_gaps_between_ranges(const std::vector<StoragePart>& parts,
                                        const std::vector<StoredType>& tensors,
                                        const StoredType& whole) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (size_t index = 0; index < parts.size(); ++index) {
    ranges.emplace_back(parts[index].offset_bytes, tensors[index].bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  int64_t end = 0;
  for (const auto& [begin, bytes] : ranges) {
    if (begin < end) return "its parts overlap at byte " + std::to_string(begin);
    if (begin > end) return "its parts leave out byte " + std::to_string(end);
    end = begin + bytes;
  }
  return end == whole.bytes ? "" : "its parts leave out byte " + std::to_string(end);
}

}  // namespace

std::optional<std::vector<int64_t>> dense_strides(const std::string& layout,
                                                  const std::vector<int64_t>& dims) {
  std::vector<size_t> order(dims.size());  // outermost first
  std::iota(order.begin(), order.end(), size_t{0});
  if (layout == kNhwc) {
    if (dims.size() < 3) return std::nullopt;
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  } else if (layout != TESSERA_LAYOUT_DEFAULT) {
    return std::nullopt;
  }
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    // An empty tensor has no elements that could be misplaced.
    stride *= std::max<int64_t>(dims[*axis], 1);
  }
  return strides;
}

std::optional<int64_t> extent_bytes(const TensorType& type, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t axis = 0; axis < type.dims.size(); ++axis) {
    if (type.dims[axis] == 0) return 0;
    int64_t step = 0;
    if (__builtin_mul_overflow(type.dims[axis] - 1, strides[axis], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &last) ||
      __builtin_mul_overflow(last, element_bytes(type.element), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

StoragePart simplified(const StoragePart& part, const StoredType& tensor) {
  const auto dense = dense_strides(tensor.layout, tensor.type.dims);
  if (part.is_dense() || !dense) return part;
  const bool is_empty =
      std::find(tensor.type.dims.begin(), tensor.type.dims.end(), 0) != tensor.type.dims.end();
  for (size_t axis = 0; axis < dense->size() && !is_empty; ++axis) {
    if (tensor.type.dims[axis] > 1 && part.strides[axis] != (*dense)[axis]) return part;
  }
  return {part.offset_bytes, {}};
}

std::string explain_illegal_part(const StoragePart& part, const StoredType& tensor,
                                 const StoredType& whole) {
  if (tensor.type.element != whole.type.element) return "is of another element type";
  const int64_t element = element_bytes(whole.type.element);
  if (part.offset_bytes < 0 || part.offset_bytes % element != 0) {
    return "is at byte " + std::to_string(part.offset_bytes) + ", where no element begins";
  }
  std::optional<int64_t> bytes = tensor.bytes;
  if (!part.is_dense()) {
    const std::vector<int64_t>& dims = tensor.type.dims;
    if (part.strides.size() != dims.size()) {
      return "has " + std::to_string(part.strides.size()) + " strides for " +
             std::to_string(dims.size()) + " dimensions";
    }
    if (!dense_strides(tensor.layout, dims) || !dense_strides(whole.layout, whole.type.dims)) {
      return "has strides, but strides cannot locate the elements of layout '" + tensor.layout +
             "' in layout '" + whole.layout + "'";
    }
    if (std::any_of(part.strides.begin(), part.strides.end(),
                    [](int64_t stride) { return stride < 1; })) {
      return "has a stride below 1";
    }
    bytes = extent_bytes(tensor.type, part.strides);
  }
  if (!bytes || part.offset_bytes > whole.bytes || *bytes > whole.bytes - part.offset_bytes) {
    return "reaches beyond the " + std::to_string(whole.bytes) + " bytes there";
  }
  return "";
}

std::string explain_incomplete(const std::vector<StoragePart>& parts,
                               const std::vector<StoredType>& tensors, const StoredType& whole) {
  if (std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.is_dense(); })) {
    return explain_gaps_between_ranges(parts, tensors, whole);
  }
  const auto strides = dense_strides(whole.layout, whole.type.dims);
  if (!strides) return "its parts have strides";
  std::vector<Box> boxes;
  int64_t elements = 0;
  for (size_t index = 0; index < parts.size(); ++index) {
    std::optional<Box> box = box_of(parts[index], tensors[index], whole, *strides);
    if (!box) return "its part " + std::to_string(index) + " is no box of the whole";
    elements += volume(box->size);
    for (const Box& other : boxes) {
      if (overlap(*box, other)) return "its parts overlap at part " + std::to_string(index);
    }
    boxes.push_back(*std::move(box));
  }
  return elements == volume(whole.type.dims) ? "" : "its parts leave something out";
}

}  // namespace tessera
