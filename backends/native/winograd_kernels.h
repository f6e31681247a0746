// The loops of winograd_run.cc, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>

namespace tessera::native {

// Winograd's convolutions F(m x m, 3 x 3) (A. Lavin, S. Gray: Fast Algorithms for Convolutional
// Neural Networks, 2016): a tile of m x m results needs (m + 2)^2 products for each pair of
// channels in place of 9 m^2.
inline constexpr int64_t kTaps = 3;

// One picture whose channels lie side by side, all or in blocks. All numbers count elements.
struct WinogradPicture {
  int64_t rows = 0;     // of pixels
  int64_t columns = 0;  // of pixels
  int64_t pixel = 0;    // from pixel to pixel
  int64_t block = 0;    // channels in a block, a multiple of 16
  int64_t block_stride = 0;
};

// The tile whose first pixel is (row, column), which may lie outside of the picture, with
// `channels` channels, a multiple of 16. Place p of the transformed tile is `plane` elements behind
// place p - 1, its channels side by side.
struct WinogradTile {
  int64_t row = 0;
  int64_t column = 0;
  int64_t channels = 0;
  int64_t plane = 0;
};

// What becomes of each sum; null pointers are left out.
struct WinogradEnd {
  const float* bias = nullptr;    // by channel
  const float* addend = nullptr;  // a picture as the result's
  bool has_relu = false;
};

struct WinogradLoops {
  // Transforms (m + 2)^2 pixels; those outside of the picture are zeros.
  void (*read)(const WinogradPicture& picture, const WinogradTile& tile, const float* from,
               float* to) = nullptr;
  // Transforms back into m^2 pixels, of which those outside are dropped.
  void (*write)(const WinogradPicture& picture, const WinogradTile& tile, const WinogradEnd& end,
                const float* from, float* to) = nullptr;
};

// For the best instruction set of this processor and tiles of 4 x 4 or 2 x 2 results.
WinogradLoops find_winograd_loops(int64_t tile);

// What `tile` makes of 3 x 3 weights: (tile + 2)^2 numbers.
void transform_weights(int64_t tile, const float* from, float* to);

}  // namespace tessera::native
