#include "verify/stored_tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/contract/run_context.h"
#include "backend/storage_part.h"
#include "base/errors/check.h"

namespace tessera::verification {

tessera_buffer StoredTensor::abi(int32_t request) const {
  tessera_buffer abi = {};
  abi.data = memory->data();
  abi.bytes = memory->bytes();
  abi.data_type = static_cast<int32_t>(type.element);
  abi.rank = static_cast<int32_t>(type.dims.size());
  abi.dims = type.dims.data();
  abi.request = request;
  if (!strides.empty()) abi.strides = strides.data();
  return abi;
}

StoredTensor make_storage(const LayoutTable& layouts, LayoutId layout, const TensorType& type,
                          uint8_t fill, int64_t alignment_bytes, GuardPagePool* pages) {
  const std::optional<int64_t> bytes = layouts.storage_bytes(layout, type);
  TESSERA_CHECK(bytes.has_value(), "the layout of storage holds its type");
  return {type, layout, std::make_shared<GuardedMemory>(*bytes, alignment_bytes, fill, pages)};
}

namespace {

// Calls use(strided byte offset, dense byte offset) for every element, along the last axis first.
template <class Use>
void for_each_element(const LayoutTable& layouts, const StoredTensor& strided, Use use) {
  const std::vector<int64_t>& dims = strided.type.dims;
  const int64_t size = element_bytes(strided.type.element);
  const std::optional<std::vector<int64_t>> dense =
      dense_strides(layouts.name(strided.layout), dims);
  TESSERA_CHECK(dense.has_value(), "strides are told in layouts that have them only");
  if (dims.empty()) return use(int64_t{0}, int64_t{0});
  const int64_t row = dims.back();
  const int64_t rows = row == 0 ? 0 : element_count(dims) / row;
  for (int64_t number = 0; number < rows; ++number) {
    int64_t rest = number;
    int64_t from = 0;
    int64_t to = 0;
    for (size_t axis = dims.size() - 1; axis-- > 0;) {
      from += rest % dims[axis] * strided.strides[axis];
      to += rest % dims[axis] * (*dense)[axis];
      rest /= dims[axis];
    }
    for (int64_t element = 0; element < row; ++element) {
      use((from + element * strided.strides.back()) * size, (to + element * dense->back()) * size);
    }
  }
}

}  // namespace

StoredTensor gathered(const LayoutTable& layouts, const StoredTensor& strided, int64_t offset) {
  StoredTensor dense = make_storage(layouts, strided.layout, strided.type);
  const auto size = static_cast<size_t>(element_bytes(strided.type.element));
  for_each_element(layouts, strided, [&](int64_t from, int64_t to) {
    std::memcpy(dense.memory->data() + to, strided.memory->data() + offset + from, size);
  });
  return dense;
}

std::optional<StoredTensor> spread(const LayoutTable& layouts, const StoredTensor& dense,
                                   uint8_t fill, int64_t alignment_bytes) {
  std::vector<int64_t> wider = dense.type.dims;
  for (int64_t& dim : wider) ++dim;
  const auto strides = dense_strides(layouts.name(dense.layout), wider);
  if (!strides) return std::nullopt;
  StoredTensor made{dense.type, dense.layout, nullptr, *strides};
  const std::optional<int64_t> bytes = extent_bytes(dense.type, *strides);
  TESSERA_CHECK(bytes.has_value(), "cases are small");
  made.memory = std::make_shared<GuardedMemory>(*bytes, alignment_bytes, fill);
  const auto size = static_cast<size_t>(element_bytes(dense.type.element));
  for_each_element(layouts, made, [&](int64_t to, int64_t from) {
    std::memcpy(made.memory->data() + to, dense.memory->data() + from, size);
  });
  return made;
}

bool has_gaps_of(const LayoutTable& layouts, const StoredTensor& spread, uint8_t fill) {
  std::vector<char> bytes(spread.memory->contents().begin(), spread.memory->contents().end());
  const auto size = static_cast<size_t>(element_bytes(spread.type.element));
  for_each_element(layouts, spread,
                   [&](int64_t at, int64_t) { std::memset(bytes.data() + at, fill, size); });
  return std::all_of(bytes.begin(), bytes.end(),
                     [fill](char byte) { return static_cast<uint8_t>(byte) == fill; });
}

TensorType type_of(const Tensor& tensor) { return {tensor.type(), tensor.dims()}; }

namespace {

std::span<const char> bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())};
}

}  // namespace

StoredTensor store(const Tensor& tensor) {
  return {type_of(tensor), kDefaultLayout,
          std::make_shared<GuardedMemory>(bytes_of(tensor), TESSERA_ALIGNMENT_BYTES)};
}

StoredTensor store_in_guard_pages(const Tensor& tensor) {
  return {type_of(tensor), kDefaultLayout,
          std::make_shared<GuardedMemory>(bytes_of(tensor), std::make_shared<Tensor>(tensor))};
}

Tensor read_row_major(const StoredTensor& stored) {
  return Tensor::copy_of(stored.type.element, stored.type.dims, stored.memory->data(),
                         static_cast<size_t>(tensor_bytes(stored.type.element, stored.type.dims)));
}

StoredTensor to_layout(const LayoutTable& layouts, LayoutId layout, const StoredTensor& from,
                       ThreadPool& pool, GuardPagePool* pages) {
  StoredTensor current = from;
  for (const ConversionStep& step : layouts.route(from.layout, layout, from.type)) {
    StoredTensor next =
        make_storage(layouts, step.to, from.type, kGarbage, TESSERA_ALIGNMENT_BYTES, pages);
    RunContext context(pool);
    pool.execute([&] {
      convert(step, "conversion", context, current.abi(), next.abi(TESSERA_REQUEST_WRITE));
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
