// The plot of tessera_place_scale.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct ScalePoint {
  double nodes = 0;
  double milliseconds = 0;
};

struct ScaleSeries {
  std::string name;
  std::vector<ScalePoint> points;
};

// Time against size as SVG, both axes logarithmic: 50 to 30,000 nodes, 0.1 ms to 20 s.
std::string draw_scale(const std::vector<ScaleSeries>& all);

}  // namespace tessera
