// Runs Winograd's convolution for some tiles at a time: their pixels are transformed, multiplied by
// the transformed weights, one product for each place of a tile, and transformed back. Where the
// weights are few, each thread does all of this for tiles of its own, so that nothing leaves its
// cache. Where they are many, all threads share each product, so that weights are read once.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "product_kernels.h"
#include "winograd.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// Weights that leave room in a core's cache for the tiles.
constexpr int64_t kOwnWeightBytes = 1536 * 1024;

// What the transformed tiles of one pass take at most, and how many they are at least and at most:
// fewer are not worth reading the weights.
constexpr int64_t kPassBytes = 1024 * 1024;
constexpr int64_t kSharedPassBytes = 8 * 1024 * 1024;
constexpr int64_t kLeastTiles = 24;
constexpr int64_t kMostTiles = 192;

// Places are whole lines apart, but not by a power of two, where they would share cache sets.
constexpr int64_t kLineFloats = 16;

int64_t divide_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }

// How the tiles are shared out.
struct Passes {
  bool is_shared = false;
  int64_t tiles = 0;  // of a pass
  int64_t count = 0;
  int64_t slots = 1;  // passes at one time, each with buffers of its own
};

Passes passes_of(const WinogradProblem& problem, int64_t threads) {
  Passes passes;
  passes.is_shared = threads > 1 && problem.weight_bytes() > kOwnWeightBytes;
  const int64_t tile_bytes = problem.places() * (problem.from + problem.to) * kFloatBytes;
  const int64_t wanted = (passes.is_shared ? kSharedPassBytes : kPassBytes) / tile_bytes;
  const int64_t most = std::clamp(wanted, kLeastTiles, kMostTiles);
  passes.count = divide_up(problem.tiles(), most);
  if (!passes.is_shared) {
    // As many for each thread.
    passes.count = divide_up(passes.count, threads) * threads;
  }
  passes.tiles = divide_up(problem.tiles(), passes.count);
  passes.count = divide_up(problem.tiles(), passes.tiles);
  passes.slots = passes.is_shared ? 1 : std::min(threads, passes.count);
  return passes;
}

// From place to place of `tiles` transformed tiles.
int64_t plane_floats(int64_t tiles, int64_t channels) { return tiles * channels + kLineFloats; }

int64_t slot_floats(const WinogradProblem& problem, const Passes& passes) {
  return problem.places() *
         (plane_floats(passes.tiles, problem.from) + plane_floats(passes.tiles, problem.to));
}

class WinogradKernel : public plugin::Kernel {
 public:
  WinogradKernel(const WinogradProblem& problem, int64_t threads)
      : problem_(problem),
        passes_(passes_of(problem, threads)),
        loops_(find_winograd_loops(problem.tile)),
        product_loops_(find_product_loops()),
        panels_(divide_up(problem.to, product_loops_.panel)) {}

  int64_t workspace_bytes() const override {
    return passes_.slots * slot_floats(problem_, passes_) * kFloatBytes;
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const Run run = {
        .from = inputs[0].as<const float>(),
        .weights = inputs[1].as<const float>(),
        .end = {.bias = problem_.bias ? inputs[*problem_.bias].as<const float>() : nullptr,
                .addend = problem_.addend ? inputs[*problem_.addend].as<const float>() : nullptr,
                .has_relu = problem_.has_relu},
        .to = outputs[0].as<float>()};
    auto* buffer = static_cast<float*>(context.workspace());
    if (passes_.is_shared) {
      for (int64_t number = 0; number < passes_.count; ++number) {
        run_together(context, run, pass_of(number, buffer));
      }
      return;
    }
    context.parallel_for(passes_.slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        float* own = buffer + slot * slot_floats(problem_, passes_);
        for (int64_t number = passes_.count * slot / passes_.slots;
             number < passes_.count * (slot + 1) / passes_.slots; ++number) {
          const Pass pass = pass_of(number, own);
          read(run, pass, 0, pass.tiles);
          multiply(run, pass, 0, problem_.places() * panels_);
          write(run, pass, 0, pass.tiles);
        }
      }
    });
  }

 private:
  struct Run {
    const float* from = nullptr;
    const float* weights = nullptr;
    WinogradEnd end;
    float* to = nullptr;
  };

  // Some tiles on their way.
  struct Pass {
    int64_t first = 0;
    int64_t tiles = 0;
    float* pixels = nullptr;  // transformed: [places, tiles, from]
    float* sums = nullptr;    // [places, tiles, to]
  };

  Pass pass_of(int64_t number, float* buffer) const {
    const int64_t first = number * passes_.tiles;
    return {first, std::min(passes_.tiles, problem_.tiles() - first), buffer,
            buffer + problem_.places() * plane_floats(passes_.tiles, problem_.from)};
  }

  void run_together(RunContext& context, const Run& run, const Pass& pass) const {
    context.parallel_for(pass.tiles, 1,
                         [&](int64_t begin, int64_t end) { read(run, pass, begin, end); });
    context.parallel_for(problem_.places() * panels_, 1,
                         [&](int64_t begin, int64_t end) { multiply(run, pass, begin, end); });
    context.parallel_for(pass.tiles, 1,
                         [&](int64_t begin, int64_t end) { write(run, pass, begin, end); });
  }

  // The image of a tile and where its results begin.
  struct Spot {
    int64_t image = 0;
    int64_t row = 0;
    int64_t column = 0;
  };

  Spot spot_of(int64_t tile) const {
    const int64_t columns = problem_.tile_columns();
    const int64_t rows = problem_.tile_rows();
    return {tile / columns / rows, tile / columns % rows * problem_.tile,
            tile % columns * problem_.tile};
  }

  // Tiles [begin, end) of the pass.
  void read(const Run& run, const Pass& pass, int64_t begin, int64_t end) const {
    const WinogradPicture& picture = problem_.input;
    for (int64_t tile = begin; tile < end; ++tile) {
      const Spot spot = spot_of(pass.first + tile);
      loops_.read(picture,
                  {.row = spot.row - problem_.pad_rows,
                   .column = spot.column - problem_.pad_columns,
                   .channels = problem_.from,
                   .plane = plane_floats(passes_.tiles, problem_.from)},
                  run.from + spot.image * picture.rows * picture.columns * problem_.from,
                  pass.pixels + tile * problem_.from);
    }
  }

  // Products [begin, end): of each place, its panels.
  void multiply(const Run& run, const Pass& pass, int64_t begin, int64_t end) const {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t place = index / panels_;
      const int64_t column = index % panels_ * product_loops_.panel;
      const int64_t width = std::min(product_loops_.panel, problem_.to - column);
      product_loops_.columns(
          {.left = pass.pixels + place * plane_floats(passes_.tiles, problem_.from),
           .left_row = problem_.from,
           .right = run.weights + (place * problem_.to + column) * problem_.from,
           .right_depth = width,
           .rows = pass.tiles,
           .columns = width,
           .depth = problem_.from,
           .to = pass.sums + place * plane_floats(passes_.tiles, problem_.to) + column,
           .to_row = problem_.to});
    }
  }

  void write(const Run& run, const Pass& pass, int64_t begin, int64_t end) const {
    const WinogradPicture& picture = problem_.output;
    for (int64_t tile = begin; tile < end; ++tile) {
      const Spot spot = spot_of(pass.first + tile);
      const int64_t image = spot.image * picture.rows * picture.columns * problem_.to;
      WinogradEnd last = run.end;
      if (last.addend != nullptr) last.addend += image;
      loops_.write(picture,
                   {.row = spot.row,
                    .column = spot.column,
                    .channels = problem_.to,
                    .plane = plane_floats(passes_.tiles, problem_.to)},
                   last, pass.sums + tile * problem_.to, run.to + image);
    }
  }

  WinogradProblem problem_;
  Passes passes_;
  WinogradLoops loops_;
  ProductLoops product_loops_;
  int64_t panels_ = 1;
};

// Places, each of panels of the output's channels, each of the input's channels.
void pack_weights(const WinogradProblem& problem, int64_t panel, int64_t first, int64_t end,
                  const float* from, float* to) {
  std::array<float, 36> transformed;
  for (int64_t channel = first; channel < end; ++channel) {
    const int64_t column = channel / panel * panel;
    const int64_t width = std::min(panel, problem.to - column);
    for (int64_t depth = 0; depth < problem.from; ++depth) {
      transform_weights(problem.tile, from + (channel * problem.from + depth) * kTaps * kTaps,
                        transformed.data());
      for (int64_t place = 0; place < problem.places(); ++place) {
        to[(place * problem.to + column) * problem.from + depth * width + channel - column] =
            transformed[static_cast<size_t>(place)];
      }
    }
  }
}

}  // namespace

plugin::Pack winograd_pack(const WinogradProblem& problem) {
  const int64_t panel = find_product_loops().panel;
  plugin::Pack pack;
  pack.id = "winograd" + std::to_string(problem.tile) + "_panels" + std::to_string(panel) + "_" +
            std::to_string(problem.from) + "_" + std::to_string(problem.to);
  pack.bytes = problem.weight_bytes();
  pack.pack = [problem, panel](RunContext& context, const Buffer& from, void* to) {
    context.parallel_for(problem.to, 8, [&](int64_t begin, int64_t end) {
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
