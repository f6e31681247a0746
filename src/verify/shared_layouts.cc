#include "verify/shared_layouts.h"

#include <cstring>

namespace tessera::verification {

std::optional<std::vector<char>> shared_layout(const std::string& name,
                                               const StoredTensor& row_major) {
  const std::vector<int64_t>& dims = row_major.type.dims;
  if (dims.size() < 3 || dims.size() > 5) return std::nullopt;
  const int64_t channels = dims[1];
  int64_t block = 0;
  if (name == "nhwc") block = channels;
  if (name == "nchw8c") block = 8;
  if (name == "nchw16c") block = 16;
  if (block == 0) return std::nullopt;
  int64_t places = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) places *= dims[axis];
  const int64_t blocks = (channels + block - 1) / block;
  const int64_t size = element_bytes(row_major.type.element);
  std::vector<char> bytes(static_cast<size_t>(dims[0] * blocks * places * block * size), 0);
  for (int64_t image = 0; image < dims[0]; ++image) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t place = 0; place < places; ++place) {
        const int64_t from = (image * channels + channel) * places + place;
        const int64_t to =
            ((image * blocks + channel / block) * places + place) * block + channel % block;
        std::memcpy(bytes.data() + to * size, row_major.memory->data() + from * size,
                    static_cast<size_t>(size));
      }
    }
  }
  return bytes;
}

}  // namespace tessera::verification
