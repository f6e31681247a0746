// Runs Winograd's convolution for some tiles at a time: transforms their pixels, multiplies them by
// the transformed weights, with one matrix product for each element of a tile, and transforms the
// sums back. If the weights are small, each thread does all of this for its own tiles, so that the
// data stays in its cache. If they are large, all threads share each product, so that the weights
// are read once.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/divide_up.h"
#include "base/shared_parts.h"
#include "convolution/winograd.h"
#include "matmul/gemm_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// The largest weights that leave room for the tiles in the cache of a core.
constexpr int64_t kOwnWeightBytes = 1536 * 1024;

// The largest size of the transformed tiles of one pass, and the least and largest number of tiles
// for which it is chosen: each pass reads all weights, which does not pay for fewer tiles, and pays
// for few if the weights stay in the cache of a core.
constexpr int64_t kPassBytes = 1024 * 1024;
constexpr int64_t kSharedPassBytes = 8 * 1024 * 1024;
constexpr int64_t kMinTiles = 64;
constexpr int64_t kMinTilesOfOwnWeights = 24;
constexpr int64_t kMaxTiles = 192;

// Passes of each thread, if there are tiles enough, so that a thread on a slow core does fewer.
constexpr int64_t kPassesOfSlot = 4;

// Elements of a tile are whole cache lines apart, but not a power of two of them, because then they
// would share cache sets.
constexpr int64_t kLineFloats = 16;

// How the tiles are divided into passes.
struct Passes {
  bool is_shared = false;
  int64_t tiles = 0;  // of a pass
  int64_t count = 0;
  int64_t slots = 1;  // concurrent passes, each with its own buffers
};

Passes passes_of(const WinogradProblem& problem, int64_t threads) {
  Passes passes;
  const bool has_own_weights = problem.weight_bytes() <= kOwnWeightBytes;
  passes.is_shared = threads > 1 && !has_own_weights;
  const int64_t tile_bytes =
      problem.positions() * (problem.in_channels + problem.out_channels) * kFloatBytes;
  const int64_t wanted = (passes.is_shared ? kSharedPassBytes : kPassBytes) / tile_bytes;
  const int64_t min_tiles = has_own_weights ? kMinTilesOfOwnWeights : kMinTiles;
  const int64_t max_tiles = std::clamp(wanted, min_tiles, kMaxTiles);
  passes.count = divide_up(problem.tiles(), max_tiles);
  if (threads > 1 && !passes.is_shared) {
    const int64_t most = divide_up(problem.tiles(), min_tiles);
    const int64_t slots = std::min(threads, problem.tiles());
    passes.count = std::max({passes.count, std::min(most, kPassesOfSlot * threads), slots});
  }
  passes.tiles = divide_up(problem.tiles(), passes.count);
  passes.count = divide_up(problem.tiles(), passes.tiles);
  passes.slots = passes.is_shared ? 1 : std::min(threads, passes.count);
  return passes;
}

// The distance between elements of `tiles` transformed tiles.
int64_t plane_floats(int64_t tiles, int64_t channels) { return tiles * channels + kLineFloats; }

int64_t slot_floats(const WinogradProblem& problem, const Passes& passes) {
  return problem.positions() * (plane_floats(passes.tiles, problem.in_channels) +
                                plane_floats(passes.tiles, problem.out_channels));
}

class WinogradKernel : public plugin::Kernel {
 public:
  WinogradKernel(const WinogradProblem& problem, int64_t threads)
      : problem_(problem),
        passes_(passes_of(problem, threads)),
        loops_(find_winograd_loops(problem.tile)),
        gemm_loops_(find_gemm_loops()),
        panels_(divide_up(problem.out_channels, gemm_loops_.panel)) {}

  int64_t workspace_bytes() const override {
    return passes_.slots * slot_floats(problem_, passes_) * kFloatBytes;
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const Run run = {
        .from = inputs[0].as<const float>(),
        .weights = inputs[1].as<const float>(),
        .epilogue = {.bias = problem_.bias ? inputs[*problem_.bias].as<const float>() : nullptr,
                     .addend =
                         problem_.addend ? inputs[*problem_.addend].as<const float>() : nullptr,
                     .has_relu = problem_.has_relu},
        .to = outputs[0].as<float>()};
    auto* buffer = static_cast<float*>(context.workspace());
    if (passes_.is_shared) {
      for (int64_t number = 0; number < passes_.count; ++number) {
        run_together(context, run, pass_of(number, buffer));
      }
      return;
    }
    SharedParts parts(passes_.count, passes_.slots);
    context.parallel_for(passes_.slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        float* own = buffer + slot * slot_floats(problem_, passes_);
        parts.for_each(slot, [&](int64_t number) {
          const Pass pass = pass_of(number, own);
          read(run, pass, 0, pass.tiles);
          multiply(run, pass, 0, problem_.positions() * panels_);
          write(run, pass, 0, pass.tiles);
        });
      }
    });
  }

 private:
  struct Run {
    const float* from = nullptr;
    const float* weights = nullptr;
    WinogradEpilogue epilogue;
    float* to = nullptr;
  };

  // The tiles of one pass with their buffers.
  struct Pass {
    int64_t first = 0;
    int64_t tiles = 0;
    float* pixels = nullptr;  // transformed: [positions, tiles, in_channels]
    float* sums = nullptr;    // [positions, tiles, out_channels]
  };

  Pass pass_of(int64_t number, float* buffer) const {
    const int64_t first = number * passes_.tiles;
    return {first, std::min(passes_.tiles, problem_.tiles() - first), buffer,
            buffer + problem_.positions() * plane_floats(passes_.tiles, problem_.in_channels)};
  }

  void run_together(RunContext& context, const Run& run, const Pass& pass) const {
    context.parallel_for(pass.tiles, 1,
                         [&](int64_t begin, int64_t end) { read(run, pass, begin, end); });
    context.parallel_for(problem_.positions() * panels_, 1,
                         [&](int64_t begin, int64_t end) { multiply(run, pass, begin, end); });
    context.parallel_for(pass.tiles, 1,
                         [&](int64_t begin, int64_t end) { write(run, pass, begin, end); });
  }

  // The image of a tile and its first output pixel.
  struct TileOrigin {
    int64_t image = 0;
    int64_t row = 0;
    int64_t column = 0;
  };

  TileOrigin tile_origin(int64_t tile) const {
    const int64_t columns = problem_.tile_columns();
    const int64_t rows = problem_.tile_rows();
    return {tile / columns / rows, tile / columns % rows * problem_.tile,
            tile % columns * problem_.tile};
  }

  // Tiles [begin, end) of the pass.
  void read(const Run& run, const Pass& pass, int64_t begin, int64_t end) const {
    const WinogradFeatureMap& map = problem_.input;
    for (int64_t tile = begin; tile < end; ++tile) {
      const TileOrigin origin = tile_origin(pass.first + tile);
      loops_.read(map,
                  {.row = origin.row - problem_.pad_rows,
                   .column = origin.column - problem_.pad_columns,
                   .channels = problem_.in_channels,
                   .plane = plane_floats(passes_.tiles, problem_.in_channels)},
                  run.from + origin.image * map.rows * map.columns * problem_.in_channels,
                  pass.pixels + tile * problem_.in_channels);
    }
  }

  // Computes products [begin, end): one for each panel of each element of a tile.
  void multiply(const Run& run, const Pass& pass, int64_t begin, int64_t end) const {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t position = index / panels_;
      const int64_t column = index % panels_ * gemm_loops_.panel;
      const int64_t width = std::min(gemm_loops_.panel, problem_.out_channels - column);
      const float* weights =
          run.weights + (position * problem_.out_channels + column) * problem_.in_channels;
      gemm_loops_.columns(
          {.left = pass.pixels + position * plane_floats(passes_.tiles, problem_.in_channels),
           .left_row_stride = problem_.in_channels,
           .right = weights,
           .right_depth_stride = width,
           .ahead = index + 1 < end ? weights + width * problem_.in_channels : nullptr,
           .rows = pass.tiles,
           .columns = width,
           .depth = problem_.in_channels,
           .to = pass.sums + position * plane_floats(passes_.tiles, problem_.out_channels) + column,
           .to_row_stride = problem_.out_channels});
    }
  }

  void write(const Run& run, const Pass& pass, int64_t begin, int64_t end) const {
    const WinogradFeatureMap& map = problem_.output;
    for (int64_t tile = begin; tile < end; ++tile) {
      const TileOrigin origin = tile_origin(pass.first + tile);
      const int64_t image = origin.image * map.rows * map.columns * problem_.out_channels;
      WinogradEpilogue last = run.epilogue;
      if (last.addend != nullptr) last.addend += image;
      loops_.write(map,
                   {.row = origin.row,
                    .column = origin.column,
                    .channels = problem_.out_channels,
                    .plane = plane_floats(passes_.tiles, problem_.out_channels)},
                   last, pass.sums + tile * problem_.out_channels, run.to + image);
    }
  }

  WinogradProblem problem_;
  Passes passes_;
  WinogradLoops loops_;
  GemmLoops gemm_loops_;
  int64_t panels_ = 1;
};

// Packs transformed weights as [positions, panels of out_channels, in_channels].
void pack_weights(const WinogradProblem& problem, int64_t panel, int64_t first, int64_t end,
                  const float* from, float* to) {
  std::array<float, 36> transformed;
  for (int64_t channel = first; channel < end; ++channel) {
    const int64_t column = channel / panel * panel;
    const int64_t width = std::min(panel, problem.out_channels - column);
    for (int64_t depth = 0; depth < problem.in_channels; ++depth) {
      transform_weights(problem.tile,
                        from + (channel * problem.in_channels + depth) * kTaps * kTaps,
                        transformed.data());
      for (int64_t position = 0; position < problem.positions(); ++position) {
        to[(position * problem.out_channels + column) * problem.in_channels + depth * width +
           channel - column] = transformed[static_cast<size_t>(position)];
      }
    }
  }
}

}  // namespace

plugin::Pack winograd_pack(const WinogradProblem& problem) {
  const int64_t panel = find_gemm_loops().panel;
  plugin::Pack pack;
  pack.id = "winograd" + std::to_string(problem.tile) + "_panels" + std::to_string(panel) + "_" +
            std::to_string(problem.in_channels) + "_" + std::to_string(problem.out_channels);
  pack.bytes = problem.weight_bytes();
  pack.pack = [problem, panel](RunContext& context, const Buffer& from, void* to) {
    context.parallel_for(problem.out_channels, 8, [&](int64_t begin, int64_t end) {
      pack_weights(problem, panel, begin, end, from.as<const float>(), static_cast<float*>(to));
    });
  };
  return pack;
}

int64_t winograd_workspace_bytes(const WinogradProblem& problem, int32_t threads) {
  const Passes passes = passes_of(problem, std::max(threads, 1));
  return passes.slots * slot_floats(problem, passes) * kFloatBytes;
}

std::unique_ptr<plugin::Kernel> make_winograd_kernel(const WinogradProblem& problem,
                                                     int32_t threads) {
  return std::make_unique<WinogradKernel>(problem, std::max(threads, 1));
}

}  // namespace tessera::native
