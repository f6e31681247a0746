#include "place_scale_picture.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace tessera {
namespace {

constexpr double kLeft = 70;
constexpr double kRight = 560;
constexpr double kTop = 20;
constexpr double kBottom = 380;
constexpr const char* kColours[] = {"#1b6ca8", "#c8553d", "#3d8b4f", "#8a5fb0",
                                    "#b08a1b", "#2a9d9d", "#a83d6e", "#556070"};

double across(double nodes) {
  return kLeft + (kRight - kLeft) * std::log(nodes / 50) / std::log(30000.0 / 50);
}

double down(double milliseconds) {
  const double above = std::log(std::max(milliseconds, 0.1) / 0.1) / std::log(20000.0 / 0.1);
  return kBottom - (kBottom - kTop) * above;
}

void draw_axes(std::ostream& out) {
  out << "<g stroke=\"#dde2ea\" fill=\"#334\">\n";
  for (const double nodes : {100.0, 1000.0, 10000.0}) {
    out << "<path d=\"M" << across(nodes) << ' ' << kTop << " V" << kBottom << "\"/><text x=\""
        << across(nodes) << "\" y=\"" << kBottom + 18 << "\" stroke=\"none\" "
        << "text-anchor=\"middle\">" << static_cast<int>(nodes) << "</text>\n";
  }
  const std::pair<double, const char*> times[] = {{0.1, "0.1 ms"}, {1, "1 ms"},   {10, "10 ms"},
                                                  {100, "100 ms"}, {1000, "1 s"}, {10000, "10 s"}};
  for (const auto& [milliseconds, text] : times) {
    out << "<path d=\"M" << kLeft << ' ' << down(milliseconds) << " H" << kRight << "\"/><text x=\""
        << kLeft - 8 << "\" y=\"" << down(milliseconds) + 4
        << "\" stroke=\"none\" text-anchor=\"end\">" << text << "</text>\n";
  }
  out << "</g>\n<text x=\"" << (kLeft + kRight) / 2 << "\" y=\"" << kBottom + 38
      << "\" text-anchor=\"middle\" fill=\"#334\">nodes</text>\n";
}

}  // namespace

std::string draw_scale(const std::vector<ScaleSeries>& all) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1)
      << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 430\" "
         "font-family=\"sans-serif\" font-size=\"12\" role=\"img\" "
         "aria-label=\"Time to place a graph against its number of nodes\">\n"
         "<rect width=\"720\" height=\"430\" fill=\"#ffffff\"/>\n";
  draw_axes(out);
  for (size_t index = 0; index < all.size(); ++index) {
    const char* colour = kColours[index % std::size(kColours)];
    out << "<path fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\" d=\"";
    const char* command = "M";
    for (const ScalePoint& point : all[index].points) {
      out << command << across(point.nodes) << ' ' << down(point.milliseconds) << ' ';
      command = "L";
    }
    const double row = kTop + 14 + 20 * static_cast<double>(index);
    out << "\"/>\n<path stroke=\"" << colour << "\" stroke-width=\"2\" d=\"M" << kRight + 16 << ' '
        << row - 4 << " h18\"/><text x=\"" << kRight + 40 << "\" y=\"" << row << "\" fill=\"#334\">"
        << all[index].name << "</text>\n";
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace tessera
