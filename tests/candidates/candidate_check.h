// Holds a backend's candidates against the reference: every candidate that is offered for a graph
// is built, run in its layouts, with its packs, in place where it says so, and compared.
// candidate_run.h does that for one; random_graph.h makes the graphs.
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
#include "candidate_run.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "random_graph.h"
#include "tessera/tensor.h"

namespace tessera {

// What was found out about one graph.
struct CheckResult {
  int candidates = 0;  // that were run
  int sparse = 0;      // of these, those that take a sparse input
  size_t largest = 0;  // nodes of the largest group among them
  std::vector<std::string> failures;
  std::vector<std::string> refusals;  // of nodes that are in no candidate: "node: reason"
};

class CandidateCheck {
 public:
  // Opens the plug-in that this build made; `backend` is its name. After a '+' come others, of
  // which only the layouts are used, and those that were not built are left out.
  explicit CandidateCheck(const std::string& backend);

  const ops::Registry& registry() const { return registry_; }

  // `graph` as built: types are inferred here. `fed` are its inputs by name; those in `sparse` may
  // be taken in that form.
  CheckResult run(const Graph& graph, const std::map<std::string, Tensor>& fed,
                  const Tolerance& tolerance = {},
                  const std::map<std::string, SparseForm>& sparse = {});

 private:
  Offers offers_for(const tessera_graph& view, const LayoutTable& layouts) const;
  // Whoever has a known plan asks for its candidates alone. Each that is offered where everything
  // is asked for must be offered then; those that are not, in sentences.
  std::vector<std::string> missing_where_wanted(const tessera_graph& view,
                                                const LayoutTable& layouts) const;

  ops::Registry registry_;
  ThreadPool pool_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;         // the one that is checked
  std::vector<std::shared_ptr<const Plugin>> layout_plugins_;  // all that bring layouts
};

// What many cases came to.
struct Totals {
  int answered = 0;  // cases with a candidate
  int sparse = 0;    // cases with one that takes a sparse input
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
