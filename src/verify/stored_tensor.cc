#include "verify/stored_tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/run_context.h"
#include "base/check.h"

namespace tessera::verification {

tessera_buffer StoredTensor::face(int32_t request) const {
  tessera_buffer face = {};
  face.data = memory->data();
  face.bytes = memory->bytes();
  face.data_type = static_cast<int32_t>(type.element);
  face.rank = static_cast<int32_t>(type.dims.size());
  face.dims = type.dims.data();
  face.request = request;
  return face;
}

StoredTensor make_storage(const LayoutTable& layouts, LayoutId layout, const TensorType& type,
                          uint8_t fill, int64_t alignment_bytes, Guard guard) {
  const std::optional<int64_t> bytes = layouts.storage_bytes(layout, type);
  TESSERA_CHECK(bytes.has_value(), "the layout of storage holds its type");
  return {type, layout, std::make_shared<GuardedMemory>(*bytes, alignment_bytes, fill, guard)};
}

TensorType type_of(const Tensor& tensor) { return {tensor.type(), tensor.dims()}; }

StoredTensor store(const Tensor& tensor) {
  StoredTensor stored = {
      type_of(tensor), kDefaultLayout,
      std::make_shared<GuardedMemory>(tensor.bytes(), TESSERA_ALIGNMENT_BYTES, kGarbage)};
  std::memcpy(stored.memory->data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  return stored;
}

Tensor read_row_major(const StoredTensor& stored) {
  return Tensor::copy_of(stored.type.element, stored.type.dims, stored.memory->data(),
                         static_cast<size_t>(tensor_bytes(stored.type.element, stored.type.dims)));
}

StoredTensor to_layout(const LayoutTable& layouts, LayoutId layout, const StoredTensor& from,
                       ThreadPool& pool) {
  StoredTensor current = from;
  for (const ConversionStep& step : layouts.route(from.layout, layout, from.type)) {
    StoredTensor next = make_storage(layouts, step.to, from.type);
    RunContext context(pool);
    pool.execute([&] {
      convert(step, "conversion", context, current.face(), next.face(TESSERA_REQUEST_WRITE));
    });
    current = std::move(next);
  }
  return current;
}

std::vector<bool> padding_of(const LayoutTable& layouts, LayoutId layout, const TensorType& type,
                             ThreadPool& pool) {
  const int64_t size = element_bytes(type.element);
  Tensor ones(type.element, type.dims);
  std::memset(ones.mutable_data(), 1, static_cast<size_t>(ones.bytes()));
  const StoredTensor stored = to_layout(layouts, layout, store(ones), pool);
  std::vector<bool> is_padding;
  for (int64_t at = 0; at + size <= stored.memory->bytes(); at += size) {
    const char* element = stored.memory->data() + at;
    is_padding.push_back(std::all_of(element, element + size, [](char byte) { return byte == 0; }));
  }
  return is_padding;
}

std::string explain_padding(const StoredTensor& stored, const std::vector<bool>& is_padding) {
  const auto size = static_cast<size_t>(element_bytes(stored.type.element));
  for (size_t index = 0; index < is_padding.size(); ++index) {
    if (!is_padding[index]) continue;
    const char* element = stored.memory->data() + index * size;
    if (std::any_of(element, element + size, [](char byte) { return byte != 0; })) {
      return "padding at element " + std::to_string(index) + " of storage does not hold zero";
    }
  }
  return "";
}

}  // namespace tessera::verification
