// Conversions between the layouts with channels, for feature maps of many sizes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "native_case.h"

namespace tessera::bench {
namespace {

// One image, or as many small ones as have this number of bytes.
BandwidthCase conversion(const std::string& from, const std::string& to, int64_t channels,
                         int64_t side) {
  return {.name = "Convert " + from + ">" + to + " C=" + std::to_string(channels) + " " +
                  std::to_string(side) + "x" + std::to_string(side),
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                const int64_t images = std::max<int64_t>(1, bytes / (4 * channels * side * side));
                graph.input("x", DataType::Float32, {images, channels, side, side});
                graph.node("Identity", {"x"}, {"y"}).output("y");
              },
          .layout = from,
          .converted_to = to};
}

}  // namespace

std::vector<BandwidthCase> conversion_cases() {
  const std::vector<std::pair<std::string, std::string>> directions = {
      {"row_major", "nhwc"},    {"nhwc", "row_major"}, {"row_major", "nchw16c"},
      {"nchw16c", "row_major"}, {"nhwc", "nchw16c"},   {"nchw16c", "nhwc"}};
  constexpr int64_t kMaxImageBytes = int64_t{16} << 20;
  std::vector<BandwidthCase> cases;
  for (const auto& [from, to] : directions) {
    for (const int64_t channels : {3, 16, 24, 64, 255, 512}) {
      for (const int64_t side : {7, 14, 28, 57, 112, 128, 224}) {
        if (4 * channels * side * side > kMaxImageBytes) continue;
        cases.push_back(conversion(from, to, channels, side));
      }
    }
  }
  return cases;
}

}  // namespace tessera::bench
