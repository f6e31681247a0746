// The storage of tensors in dense layouts: how many elements, and which of them are padding.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tessera/backend.h"

namespace tessera::native {

// The padding of a tensor in one of the shared dense layouts: for each image and pixel, the last
// lanes of the last block of channels. There is none if used_lanes == block.
struct Padding {
  int64_t images = 0;
  int64_t image_elements = 0;
  int64_t last_block = 0;  // offset in an image of its last block of channels
  int64_t pixels = 0;
  int64_t block = 1;
  int64_t used_lanes = 1;  // lanes of the last block that hold channels

  bool is_empty() const { return used_lanes == block; }
};

// How a tensor is stored in a shared dense layout.
struct DenseStorage {
  int64_t elements = 0;
  Padding padding;
};

// The number of channels in a block of the layout; 0 if the layout has no padding. Throws Failure
// (TESSERA_UNSUPPORTED) if the layout is not known here.
int64_t channel_block(const std::string& layout);

// Throws as channel_block() does.
DenseStorage dense_storage(const std::string& layout, const plugin::Type& type);
// Same for a layout with so many channels in a block; at most 1: without padding.
DenseStorage dense_storage(int64_t block, std::span<const int64_t> dims);

// Sets padding to zero, as the contract demands. A kernel that maps zero to zero need not call it.
void clear_padding(plugin::RunContext& context, const Padding& padding, void* elements,
                   int64_t element_bytes);

}  // namespace tessera::native
