// tessera_place_scale: the time of exact placement, by shape and size of the graph.
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads/stopwatch.h"
#include "large_problem.h"
#include "place/explain_violation.h"
#include "place/solve_placement.h"
#include "place_scale_picture.h"

namespace tessera {
namespace {

constexpr int kSizes[] = {100, 300, 1000, 3000, 10000};

constexpr const char* kUsage =
    "usage: tessera_place_scale [--shape NAME] [--layouts 2..4] [--most-nodes N] [--svg FILE]\n"
    "\n"
    "Solves placements of generated graphs of 100 to 10,000 nodes, and prints a row for each:\n"
    "what there is to choose from, the processor's milliseconds, how much dearer the answer may "
    "be\n"
    "than the cheapest one. --svg draws the time against the number of nodes.\n"
    "\n"
    "example: tessera_place_scale --svg docs/pictures/placement_scale.svg\n";

struct Options {
  std::string shape;
  int layouts = 4;
  int max_nodes = 10000;
  std::string svg_file;
};

bool parse(std::span<char*> arguments, Options& options) {
  for (size_t index = 1; index < arguments.size(); index += 2) {
    const std::string_view name = arguments[index];
    if (index + 1 == arguments.size()) return false;
    const char* value = arguments[index + 1];
    if (name == "--shape") {
      options.shape = value;
    } else if (name == "--layouts") {
      options.layouts = std::atoi(value);
    } else if (name == "--most-nodes") {
      options.max_nodes = std::atoi(value);
    } else if (name == "--svg") {
      options.svg_file = value;
    } else {
      return false;
    }
  }
  return options.layouts >= 2 && options.layouts <= 4;
}

// Returns the point for the plot.
ScalePoint measure(GraphShape shape, int nodes, int layouts) {
  const PlacementProblem problem = make_large_problem(shape, {.nodes = nodes, .layouts = layouts});
  const Stopwatch stopwatch;
  const PlacementSolution solution = solve_placement(problem);
  // solve_placement() uses only this thread, whose processor time is the time on an idle machine.
  const double milliseconds = 1000 * stopwatch.read().thread_seconds;
  const std::string violation = explain_violation(problem, solution);
  if (!violation.empty()) {
    std::cerr << shape_name(shape) << ": " << violation << '\n';
    std::exit(1);
  }
  const double gap = solution.seconds / solution.lower_bound - 1;
  std::cout << std::left << std::setw(15) << shape_name(shape) << std::right << std::setw(8)
            << problem.nodes.size() << std::setw(12) << problem.candidates.size() << std::fixed
            << std::setprecision(1) << std::setw(10) << milliseconds << std::setprecision(4)
            << std::setw(9) << 100 * gap << std::setw(8) << (solution.is_proven() ? "yes" : "no")
            << std::setw(10) << solution.networks << '\n'
            << std::flush;
  return {static_cast<double>(problem.nodes.size()), milliseconds};
}

int run(std::span<char*> arguments) {
  Options options;
  if (!parse(arguments, options)) {
    std::cerr << kUsage;
    return 2;
  }
  std::cout << "shape             nodes  candidates        ms    gap %  proven  networks\n";
  std::vector<ScaleSeries> all;
  for (const GraphShape shape : graph_shapes()) {
    if (!options.shape.empty() && options.shape != shape_name(shape)) continue;
    ScaleSeries& series = all.emplace_back();
    series.name = shape_name(shape);
    for (const int nodes : kSizes) {
      if (nodes <= options.max_nodes) {
        series.points.push_back(measure(shape, nodes, options.layouts));
      }
    }
  }
  if (all.empty()) {
    std::cerr << "no shape '" << options.shape << "'; there are:";
    for (const GraphShape shape : graph_shapes()) std::cerr << ' ' << shape_name(shape);
    std::cerr << '\n';
    return 2;
  }
  if (!options.svg_file.empty()) std::ofstream(options.svg_file) << draw_scale(all);
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) {
  return tessera::run({arguments, static_cast<size_t>(count)});
}
