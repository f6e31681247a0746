// Runs Winograd's convolution for some tiles at a time: transforms their pixels, multiplies them by
// the transformed weights, with one matrix product for each element of a tile, and transforms the
// sums back. Tiles that must not be transformed (kMaxUnevenness) are left out and computed by
// products of their pixels by the weights. A unit of work is a pass, some tiles, by some panels of
// output channels. Threads share the units and nothing else: each transforms the pixels of its
// units by itself, because to transform them twice takes less time than to wait for another core
// and its cache.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/shared_parts.h"
#include "convolution/winograd.h"
#include "matmul/gemm_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// The largest weights that leave room for the tiles in the cache of a core.
constexpr int64_t kOwnWeightBytes = 1536 * 1024;

// The largest size of the transformed tiles of one pass, and the least and largest number of tiles
// for which it is chosen: each pass reads all weights, which does not pay for fewer tiles, and pays
// for few if the weights stay in the cache of a core.
constexpr int64_t kPassBytes = 1024 * 1024;
constexpr int64_t kMinPassTiles = 64;
constexpr int64_t kMinTilesOfOwnWeights = 24;
constexpr int64_t kMaxTiles = 192;

// Units for each thread, if there are enough, so that a thread on a slow core does fewer: passes of
// their own, or panels of a pass whose pixels each thread transforms again.
constexpr int64_t kPassesOfSlot = 4;
constexpr int64_t kUnitsOfSlot = 2;

// The largest number of products in a sum; sums are added to each other, because errors grow with
// the length of a sum.
constexpr int64_t kMaxSum = 128;

// A cache line and a block of channels. Elements of a tile are whole lines apart, but not a power
// of two of them, because then they would share cache sets.
constexpr int64_t kLineFloats = 16;

// How the work is divided.
struct WinogradDivision {
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
      problem.transformed_bytes() <= kOwnWeightBytes ? kMinTilesOfOwnWeights : kMinPassTiles;
  const int64_t max_tiles = std::clamp(kPassBytes / tile_bytes, min_tiles, kMaxTiles);
  const int64_t passes = divide_up(problem.tiles(), max_tiles);
  if (threads == 1) return passes;
  return std::max(passes, std::min(divide_up(problem.tiles(), min_tiles), kPassesOfSlot * threads));
}

WinogradDivision division_of(const WinogradProblem& problem, int64_t threads) {
  WinogradDivision division;
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

int64_t pixel_floats(const WinogradProblem& problem, const WinogradDivision& division) {
  return problem.positions() * plane_floats(division.tiles, problem.in_channels);
}

int64_t slot_floats(const WinogradProblem& problem, const WinogradDivision& division) {
  return pixel_floats(problem, division) +
         problem.positions() * plane_floats(division.tiles, division.unit_channels());
}

// A run between tensors of known sizes.
class WinogradRun {
 public:
  WinogradRun(const WinogradProblem& problem, const WinogradDivision& division,
              const WinogradLoops& loops, const GemmLoops& gemm_loops)
      : problem_(problem), division_(division), loops_(loops), gemm_loops_(gemm_loops) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) const {
    const Operands operands = {
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
        run_slot(operands, slot, units, workspace + slot * slot_floats(problem_, division_));
      }
    });
  }

 private:
  struct Operands {
    const float* from = nullptr;
    const float* weights = nullptr;
    WinogradEpilogue epilogue;
    float* to = nullptr;
  };

  // Some tiles side by side, with the numbers of those that are uneven, counted from the first.
  struct Pass {
    int64_t first = 0;
    int64_t tiles = 0;
    std::array<int64_t, kMaxTiles> uneven;
    int64_t uneven_count = 0;

    std::span<const int64_t> uneven_tiles() const {
      return std::span(uneven).first(static_cast<size_t>(uneven_count));
    }
  };

  // Some panels of the output channels.
  struct Columns {
    int64_t first = 0;  // channel
    int64_t end = 0;
    int64_t count() const { return end - first; }
  };

  void run_slot(const Operands& operands, int64_t slot, SharedParts& units, float* buffer) const {
    float* pixels = buffer;                                    // [positions, tiles, in_channels]
    float* sums = buffer + pixel_floats(problem_, division_);  // [positions, tiles, channels]
    Pass pass = {.first = -1};                                 // whose pixels are in the buffer
    units.for_each(slot, [&](int64_t unit) {
      const int64_t first = unit / division_.units_of_pass * division_.tiles;
      const int64_t channel = unit % division_.units_of_pass * division_.unit_channels();
      const Columns columns = {
          channel, std::min(channel + division_.unit_channels(), problem_.out_channels)};
      if (pass.first != first) {
        pass.first = first;
        pass.tiles = std::min(division_.tiles, problem_.tiles() - first);
        read(operands, pass, pixels);
      }
      multiply(operands, pass.tiles, columns, pixels, sums);
      if (pass.uneven_count > 0) multiply_uneven(operands, pass, columns, pixels, sums);
      write(operands, pass, columns, sums);
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

  // The tile as the loops take it, for input or output channels.
  WinogradTile input_tile(const TileOrigin& origin) const {
    return {.row = origin.row - problem_.rows.pad_begin,
            .column = origin.column - problem_.columns.pad_begin,
            .output_rows = std::min(problem_.tile, problem_.output.rows - origin.row),
            .output_columns = std::min(problem_.tile, problem_.output.columns - origin.column),
            .channels = problem_.in_channels,
            .plane = plane_floats(division_.tiles, problem_.in_channels)};
  }

  void read(const Operands& operands, Pass& pass, float* pixels) const {
    const WinogradFeatureMap& map = problem_.input;
    pass.uneven_count = 0;
    for (int64_t tile = 0; tile < pass.tiles; ++tile) {
      const TileOrigin origin = tile_origin(pass.first + tile);
      const bool is_even =
          loops_.read(map, input_tile(origin),
                      operands.from + origin.image * map.rows * map.columns * problem_.in_channels,
                      pixels + tile * problem_.in_channels);
      if (!is_even) pass.uneven[static_cast<size_t>(pass.uneven_count++)] = tile;
    }
  }

  // Calls body(column, width) for each panel.
  template <class Body>
  void for_each_panel(const Columns& columns, const Body& body) const {
    for (int64_t column = columns.first; column < columns.end; column += division_.width) {
      body(column, std::min(division_.width, columns.end - column));
    }
  }

  // The weights of a plane for the panel that begins with `column`.
  const float* weights_of(const Operands& operands, int64_t plane, int64_t column) const {
    return operands.weights + (plane * problem_.out_channels + column) * problem_.in_channels;
  }

  // Calls body(begin, end) for each part of the input channels that is summed on its own.
  template <class Body>
  void for_each_sum(const Body& body) const {
    const int64_t depth = problem_.in_channels;
    const int64_t step = divide_up(depth, divide_up(depth, kMaxSum));
    for (int64_t begin = 0; begin < depth; begin += step)
      body(begin, std::min(begin + step, depth));
  }

  // Adds the product to the elements at block.to, or overwrites them.
  void multiply_block(GemmBlock block, bool is_added) const {
    if (is_added) {
      block.epilogue.addend = block.to;
      block.epilogue.addend_row_stride = block.to_row_stride;
      block.epilogue.addend_column_stride = 1;
    }
    gemm_loops_.columns(block);
  }

  // One product for each panel of each element of a tile.
  void multiply(const Operands& operands, int64_t tiles, const Columns& columns,
                const float* pixels, float* sums) const {
    for (int64_t position = 0; position < problem_.positions(); ++position) {
      const float* left = pixels + position * plane_floats(division_.tiles, problem_.in_channels);
      float* to = sums + position * plane_floats(division_.tiles, columns.count());
      for_each_panel(columns, [&](int64_t column, int64_t width) {
        const float* right = weights_of(operands, position, column);
        const float* ahead = column + width == columns.end
                                 ? weights_of(operands, position + 1, columns.first)
                                 : weights_of(operands, position, column + width);
        for_each_sum([&](int64_t begin, int64_t end) {
          multiply_block({.left = left + begin,
                          .left_row_stride = problem_.in_channels,
                          .right = right + begin * width,
                          .right_depth_stride = width,
                          .ahead = ahead + begin * width,
                          .rows = tiles,
                          .columns = width,
                          .depth = end - begin,
                          .to = to + column - columns.first,
                          .to_row_stride = columns.count()},
                         begin > 0);
        });
      });
    }
  }

  // The outputs of the uneven tiles, in the first elements of their sums.
  void multiply_uneven(const Operands& operands, const Pass& pass, const Columns& columns,
                       const float* pixels, float* sums) const {
    for_each_panel(columns, [&](int64_t column, int64_t width) {
      for_each_sum([&](int64_t begin, int64_t end) {
        for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
          const int64_t plane = problem_.tap_plane(tap / kTaps, tap % kTaps);
          const float* right = weights_of(operands, plane, column) + begin * width;
          for (const int64_t tile : pass.uneven_tiles()) {
            multiply_tap({.left = pixels + tile * problem_.in_channels + begin,
                          .right = right,
                          .right_depth_stride = width,
                          .columns = width,
                          .depth = end - begin,
                          .to = sums + tile * columns.count() + column - columns.first},
                         tap, plane_floats(division_.tiles, columns.count()), begin > 0 || tap > 0);
          }
        }
      });
    });
  }

  // Adds the products of one tap to the outputs of a tile, which are `plane` apart.
  void multiply_tap(GemmBlock block, int64_t tap, int64_t plane, bool is_added) const {
    const float* pixels = block.left;
    float* outputs = block.to;
    const int64_t pixel = plane_floats(division_.tiles, problem_.in_channels);
    block.rows = problem_.tile;
    block.left_row_stride = pixel;
    block.to_row_stride = plane;
    for (int64_t row = 0; row < problem_.tile; ++row) {
      block.left = pixels + ((row + tap / kTaps) * problem_.side() + tap % kTaps) * pixel;
      block.to = outputs + row * problem_.tile * plane;
      multiply_block(block, is_added);
    }
  }

  void write(const Operands& operands, const Pass& pass, const Columns& columns,
             const float* sums) const {
    const WinogradFeatureMap& map = problem_.output;
    const int64_t channel =
        columns.first / map.block * map.block_stride + columns.first % map.block;
    std::span<const int64_t> uneven = pass.uneven_tiles();
    for (int64_t tile = 0; tile < pass.tiles; ++tile) {
      const TileOrigin origin = tile_origin(pass.first + tile);
      const int64_t start = origin.image * map.rows * map.columns * problem_.out_channels + channel;
      WinogradEpilogue last = operands.epilogue;
      if (last.bias != nullptr) last.bias += columns.first;
      if (last.addend != nullptr) last.addend += start;
      const bool is_uneven = !uneven.empty() && uneven.front() == tile;
      if (is_uneven) uneven = uneven.subspan(1);
      (is_uneven ? loops_.write_outputs : loops_.write)(
          map,
          {.row = origin.row,
           .column = origin.column,
           .channels = columns.count(),
           .plane = plane_floats(division_.tiles, columns.count())},
          last, sums + tile * columns.count(), operands.to + start);
    }
  }

  const WinogradProblem& problem_;
  const WinogradDivision& division_;
  const WinogradLoops& loops_;
  const GemmLoops& gemm_loops_;
};

class WinogradKernel : public plugin::Kernel {
 public:
  WinogradKernel(const WinogradProblem& problem, int64_t threads)
      : problem_(problem),
        threads_(threads),
        division_(division_of(problem, threads)),
        loops_(find_winograd_loops(problem.tile)),
        gemm_loops_(find_gemm_loops()) {}

  int64_t workspace_bytes() const override { return problem_.workspace_bytes(threads_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], problem_, [&](const WinogradProblem& problem) {
      const bool is_proposed = &problem == &problem_;
      const WinogradDivision division = is_proposed ? division_ : division_of(problem, threads_);
      WinogradRun(problem, division, loops_, gemm_loops_).run(context, inputs, outputs);
    });
  }

 private:
  // For the sizes of the proposal.
  WinogradProblem problem_;
  int64_t threads_;
  WinogradDivision division_;
  WinogradLoops loops_;
  GemmLoops gemm_loops_;
};

// Packs weights as [weight_planes, panels of out_channels, in_channels].
void pack_weights(const WinogradProblem& problem, int64_t first, int64_t end, const float* from,
                  float* to) {
  std::array<float, 36> transformed;
  for (int64_t channel = first; channel < end; ++channel) {
    const int64_t column = channel / problem.panel * problem.panel;
    const int64_t width = std::min(problem.panel, problem.out_channels - column);
    for (int64_t depth = 0; depth < problem.in_channels; ++depth) {
      const float* taps = from + (channel * problem.in_channels + depth) * kTaps * kTaps;
      const auto store = [&](int64_t plane, float weight) {
        to[(plane * problem.out_channels + column) * problem.in_channels + depth * width + channel -
           column] = weight;
      };
      transform_weights(problem.tile, taps, transformed.data());
      for (int64_t position = 0; position < problem.positions(); ++position) {
        store(position, transformed[static_cast<size_t>(position)]);
      }
      for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
        store(problem.tap_plane(tap / kTaps, tap % kTaps), taps[tap]);
      }
    }
  }
}

}  // namespace

void WinogradProblem::set_sizes(const ConvolutionSizes& other) {
  sizes = other;
  set_window(sizes, padding, rows, columns);
  const auto set_map = [](WinogradFeatureMap& map, int64_t map_rows, int64_t map_columns) {
    map.rows = map_rows;
    map.columns = map_columns;
    map.block = map.pixel;
    map.block_stride = map.rows * map.columns * map.pixel;
  };
  set_map(input, sizes.in_rows, sizes.in_columns);
  set_map(output, sizes.out_rows, sizes.out_columns);
}

int64_t WinogradProblem::workspace_bytes(int64_t threads) const {
  const WinogradDivision division = division_of(*this, std::max<int64_t>(threads, 1));
  return division.slots * slot_floats(*this, division) * kFloatBytes;
}

int64_t WinogradProblem::tap_plane(int64_t row, int64_t column) const {
  if (!has_corners()) return positions() + row * kTaps + column;
  if (row != 1 && column != 1) return (row * side() + column) / 2 * (side() - 1);
  constexpr std::array<int64_t, kTaps * kTaps> kOthers = {0, 0, 0, 1, 2, 3, 0, 4, 0};
  return positions() + kOthers[static_cast<size_t>(row * kTaps + column)];
}

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
  pack.id = "winograd" + std::to_string(problem.tile) + "_with_taps_panels" +
            std::to_string(problem.panel) + "_" + std::to_string(problem.in_channels) + "_" +
            std::to_string(problem.out_channels);
  pack.bytes = problem.weight_planes() * problem.plane_bytes();
  pack.pack = [problem](RunContext& context, const Buffer& from, void* to) {
    context.parallel_for(problem.out_channels, 8, [&](int64_t begin, int64_t end) {
      pack_weights(problem, begin, end, from.as<const float>(), static_cast<float*>(to));
    });
  };
  return pack;
}

std::unique_ptr<plugin::Kernel> make_winograd_kernel(const WinogradProblem& problem,
                                                     int64_t threads) {
  return std::make_unique<WinogradKernel>(problem, std::max<int64_t>(threads, 1));
}

}  // namespace tessera::native
