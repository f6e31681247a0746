// Holds a backend's candidates against the reference: every candidate that is offered for a graph
// is built, run in its layouts, with its packs, in place where it says so, and compared.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "base/parallel.h"
#include "graph/graph.h"
#include "ops/graph_test.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera {

// What was found out about one graph.
struct CheckResult {
  int candidates = 0;  // that were run
  size_t largest = 0;  // nodes of the largest group among them
  std::vector<std::string> failures;
  std::vector<std::string> refusals;  // of nodes that are in no candidate: "node: reason"
};

struct Tolerance {
  double relative = 1e-5;    // of the element
  double of_largest = 5e-6;  // of the largest element of the tensor
};

class CandidateCheck {
 public:
  // Opens the plug-in that this build made; `backend` is its name.
  explicit CandidateCheck(const std::string& backend);

  const ops::Registry& registry() const { return registry_; }

  // `graph` as built: types are inferred here. `fed` are its inputs by name.
  CheckResult run(const Graph& graph, const std::map<std::string, Tensor>& fed,
                  const Tolerance& tolerance = {});

 private:
  ops::Registry registry_;
  ThreadPool pool_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  std::unique_ptr<LayoutTable> layouts_;
};

// Random numbers that are the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  // From `low` to `high`, both included.
  int64_t whole(int64_t low, int64_t high);
  bool one_in(int64_t count) { return whole(1, count) == 1; }
  float number(float low, float high);
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(whole(0, static_cast<int64_t>(from.size()) - 1))];
  }
  Tensor tensor(std::vector<int64_t> dims, float low = -1, float high = 1);

 private:
  uint64_t next();
  uint64_t state_;
};

// A graph with its inputs, made step by step.
class RandomGraph {
 public:
  RandomGraph(const ops::Registry& registry, int opset) : builder(registry, opset) {}

  // A fed input, or a constant, of these elements.
  RandomGraph& input(const std::string& name, Tensor tensor);
  RandomGraph& constant(const std::string& name, Tensor tensor);
  // One or the other.
  RandomGraph& operand(Dice& dice, const std::string& name, Tensor tensor);

  GraphBuilder builder;
  std::map<std::string, Tensor> fed;
};

// What many cases came to.
struct Totals {
  int answered = 0;  // cases with a candidate
  int candidates = 0;
  int failures = 0;
  size_t largest = 0;  // nodes of the largest group
  std::map<std::string, int> refusals;
};

using MakeCase = std::function<RandomGraph(Dice& dice, const ops::Registry& registry)>;

// Makes and checks `cases` graphs; failures become the test's. Prints what was seen.
Totals check_cases(const std::string& backend, uint64_t seed, int cases, const MakeCase& make,
                   const Tolerance& tolerance = {});

}  // namespace tessera
