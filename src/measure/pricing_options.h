// How a choice comes to know prices.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "measure/tune.h"
#include "price/cost_table.h"
#include "price/reused_choice.h"
#include "price/shared_costs.h"

namespace tessera {

struct PricingOptions {
  // What is known, and where what is measured is added; null: the choice is made in order.
  tuning::CostTable* costs = nullptr;
  // Where `costs` is completed from: what the process knows of this graph's candidates; may be
  // null.
  tuning::SharedCosts* shared = nullptr;
  // The plan to take as long as it can be used, whatever `costs` name.
  std::optional<tuning::KnownPlan> known_plan = {};
  // Where there is such a plan, here or in the costs, nothing is measured.
  bool relies_on_known_plan = false;
  bool measures = false;      // what is not known yet and could win
  bool measures_all = false;  // also what could not
  // Backends of which nothing is measured: what is not known of them could not win.
  std::set<std::string> fully_measured_backends = {};
  // Graphs that take less than a millisecond are measured in this process, where nothing is to be
  // started for them: no library is among those asked that this process would not run anyway.
  bool measures_short_here = false;
  // Nobody waits for it: graphs that take little get as much time as all others.
  bool is_in_background = false;
  // What was found out for the same network with other shapes, to choose by; null: nothing.
  const tuning::ReusedChoice* reused = nullptr;
  // How often a process runs what it has built, so that building a kernel counts with so small a
  // part; 0: building costs nothing.
  int64_t runs_per_build = 0;
  // Also find a plan that starts sooner, where building what is chosen takes long.
  bool wants_startup_plan = false;
  double margin_search_seconds = 0;  // see BindOptions
  double solve_budget_seconds = 0;   // see BindOptions
  tuning::TuneOptions tune;
};

}  // namespace tessera
