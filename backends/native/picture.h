// Pictures as they lie in memory: images of blocks of channels, each block a row of pixels, each
// pixel the block's channels side by side.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dense.h"

namespace tessera::native {

// The layouts of the contract beside the default one.
enum class PictureLayout : uint8_t { Nchw16c, Nchw8c, Nhwc };

inline constexpr std::array kPictureLayouts = {PictureLayout::Nchw16c, PictureLayout::Nchw8c,
                                               PictureLayout::Nhwc};

const char* layout_name(PictureLayout layout);

struct Picture {
  int64_t images = 1;
  int64_t blocks = 1;  // of channels, for each image
  int64_t pixels = 1;
  int64_t lanes = 1;     // channels in a block
  int64_t channels = 1;  // of an image, padding aside

  bool is_padded() const { return blocks * lanes != channels; }
  int64_t elements() const { return images * blocks * pixels * lanes; }
};

// Whether tensors of these sizes have the layout and lie differently there than in the default one
// (where they do not, the default one serves).
bool lies_as_picture(PictureLayout layout, const std::vector<int64_t>& dims);

// Row-major pictures are blocks of one channel.
Picture picture_of(PictureLayout layout, const std::vector<int64_t>& dims);
Picture row_major_picture(const std::vector<int64_t>& dims);

// The padding of a picture, for clear_padding().
Padding padding_of(const Picture& picture);

}  // namespace tessera::native
