// Cost networks as files in the JSON format for cost function networks (.cfn), which other solvers
// read too:
//   solver_cases write FOLDER   writes the choice among candidates in graphs of several shapes
//   solver_cases solve FILE...  prints the result of minimise() for each, one line of JSON
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "large_problem.h"
#include "place/placement_network.h"
#include "solver/cost_network.h"
#include "solver/explain_violation.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNodes = 24;
// Files have costs with three decimals in these units; costs of at least kForbiddenUnits are
// infinite.
constexpr double kUnitsOfASecond = 1e6;
constexpr double kForbiddenUnits = 1e9;

double units(double seconds) {
  if (seconds == kForbidden) return kForbiddenUnits;
  return std::round(seconds * kUnitsOfASecond * 1000) / 1000;
}

Json to_json(const CostNetwork& network, const std::string& name) {
  Json variables = Json::object();
  for (size_t index = 0; index < network.domain_sizes.size(); ++index) {
    variables["x" + std::to_string(index)] = network.domain_sizes[index];
  }
  Json functions = Json::object();
  for (size_t index = 0; index < network.factors.size(); ++index) {
    const CostFactor& factor = network.factors[index];
    Json scope = Json::array();
    for (const int variable : factor.variables) scope.push_back("x" + std::to_string(variable));
    Json costs = Json::array();
    for (const double cost : factor.costs) costs.push_back(units(cost));
    functions["f" + std::to_string(index)] = {{"scope", std::move(scope)},
                                              {"costs", std::move(costs)}};
  }
  return {{"problem", {{"name", name}, {"mustbe", "<1000000000.000"}}},
          {"variables", std::move(variables)},
          {"functions", std::move(functions)}};
}

CostNetwork read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const Json json = Json::parse(stream);
  CostNetwork network;
  std::map<std::string, int> numbers;
  for (const auto& [name, size] : json.at("variables").items()) {
    numbers[name] = static_cast<int>(network.domain_sizes.size());
    network.domain_sizes.push_back(size.get<int>());
  }
  for (const auto& [name, function] : json.at("functions").items()) {
    CostFactor factor;
    for (const Json& variable : function.at("scope")) {
      factor.variables.push_back(numbers.at(variable.get<std::string>()));
    }
    for (const Json& cost : function.at("costs")) {
      const auto number = cost.get<double>();
      factor.costs.push_back(number >= kForbiddenUnits ? kForbidden : number);
    }
    network.factors.push_back(std::move(factor));
  }
  return network;
}

void write(const std::filesystem::path& folder) {
  for (const GraphShape shape : graph_shapes()) {
    const PlacementProblem problem = make_large_problem(shape, {.nodes = kNodes});
    const CostNetwork network = PlacementNetwork(problem).state({});
    std::ofstream stream(folder / (shape_name(shape) + ".cfn"));
    stream << to_json(network, shape_name(shape)).dump() << "\n";
  }
}

void solve(const std::filesystem::path& file) {
  const CostNetwork network = read(file);
  const NetworkSolution solution = minimise(network);
  std::cout << Json{{"name", file.stem().string()},
                    {"variables", network.domain_sizes.size()},
                    {"cost", solution.cost},
                    {"lower_bound", solution.lower_bound},
                    {"violation", explain_violation(network, solution)}}
                   .dump()
            << "\n";
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) {
  const std::string verb = count > 2 ? arguments[1] : "";
  try {
    if (verb == "write") tessera::write(arguments[2]);
    for (int index = 2; verb == "solve" && index < count; ++index) {
      tessera::solve(arguments[index]);
    }
    return verb == "write" || verb == "solve" ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
