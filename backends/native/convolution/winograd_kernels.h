// The loops of winograd_run.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// Winograd's convolutions F(m x m, 3 x 3) (A. Lavin, S. Gray: Fast Algorithms for Convolutional
// Neural Networks, 2016): a tile of m x m outputs needs (m + 2)^2 multiplications for each pair of
// channels instead of 9 m^2. F(4 x 4, 3 x 3) evaluates polynomials at 0, +-11/16, +-3/2 and
// infinity: errors are a quarter of those with 0, +-1, +-2 and infinity (B. Barabasz et al.: Error
// Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks, 2020, on
// points).
inline constexpr int64_t kTaps = 3;

// One image with all channels, or blocks of channels, contiguous for each pixel. All numbers count
// elements.
struct WinogradFeatureMap {
  int64_t rows = 0;     // of pixels
  int64_t columns = 0;  // of pixels
  int64_t pixel = 0;    // between neighbouring pixels
  int64_t block = 0;    // channels in a block, a multiple of 16
  int64_t block_stride = 0;
};

// The tile whose first pixel is (row, column), which may lie outside of the image, with `channels`
// channels, a multiple of 16. Element p of the transformed tile is at p * `plane`; its channels are
// contiguous.
struct WinogradTile {
  int64_t row = 0;
  int64_t column = 0;
  int64_t output_rows = 0;  // that exist, at most m
  int64_t output_columns = 0;
  int64_t channels = 0;
  int64_t plane = 0;
};

// The operations that are applied to each output; null pointers are left out.
struct WinogradEpilogue {
  const float* bias = nullptr;    // by channel
  const float* addend = nullptr;  // an image with the layout of the output
  bool has_relu = false;
};

// A transformed tile has errors beside its largest pixels, and so have all of its outputs. A tile
// is uneven if pixels that an output reads may be much smaller: some 2 x 2 pixels within its 3 x 3
// have a mean square of less than 1 / kMaxUnevenness of that of the tile. Then outputs are computed
// one by one, by the definition of a convolution; so are those of tiles with NaN or infinities.
inline constexpr float kMaxUnevenness = 4;

struct WinogradLoops {
  // Transforms (m + 2)^2 input pixels; those outside of the image count as zero. If the tile is
  // uneven, copies the pixels instead, and returns false.
  bool (*read)(const WinogradFeatureMap& map, const WinogradTile& tile, const float* from,
               float* to) = nullptr;
  // Transforms sums back to m^2 output pixels; those outside of the image are dropped.
  void (*write)(const WinogradFeatureMap& map, const WinogradTile& tile,
                const WinogradEpilogue& epilogue, const float* from, float* to) = nullptr;
  // Same as write(), for sums that are m^2 outputs already.
  void (*write_outputs)(const WinogradFeatureMap& map, const WinogradTile& tile,
                        const WinogradEpilogue& epilogue, const float* from, float* to) = nullptr;
};

// For the best instruction set of this processor, for tiles of 4 x 4 or 2 x 2 outputs.
WinogradLoops find_winograd_loops(int64_t tile);

// Transforms 3 x 3 weights to (tile + 2)^2 numbers, of which those at the corners are the weights
// at the corners.
void transform_weights(int64_t tile, const float* from, float* to);

}  // namespace tessera::native
