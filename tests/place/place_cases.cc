// place_cases FIRST COUNT NODES: prints random placement problems with seeds from FIRST on, and the
// results of solve_placement(), as one line of JSON each. placement_test.py solves them with
// another solver.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "place/explain_violation.h"
#include "place/solve_placement.h"
#include "random_problem.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ports_json(const std::vector<PlacementPort>& ports) {
  Json list = Json::array();
  for (const PlacementPort& port : ports) list.push_back({port.value, port.layout});
  return list;
}

Json problem_json(const PlacementProblem& problem) {
  Json nodes = Json::array();
  for (const PlacementNode& node : problem.nodes) {
    nodes.push_back({{"inputs", node.inputs}, {"outputs", node.outputs}});
  }
  Json candidates = Json::array();
  for (const PlacementCandidate& candidate : problem.candidates) {
    candidates.push_back({{"seconds", candidate.seconds},
                          {"nodes", candidate.nodes},
                          {"inputs", ports_json(candidate.inputs)},
                          {"outputs", ports_json(candidate.outputs)},
                          {"workspace_bytes", candidate.workspace_bytes}});
  }
  Json prices = Json::array();
  for (int value = 0; value < problem.value_count; ++value) {
    Json row = Json::array();
    for (int from = 0; from < problem.layout_count; ++from) {
      for (int to = 0; to < problem.layout_count; ++to) {
        row.push_back(number(conversion_price(problem, value, from, to)));
      }
    }
    prices.push_back(std::move(row));
  }
  return {{"layouts", problem.layout_count},
          {"nodes", std::move(nodes)},
          {"candidates", std::move(candidates)},
          {"conversion_prices", std::move(prices)},
          {"is_constant", problem.is_constant},
          {"results", problem.results},
          {"is_forbidden", problem.is_forbidden},
          {"workspace_bytes_limit", problem.workspace_bytes_limit}};
}

Json solution_json(const PlacementProblem& problem, const PlacementSolution& solution) {
  Json conversions = Json::array();
  for (const PlacementConversion& one : solution.conversions) {
    conversions.push_back({one.value, one.from, one.to});
  }
  return {{"chosen", solution.placement.chosen},
          {"conversions", std::move(conversions)},
          {"seconds", number(solution.seconds)},
          {"lower_bound", number(solution.lower_bound)},
          {"networks", solution.networks},
          {"violation", solution.is_found() ? explain_violation(problem, solution) : ""}};
}

// The problem without its limit on workspaces, and without pins, to measure how much these cost.
PlacementProblem without_limit(PlacementProblem problem) {
  problem.workspace_bytes_limit = kNoByteLimit;
  return problem;
}
PlacementProblem without_pins(PlacementProblem problem) {
  problem.is_forbidden.clear();
  return problem;
}

int run(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: place_cases FIRST COUNT NODES\n\nexample: place_cases 0 100 14\n";
    return 2;
  }
  const auto first = static_cast<unsigned>(std::strtoul(arguments[1], nullptr, 10));
  const auto cases = static_cast<unsigned>(std::strtoul(arguments[2], nullptr, 10));
  const int nodes = static_cast<int>(std::strtol(arguments[3], nullptr, 10));
  for (unsigned seed = first; seed < first + cases; ++seed) {
    const PlacementProblem problem =
        make_random_problem(seed, {.max_nodes = nodes, .max_groups = nodes});
    Json line = {{"seed", seed}, {"problem", problem_json(problem)}};
    line["solution"] = solution_json(problem, solve_placement(problem));
    line["seconds_without_limit"] = number(solve_placement(without_limit(problem)).seconds);
    line["seconds_without_pins"] = number(solve_placement(without_pins(problem)).seconds);
    std::cout << line << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) { return tessera::run(count, arguments); }
