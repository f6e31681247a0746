// Compares a backend's candidates with the reference: builds and runs every candidate that is
// offered for a graph, in its layouts, with its packs, and in place if it declares that.
// candidate_run.cc checks one candidate; random_graph.h makes the graphs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "base/threads/parallel.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "random_graph.h"
#include "tessera/tensor.h"

namespace tessera {

struct Tolerance {
  double relative = 1e-5;    // relative to the element
  double of_largest = 5e-6;  // relative to the largest element of the tensor
  // Relative to the sum of the magnitudes of the inputs, divided by the number of elements of the
  // output: for sums, whose terms may cancel.
  double of_inputs = 0;
  // If not empty: the largest error of each element of the outputs, in place of the two above.
  std::vector<double> of_elements = {};
  // The largest difference of elements of integers.
  int quanta = 0;
  // The lowest one that candidates may compute in; TESSERA_PRECISION_.
  int precision = TESSERA_PRECISION_FLOAT32;
};

// Whether a kernel runs on the sizes that it was built for.
enum class KernelSizes : uint8_t { AsBuilt, Other };

// Explains what is wrong with `candidate`; "" if it is fine. Builds it and runs it twice, in place
// and adding if it declares support for these, and with inputs that are parts of larger tensors if
// it accepts them. `values` are all values of `graph`. Every buffer is surrounded by guard bytes.
// For views and joint candidates, checks where their parts are.
std::string explain_wrong(const Graph& graph, const std::vector<Tensor>& values,
                          const LayoutTable& layouts, const Candidate& candidate, ThreadPool& pool,
                          const Tolerance& tolerance, KernelSizes sizes = KernelSizes::AsBuilt);

// The result of checking one graph.
struct CheckResult {
  int candidates = 0;  // that were run
  int sparse = 0;      // of these, candidates with a sparse input
  int resized = 0;     // run again with a kernel that was built for other sizes
  size_t largest = 0;  // the number of nodes of the largest group among them
  std::vector<std::string> failures;
  std::vector<std::string> refusals;  // of nodes that no candidate covers: "node: reason"
};

class CandidateCheck {
 public:
  // Opens the plug-in `backend` of this build. Names after a '+' are other plug-ins, of which only
  // the layouts are used; those that were not built are ignored.
  explicit CandidateCheck(const std::string& backend);

  const ops::Registry& registry() const { return registry_; }

  // Infers the types of `graph`. `fed` has its inputs by name; those in `sparse` may be fed in that
  // form.
  CheckResult run(const Graph& graph, const std::map<std::string, Tensor>& fed,
                  const Tolerance& tolerance = {},
                  const std::map<std::string, SparseForm>& sparse = {});

 private:
  Offers offers_for(const tessera_graph& view, const LayoutTable& layouts, int precision) const;
  // If a plan is known, a backend is asked only for the candidates of that plan. Each candidate
  // that it offers without this restriction must also be offered with it. Returns a sentence for
  // each that is not.
  std::vector<std::string> missing_where_wanted(const tessera_graph& view,
                                                const LayoutTable& layouts) const;

  ops::Registry registry_;
  uint64_t graphs_ = 0;  // that were checked
  ThreadPool pool_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;         // the plug-in under test
  std::vector<std::shared_ptr<const Plugin>> layout_plugins_;  // the plug-ins that provide layouts
};

// Totals over many cases.
struct Totals {
  int answered = 0;  // cases with a candidate
  int sparse = 0;    // cases with a candidate that has a sparse input
  int candidates = 0;
  int resized = 0;  // runs with kernels that were built for other sizes
  int failures = 0;
  size_t largest = 0;  // nodes of the largest group
  std::map<std::string, int> refusals;
};

// Expects that at least `answered` cases had a candidate, the largest of `largest` nodes.
void expect_answers(const Totals& totals, int answered, size_t largest);

// Expects that there was no candidate, for one reason, which contains `reason`.
void expect_refusal(const Totals& totals, const std::string& reason);

using MakeCase = std::function<RandomGraph(Dice& dice, const ops::Registry& registry)>;

// Makes and checks `cases` graphs, reports failures to GoogleTest, and prints the totals.
Totals check_cases(const std::string& backend, uint64_t seed, int cases, const MakeCase& make,
                   const Tolerance& tolerance = {});

}  // namespace tessera
