// Options for the prices of a choice.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/tune.h"
#include "price/cost_table.h"
#include "price/price_tuning.h"
#include "price/reused_choice.h"
#include "price/shared_costs.h"

namespace tessera {

struct PricingOptions {
  // The known costs, to which measurements are added. Null: the choice is made in order.
  tuning::CostTable* costs = nullptr;
  // The costs of the graph's candidates that this process knows; added to `costs`. May be null.
  tuning::SharedCosts* shared = nullptr;
  // The plan to choose as long as it is usable, even if `costs` name another one.
  std::optional<tuning::KnownPlan> known_plan = {};
  // If a plan is known, here or in the costs, nothing is measured.
  bool relies_on_known_plan = false;
  bool measures = false;      // unmeasured candidates that could win
  bool measures_all = false;  // also those that could not
  // Backends that are not measured, because their unmeasured candidates could not win.
  std::set<std::string> fully_measured_backends = {};
  // Whether graphs that take less than 0.2 ms are measured in this process, so that no
  // process is started for them. Requires that this process would run all plug-ins in use anyway.
  bool measures_short_here = false;
  // Nobody waits for the result, so graphs that take little time get as much effort as all others.
  bool is_in_background = false;
  // The choice and costs for the same network with other shapes, for use in this choice; may be
  // null.
  const tuning::ReusedChoice* reused = nullptr;
  // How often a process runs a kernel that it built: each run pays 1 / runs_per_build of its build
  // time. 0: build time does not count.
  int64_t runs_per_build = 0;
  // Also find a startup plan, if the chosen plan takes long to build.
  bool wants_startup_plan = false;
  // Returns the shares of a run that tuning saved other models on this machine, for the quote.
  // Null: they are not known.
  std::function<std::vector<double>()> find_gains = {};
  double margin_search_seconds = 0;  // see BindOptions
  double solve_budget_seconds = 0;   // see BindOptions
  tuning::TuneOptions tune;          // its `tuning` has the constants of measuring
  PriceTuning price_tuning = {};
};

}  // namespace tessera
