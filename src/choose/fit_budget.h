// Place and plan in turns, until the plan fits into the memory that it may take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/placer.h"
#include "graph/graph.h"
#include "place/placement.h"
#include "plan/memory_use.h"

namespace tessera {

// While the plan of a choice takes more than the budget, candidates that take much of it are
// forbidden to the placer: those whose workspace is live at the peak, that could write in place
// there, or whose packs and libraries keep more than others for the same nodes would; those first
// that save the most or, with prices, the most for what it costs in time. After some rounds only
// what is known to fit may still be chosen. What is known was found in advance the same way, and
// among the choices of least memory.
class BudgetFitter {
 public:
  // 0 bytes: no limit. `graph`, `offers` and `layouts` must outlive it.
  BudgetFitter(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
               int64_t budget_bytes);

  // Lets `placer` use everything again, and finds out whether anything fits, by what it knows now.
  // Throws OutOfMemory where nothing does that is found, with the least and whether that is proven:
  // what each node needs at least comes to as much.
  void start(Placer& placer);

  bool fits(const Placement& placement, const Placer& placer) const;

  // Where `placement` does not fit, forbids some of it to `placer` and gives true: choose again.
  // start() was called before.
  bool restrict_to_budget(const Placement& placement, Placer& placer);

 private:
  struct Saving {
    int candidate = 0;
    int64_t bytes = 0;
    double seconds = 0;  // that another choice takes longer
  };

  ExecutionPlan plan_of(const Placement& placement, const Placer& placer) const;
  std::vector<Saving> savings(const ExecutionPlan& plan, const MemoryUse& use,
                              const Placer& placer) const;
  std::optional<Saving> saving_of(int candidate, bool is_at_peak, const Placer& placer) const;
  bool forbid_some(const ExecutionPlan& plan, const MemoryUse& use, Placer& placer);
  void allow_only(const Placement& placement, Placer& placer);
  Placement known_to_fit(Placer placer);
  std::vector<Placement> lean_placements(const Placer& placer) const;
  int64_t live_bytes(const Candidate& candidate, const std::vector<bool>& is_made_by_view) const;
  [[noreturn]] void fail(const Placer& placer) const;
  int64_t min_bytes(const Placer& placer) const;
  void note(const MemoryUse& use);

  const Graph& graph_;
  const Offers& offers_;
  const LayoutTable& layouts_;
  int64_t budget_bytes_;
  std::vector<int64_t> kept_bytes_;  // by candidate: weights as it reads them, and its library
  std::vector<int64_t> live_bytes_;  // by candidate: what the arena holds while it runs, at least
  std::vector<bool> is_over_;        // by candidate: forbidden for what it takes
  std::vector<bool> is_given_;       // by value: the caller's memory, input or output
  int rounds_ = 0;
  Placement fitting_;
  std::optional<MemoryUse> smallest_;
};

}  // namespace tessera
