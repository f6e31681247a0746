// Convolutions by Winograd's algorithm keep the digits of every output, with any elements beside
// those that it reads: errors are compared with a bound for each output, which depends only on the
// elements that the output reads.

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

// The largest error, as a multiple of epsilon times the norm of the weights times the norm of the
// inputs that an output reads; see docs/decisions/0061-winograd-within-bounds.md.
constexpr double kStated = 16;
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

// The largest error for inputs of similar size.
constexpr double kOrdinary = 4.5;

// A convolution of 3 x 3 taps, perhaps with a sum and a Relu behind it.
struct Layer {
  int64_t images = 1;
  int64_t in_channels = 16;
  int64_t out_channels = 16;
  int64_t rows = 14;
  int64_t columns = 15;
  Sizes pads = {1, 1, 1, 1};
  bool has_bias = false;
  bool has_addend = false;
  bool has_relu = false;

  Sizes input() const { return {images, in_channels, rows, columns}; }
  Sizes weights() const { return {out_channels, in_channels, 3, 3}; }
  Sizes output() const {
    return {images, out_channels, rows + pads[0] + pads[2] - 2, columns + pads[1] + pads[3] - 2};
  }
};

// Elements of [images, channels, rows, columns].
struct FeatureMaps {
  float* elements = nullptr;
  Sizes dims;

  float& at(int64_t image, int64_t channel, int64_t row, int64_t column) const {
    return elements[((image * dims[1] + channel) * dims[2] + row) * dims[3] + column];
  }
};

FeatureMaps maps_of(Tensor& tensor) { return {tensor.mutable_as<float>().data(), tensor.dims()}; }

// For each output, the largest error.
std::vector<double> bounds_of(const Layer& layer, double factor, Tensor& input,
                              const Tensor& weights) {
  const FeatureMaps from = maps_of(input);
  // The sum of squares of the channels of each pixel.
  std::vector<double> squares(static_cast<size_t>(layer.images * layer.rows * layer.columns));
  for (int64_t index = 0; index < input.elements(); ++index) {
    const int64_t plane = layer.rows * layer.columns;
    const double element = from.elements[index];
    squares[static_cast<size_t>(index / plane / layer.in_channels * plane + index % plane)] +=
        element * element;
  }
  const Sizes output = layer.output();
  std::vector<double> bounds;
  for (int64_t image = 0; image < layer.images; ++image) {
    for (int64_t channel = 0; channel < layer.out_channels; ++channel) {
      const int64_t taps = channel * layer.in_channels * 9;
      double norm = 0;
      for (int64_t index = 0; index < layer.in_channels * 9; ++index) {
        const double weight = weights.as<float>()[static_cast<size_t>(taps + index)];
        norm += weight * weight;
      }
      for (int64_t row = 0; row < output[2]; ++row) {
        for (int64_t column = 0; column < output[3]; ++column) {
          double sum = 0;
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t y = row + tap / 3 - layer.pads[0];
            const int64_t x = column + tap % 3 - layer.pads[1];
            if (y < 0 || y >= layer.rows || x < 0 || x >= layer.columns) continue;
            sum += squares[static_cast<size_t>((image * layer.rows + y) * layer.columns + x)];
          }
          // Bias and addend, which are at most 1, are added at the end.
          const double bound =
              factor * std::sqrt(norm * sum) + (layer.has_bias || layer.has_addend ? 2 : 0);
          bounds.push_back(bound * kEpsilon);
        }
      }
    }
  }
  return bounds;
}

using Change = std::function<void(const FeatureMaps& input)>;

// The layer on random inputs that `change` has changed, by all candidates of native.
void check_layer(uint64_t seed, const Layer& layer, double factor, const Change& change) {
  static CandidateCheck check("native");
  Dice dice(seed);
  RandomGraph made(check.registry(), 13);
  Tensor input = dice.tensor(layer.input(), -1, 1);
  change(maps_of(input));
  Tensor weights = dice.tensor(layer.weights(), -1, 1);
  made.input("x", input).constant("w", weights);
  std::vector<std::string> inputs = {"x", "w"};
  if (layer.has_bias) {
    made.constant("b", dice.tensor({layer.out_channels}));
    inputs.emplace_back("b");
  }
  made.node("y", "Conv", inputs, attributes_of({{"pads", layer.pads}}));
  std::string last = "y";
  if (layer.has_addend) {
    made.input("r", dice.tensor(layer.output()));
    made.node("s", "Add", {"y", "r"});
    last = "s";
  }
  if (layer.has_relu) {
    made.node("z", "Relu", {last});
    last = "z";
  }
  made.builder.output(last);
  const Tolerance tolerance = {.of_elements = bounds_of(layer, factor, input, weights)};
  const CheckResult result = check.run(made.builder.graph(), made.fed, tolerance);
  // Two layouts for each of two sizes of tiles.
  EXPECT_GE(result.candidates, 4);
  for (const std::string& failure : result.failures)
    ADD_FAILURE() << "seed " << seed << ": " << failure;
}

void check_layer_on_each_target(uint64_t seed, const Layer& layer, const Change& change,
                                double factor = kStated) {
  for_each_target([&] { check_layer(seed, layer, factor, change); });
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Calls body(row, column) for the pixels that a tile of 4 x 4 outputs reads.
template <class Body>
void for_each_pixel_of_a_tile(const Body& body) {
  for (int64_t pixel = 0; pixel < 36; ++pixel) body(3 + pixel / 6, 3 + pixel % 6);
}

TEST(NativeWinograd, KeepsTheDigitsOfOrdinaryInputs) {
  for (const int64_t channels : {16, 64, 80, 144, 272}) {
    check_layer_on_each_target(1, {.in_channels = channels}, [](const FeatureMaps&) {}, kOrdinary);
  }
}

TEST(NativeWinograd, OneLargeElementSpoilsNoOutputThatDoesNotReadIt) {
  const std::vector<float> sizes = {30, -100, 300, 1e3, -1e4, 1e6, 1e10, -1e18, 1e25, 1e30};
  for_each_pixel_of_a_tile([&](int64_t row, int64_t column) {
    const auto number = static_cast<size_t>(row * 7 + column);
    check_layer_on_each_target(
        number, {.in_channels = number % 2 == 0 ? 16 : 48}, [&](const FeatureMaps& input) {
          input.at(0, row + column - 6, row, column) = sizes[number % sizes.size()];
        });
  });
}

TEST(NativeWinograd, NanAndInfinitiesReachOnlyWhatReadsThem) {
  const std::vector<float> values = {kNan, kInfinity, -kInfinity};
  for_each_pixel_of_a_tile([&](int64_t row, int64_t column) {
    const auto number = static_cast<size_t>(row * 7 + column);
    check_layer_on_each_target(number, {.has_relu = number % 2 == 0},
                               [&](const FeatureMaps& input) {
                                 input.at(0, row, row, column) = values[number % values.size()];
                               });
  });
}

// Makes a rectangle of pixels `factor` times as large.
void scale(const FeatureMaps& input, int64_t first_row, int64_t end_row, int64_t first_column,
           int64_t end_column, float factor) {
  for (int64_t image = 0; image < input.dims[0]; ++image) {
    for (int64_t channel = 0; channel < input.dims[1]; ++channel) {
      for (int64_t row = first_row; row < end_row; ++row) {
        for (int64_t column = first_column; column < end_column; ++column) {
          input.at(image, channel, row, column) *= factor;
        }
      }
    }
  }
}

TEST(NativeWinograd, DarkRegionsBesideBrightOnesKeepTheirDigits) {
  for (const float factor : {0.0F, 1e-30F, 1e-6F, 1e-3F, 0.03F, 0.2F, 8.0F, 1e4F}) {
    for (const int64_t edge : {1, 3, 4, 6}) {
      check_layer_on_each_target(5, {}, [&](const FeatureMaps& input) {
        scale(input, 0, edge, 0, input.dims[3], factor);
      });
      check_layer_on_each_target(6, {}, [&](const FeatureMaps& input) {
        scale(input, 0, input.dims[2], edge, input.dims[3], factor);
      });
      check_layer_on_each_target(7, {}, [&](const FeatureMaps& input) {
        scale(input, edge, edge + 3, edge, edge + 3, factor);
      });
    }
  }
}

TEST(NativeWinograd, AllSizesOfNumbersKeepTheirDigits) {
  for (const float factor : {0.0F, 1e-30F, 1e-22F, 1e-17F, 1e-10F, 1e10F, 1e17F, 1e22F, 1e30F}) {
    check_layer_on_each_target(8, {}, [&](const FeatureMaps& input) {
      scale(input, 0, input.dims[2], 0, input.dims[3], factor);
    });
  }
}

TEST(NativeWinograd, AnotherImageOfTheBatchChangesNothing) {
  check_layer_on_each_target(9, {.images = 3, .in_channels = 32, .rows = 9, .columns = 7},
                             [&](const FeatureMaps& input) {
                               for (int64_t channel = 0; channel < 32; ++channel) {
                                 for (int64_t pixel = 0; pixel < 63; ++pixel) {
                                   input.at(1, channel, pixel / 7, pixel % 7) *= 1e6F;
                                 }
                               }
                             });
}

// Some elements, pixels, or rectangles of another size, in layers of any shape.
TEST(NativeWinograd, AnyMixtureKeepsItsDigits) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Dice dice(seed);
    Layer layer = {.images = dice.whole(1, 2),
                   .in_channels = 16 * dice.whole(1, 9),
                   .out_channels = 16 * dice.whole(1, 6),
                   .rows = dice.whole(6, 21),
                   .columns = dice.whole(6, 21),
                   .pads = {dice.whole(0, 2), dice.whole(0, 2), dice.whole(0, 2), dice.whole(0, 2)},
                   .has_bias = dice.one_in(2),
                   .has_addend = dice.one_in(2),
                   .has_relu = dice.one_in(2)};
    check_layer_on_each_target(seed, layer, [&](const FeatureMaps& input) {
      for (int64_t count = dice.whole(0, 3); count > 0; --count) {
        const int64_t row = dice.whole(0, layer.rows - 1);
        const int64_t column = dice.whole(0, layer.columns - 1);
        const float factor = std::pow(10.0F, dice.number(-8, 12));
        if (dice.one_in(2)) {
          input.at(0, dice.whole(0, layer.in_channels - 1), row, column) = factor;
        } else {
          scale(input, row, dice.whole(row, layer.rows), column, dice.whole(column, layer.columns),
                factor);
        }
      }
    });
  }
}

}  // namespace
}  // namespace tessera
