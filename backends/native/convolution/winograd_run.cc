// Runs Winograd's convolution for some tiles at a time: transforms their pixels, multiplies them by
// the transformed weights, with one matrix product for each element of a tile, and transforms the
// sums back. A unit of work is a pass, some tiles, by some panels of output channels. Threads share
// the units and nothing else: each transforms the pixels of its units by itself, because to
// transform them twice takes less time than to wait for another core and its cache.
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
constexpr int64_t kMinTiles = 64;
constexpr int64_t kMinTilesOfOwnWeights = 24;
constexpr int64_t kMaxTiles = 192;

// Units for each thread, if there are enough, so that a thread on a slow core does fewer: passes of
// their own, or panels of a pass whose pixels each thread transforms again.
constexpr int64_t kPassesOfSlot = 4;
constexpr int64_t kUnitsOfSlot = 2;

// A cache line and a block of channels. Elements of a tile are whole lines apart, but not a power
// of two of them, because then they would share cache sets.
constexpr int64_t kLineFloats = 16;

// How the work is divided.
struct Division {
  int64_t tiles = 0;  // of a pass
  int64_t passes = 0;
  int64_t width = 0;        // of a panel
  int64_t panels = 0;       // in all
  int64_t unit_panels = 0;  // of a unit
  int64_t units_of_pass = 0;
  int64_t slots = 1;  // concurrent units, each with its own buffers

  int64_t units() const { return passes * units_of_pass; }
  int64_t unit_channels() const { return unit_panels * width; }
};

// The number of passes.
int64_t passes_of(const WinogradProblem& problem, int64_t threads) {
  const int64_t tile_bytes =
      problem.positions() * (problem.in_channels + problem.out_channels) * kFloatBytes;
  const int64_t min_tiles =
      problem.weight_bytes() <= kOwnWeightBytes ? kMinTilesOfOwnWeights : kMinTiles;
  const int64_t max_tiles = std::clamp(kPassBytes / tile_bytes, min_tiles, kMaxTiles);
  const int64_t passes = divide_up(problem.tiles(), max_tiles);
  if (threads == 1) return passes;
  return std::max(passes, std::min(divide_up(problem.tiles(), min_tiles), kPassesOfSlot * threads));
}

Division division_of(const WinogradProblem& problem, int64_t threads) {
  Division division;
  division.passes = passes_of(problem, threads);
  division.tiles = divide_up(problem.tiles(), division.passes);
  division.passes = divide_up(problem.tiles(), division.tiles);
  division.width = problem.panel;
  division.panels = divide_up(problem.out_channels, division.width);
  // One unit for each pass if these suffice.
  const int64_t wanted = threads == 1 ? 1 : divide_up(kUnitsOfSlot * threads, division.passes);
  division.unit_panels = divide_up(division.panels, std::min(wanted, division.panels));
  // The transforms take whole blocks of channels.
  if (division.width < kLineFloats) {
    const int64_t panels_of_block = kLineFloats / division.width;
    division.unit_panels = divide_up(division.unit_panels, panels_of_block) * panels_of_block;
  }
  division.units_of_pass = divide_up(division.panels, division.unit_panels);
  division.slots = std::min(threads, division.units());
  return division;
}

// The distance between elements of `tiles` transformed tiles.
int64_t plane_floats(int64_t tiles, int64_t channels) { return tiles * channels + kLineFloats; }

int64_t pixel_floats(const WinogradProblem& problem, const Division& division) {
  return problem.positions() * plane_floats(division.tiles, problem.in_channels);
}

int64_t slot_floats(const WinogradProblem& problem, const Division& division) {
  return pixel_floats(problem, division) +
         problem.positions() * plane_floats(division.tiles, division.unit_channels());
}

class WinogradKernel : public plugin::Kernel {
 public:
  WinogradKernel(const WinogradProblem& problem, int64_t threads)
      : problem_(problem),
        division_(division_of(problem, threads)),
        loops_(find_winograd_loops(problem.tile)),
        gemm_loops_(find_gemm_loops()) {}

  int64_t workspace_bytes() const override {
    return division_.slots * slot_floats(problem_, division_) * kFloatBytes;
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
    auto* workspace = static_cast<float*>(context.workspace());
    SharedParts units(division_.units(), division_.slots);
    context.parallel_for(division_.slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        run_slot(run, slot, units, workspace + slot * slot_floats(problem_, division_));
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

  // Some panels of the output channels.
  struct Columns {
    int64_t first = 0;  // channel
    int64_t end = 0;
    int64_t count() const { return end - first; }
  };

  void run_slot(const Run& run, int64_t slot, SharedParts& units, float* buffer) const {
    float* pixels = buffer;                                    // [positions, tiles, in_channels]
    float* sums = buffer + pixel_floats(problem_, division_);  // [positions, tiles, channels]
    int64_t transformed = -1;  // the pass whose pixels are in the buffer
    units.for_each(slot, [&](int64_t unit) {
      const int64_t pass = unit / division_.units_of_pass;
      const int64_t first = pass * division_.tiles;
      const int64_t tiles = std::min(division_.tiles, problem_.tiles() - first);
      const int64_t channel = unit % division_.units_of_pass * division_.unit_channels();
      const Columns columns = {
          channel, std::min(channel + division_.unit_channels(), problem_.out_channels)};
      if (pass != transformed) read(run, first, tiles, pixels);
      transformed = pass;
      multiply(run, tiles, columns, pixels, sums);
      write(run, first, tiles, columns, sums);
    });
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

  void read(const Run& run, int64_t first, int64_t tiles, float* pixels) const {
    const WinogradFeatureMap& map = problem_.input;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const TileOrigin origin = tile_origin(first + tile);
      loops_.read(map,
                  {.row = origin.row - problem_.pad_rows,
                   .column = origin.column - problem_.pad_columns,
                   .channels = problem_.in_channels,
                   .plane = plane_floats(division_.tiles, problem_.in_channels)},
                  run.from + origin.image * map.rows * map.columns * problem_.in_channels,
                  pixels + tile * problem_.in_channels);
    }
  }

  // One product for each panel of each element of a tile.
  void multiply(const Run& run, int64_t tiles, const Columns& columns, const float* pixels,
                float* sums) const {
    const auto weights_of = [&](int64_t position, int64_t column) {
      return run.weights + (position * problem_.out_channels + column) * problem_.in_channels;
    };
    for (int64_t position = 0; position < problem_.positions(); ++position) {
      for (int64_t column = columns.first; column < columns.end; column += division_.width) {
        const int64_t width = std::min(division_.width, columns.end - column);
        const bool is_last = column + width == columns.end;
        gemm_loops_.columns(
            {.left = pixels + position * plane_floats(division_.tiles, problem_.in_channels),
             .left_row_stride = problem_.in_channels,
             .right = weights_of(position, column),
             .right_depth_stride = width,
             .ahead = is_last ? weights_of(position + 1, columns.first)
                              : weights_of(position, column + width),
             .rows = tiles,
             .columns = width,
             .depth = problem_.in_channels,
             .to = sums + position * plane_floats(division_.tiles, columns.count()) + column -
                   columns.first,
             .to_row_stride = columns.count()});
      }
    }
  }

  void write(const Run& run, int64_t first, int64_t tiles, const Columns& columns,
             const float* sums) const {
    const WinogradFeatureMap& map = problem_.output;
    const int64_t channel =
        columns.first / map.block * map.block_stride + columns.first % map.block;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const TileOrigin origin = tile_origin(first + tile);
      const int64_t start = origin.image * map.rows * map.columns * problem_.out_channels + channel;
      WinogradEpilogue last = run.epilogue;
      if (last.bias != nullptr) last.bias += columns.first;
      if (last.addend != nullptr) last.addend += start;
      loops_.write(map,
                   {.row = origin.row,
                    .column = origin.column,
                    .channels = columns.count(),
                    .plane = plane_floats(division_.tiles, columns.count())},
                   last, sums + tile * columns.count(), run.to + start);
    }
  }

  WinogradProblem problem_;
  Division division_;
  WinogradLoops loops_;
  GemmLoops gemm_loops_;
};

// Packs transformed weights as [positions, panels of out_channels, in_channels].
void pack_weights(const WinogradProblem& problem, int64_t first, int64_t end, const float* from,
                  float* to) {
  std::array<float, 36> transformed;
  for (int64_t channel = first; channel < end; ++channel) {
    const int64_t column = channel / problem.panel * problem.panel;
    const int64_t width = std::min(problem.panel, problem.out_channels - column);
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

int64_t winograd_panel(const WinogradProblem& problem, int64_t threads) {
  const int64_t widest = find_gemm_loops().panel;
  if (threads <= 1 || passes_of(problem, threads) >= threads) return widest;
  for (int64_t panel = widest; panel >= widest / 2; panel -= kLineFloats) {
    if (problem.out_channels % (panel * threads) == 0) return panel;
  }
  return widest;
}

plugin::Pack winograd_pack(const WinogradProblem& problem) {
  plugin::Pack pack;
  pack.id = "winograd" + std::to_string(problem.tile) + "_panels" + std::to_string(problem.panel) +
            "_" + std::to_string(problem.in_channels) + "_" + std::to_string(problem.out_channels);
  pack.bytes = problem.weight_bytes();
  pack.pack = [problem](RunContext& context, const Buffer& from, void* to) {
    context.parallel_for(problem.out_channels, 8, [&](int64_t begin, int64_t end) {
      pack_weights(problem, begin, end, from.as<const float>(), static_cast<float*>(to));
    });
  };
  return pack;
}

int64_t winograd_workspace_bytes(const WinogradProblem& problem, int32_t threads) {
  const Division division = division_of(problem, std::max(threads, 1));
  return division.slots * slot_floats(problem, division) * kFloatBytes;
}

std::unique_ptr<plugin::Kernel> make_winograd_kernel(const WinogradProblem& problem,
                                                     int32_t threads) {
  return std::make_unique<WinogradKernel>(problem, std::max(threads, 1));
}

}  // namespace tessera::native
