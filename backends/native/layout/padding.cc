#include "layout/padding.h"

#include <cstring>

namespace tessera::native {

namespace {

// The minimum number of blocks that one thread clears.
constexpr int64_t kClearGrain = 4096;

}  // namespace

int64_t channel_block(const std::string& layout) {
  if (layout == TESSERA_LAYOUT_DEFAULT || layout == "nhwc") return 0;
  if (layout == "nchw8c") return 8;
  if (layout == "nchw16c") return 16;
  throw plugin::Failure(TESSERA_UNSUPPORTED, "does not know the layout '" + layout + "'");
}

DenseStorage dense_storage(const std::string& layout, const plugin::Type& type) {
  return dense_storage(channel_block(layout), type.dims);
}

DenseStorage dense_storage(int64_t block, std::span<const int64_t> dims) {
  DenseStorage storage;
  storage.elements = 1;
  for (const int64_t dim : dims) storage.elements *= dim;
  if (block <= 1 || storage.elements == 0) return storage;
  Padding& padding = storage.padding;
  padding.block = block;
  padding.images = dims[0];
  padding.pixels = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) padding.pixels *= dims[axis];
  const int64_t blocks = (dims[1] + block - 1) / block;
  padding.used_lanes = dims[1] - (blocks - 1) * block;
  padding.image_elements = blocks * padding.pixels * block;
  padding.last_block = (blocks - 1) * padding.pixels * block;
  storage.elements = padding.images * padding.image_elements;
  return storage;
}

void clear_padding(plugin::RunContext& context, const Padding& padding, void* elements,
                   int64_t element_bytes) {
  if (padding.is_empty()) return;
  const auto bytes = static_cast<size_t>((padding.block - padding.used_lanes) * element_bytes);
  context.parallel_for(
      padding.images * padding.pixels, kClearGrain, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) {
          const int64_t block = index / padding.pixels * padding.image_elements +
                                padding.last_block + index % padding.pixels * padding.block;
          std::memset(static_cast<char*>(elements) + (block + padding.used_lanes) * element_bytes,
                      0, bytes);
        }
      });
}

}  // namespace tessera::native
