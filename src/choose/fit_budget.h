// Alternates between placing and planning until the plan fits into the memory budget.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/choice_problem.h"
#include "graph/graph.h"
#include "place/placement.h"
#include "plan/memory_use.h"

namespace tessera {

// While the plan of a choice exceeds the budget, adds candidates to the constraints for which
// others need less memory: less live memory at the peak (a smaller workspace, outputs that can be
// written in place), or fewer kept bytes of packs and libraries. The candidates that save the most
// bytes come first; with prices, the candidates that save the most bytes for each second lost.
// After a number of rounds, only the placement that start() found remains allowed. start() searches
// for it in the same way, and then among the placements of least memory.
//
// `preferred` is the placement that choose() prefers; see there.
class BudgetFitter {
 public:
  // 0 bytes: no limit. `graph`, `offers` and `layouts` must outlive this.
  BudgetFitter(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
               int64_t budget_bytes);

  // Searches for a placement of `task` that fits. Requires that no candidate of `task` is
  // oversized: constraints from before this call no longer count. Throws OutOfMemory if none is
  // found. The message states the smallest plan that was found, and whether it is proven the
  // smallest: no larger than the lower bound that follows from the minimum needs of each node.
  void start(const ChoiceTask& task, const Placement& preferred = {});

  bool fits(const Placement& placement, const ChoiceTask& task) const;

  // If `placement`, a choice of `task`, does not fit, or needs more memory on a device than it has,
  // returns the constraints under which to choose again: those of `task`, and some of the
  // candidates of `placement`. nullopt if it fits. Requires that start() was called. Throws
  // OutOfMemory as start() does if nothing that fits remains.
  std::optional<Constraints> restrict_to_budget(const Placement& placement, const ChoiceTask& task,
                                                const Placement& preferred = {});

 private:
  struct Saving {
    int candidate = 0;
    int64_t bytes = 0;
    double seconds = 0;  // additional time of the alternative
  };

  ExecutionPlan plan_of(const Placement& placement, const ChoiceTask& task) const;
  std::vector<Saving> savings(const ExecutionPlan& plan, const MemoryUse& use,
                              const ChoiceTask& task) const;
  std::optional<Saving> saving_of(int candidate, bool is_at_peak, const ChoiceTask& task) const;
  bool forbid_some(const ExecutionPlan& plan, const MemoryUse& use, const ChoiceTask& task,
                   const Placement& preferred);
  Placement find_fitting(const ChoiceTask& task, const Placement& preferred);
  std::vector<Placement> low_memory_placements(const ChoiceTask& task) const;
  // Returns the bytes of the candidate's weights and of the memory that its library keeps. More
  // about the latter becomes known when a kernel is built.
  int64_t kept_bytes(size_t candidate) const;
  int64_t live_bytes(const Candidate& candidate, const std::vector<bool>& is_made_by_view) const;
  [[noreturn]] void fail(const ChoiceTask& task) const;
  int64_t min_bytes(const ChoiceTask& task) const;
  void note(const MemoryUse& use);

  const Graph& graph_;
  const Offers& offers_;
  const LayoutTable& layouts_;
  int64_t budget_bytes_;
  std::vector<int64_t> weight_bytes_;   // by candidate: of its weights, as it reads them
  std::vector<int64_t> live_bytes_;     // by candidate: minimum of live arena bytes while it runs
  std::vector<bool> oversized_;         // by candidate: forbidden because of its memory
  std::vector<bool> is_caller_memory_;  // by value: in the caller's memory
  int rounds_ = 0;
  Placement fitting_;
  std::optional<MemoryUse> smallest_;
};

}  // namespace tessera
