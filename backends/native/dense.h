// Tensors in whatever dense layout: how much storage there is, and which of it is padding.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/backend.h"

namespace tessera::native {

// The padding of a tensor in one of the shared dense layouts: the last lanes of the last block of
// channels, for each picture and pixel. Empty where block == used.
struct Padding {
  int64_t pictures = 0;
  int64_t picture = 0;  // elements of each
  int64_t first = 0;    // of a picture: where its last block of channels begins
  int64_t pixels = 0;
  int64_t block = 1;
  int64_t used = 1;  // lanes of the last block that are no padding

  bool is_empty() const { return used == block; }
};

// How `type` lies in `layout`, a dense one that the contract names: elements stored, and padding.
struct DenseStorage {
  int64_t elements = 0;
  Padding padding;
};

// Throws Failure (TESSERA_UNSUPPORTED) for a layout that is not known here.
DenseStorage dense_storage(const std::string& layout, const plugin::Type& type);

// Sets padding to zero, as every kernel that makes something else of zero must.
void clear_padding(plugin::RunContext& context, const Padding& padding, void* elements,
                   int64_t element_bytes);

}  // namespace tessera::native
