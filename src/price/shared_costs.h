// Costs shared across models: by all executors of a process, and, in one file, by all models of a
// user.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/fingerprint.h"
#include "price/cost_sections.h"
#include "price/cost_table.h"
#include "price/price_tuning.h"

namespace tessera::tuning {

// Thread-safe.
class SharedCosts {
 public:
  // About this number of costs of kernels and plans are kept, the most recently used ones. One
  // takes about a kilobyte. Costs of conversions are few, and all are kept.
  static constexpr size_t kMaxCosts = 32'768;

  // `now` returns the seconds since any fixed time; by default, those of a steady clock.
  explicit SharedCosts(std::function<double()> now = {}, size_t max_costs = kMaxCosts,
                       const PriceTuning& tuning = {});

  // Adds `costs`; see merge().
  void add(const CostTable& costs);

  // Adds to `table` the known costs of the candidates with these keys, of conversions, and of the
  // plan. Entries of other graphs are left out, so that the cost of a bind depends on its own graph
  // only.
  void look_up(const std::vector<std::optional<CostKey>>& keys, const std::optional<PlanKey>& plan,
               CostTable& table);

  // The number of costs of kernels and plans.
  size_t size() const;

  // The seconds that the next small graph may spend on measuring. Graphs that run quickly get a
  // small budget, individually and in total: otherwise a program that keeps meeting new graphs
  // would spend most of its time measuring. The first few get all they want; later ones share a
  // part of the time that passes. Report the time used to spend().
  double allowance_seconds();
  void spend(double seconds);

 private:
  // Makes the costs with these keys count as used.
  void renew(const CostKey& key);
  void renew(const PlanKey& key);
  void forget_oldest();

  const size_t max_costs_;
  const PriceTuning tuning_;
  mutable std::mutex mutex_;
  // Used costs are in `recent_`. If these are half of the maximum, they replace `older_`, which is
  // forgotten.
  CostTable recent_;
  CostTable older_;
  std::function<double()> now_;
  double allowance_seconds_;
  double counted_seconds_;  // the time, of `now_`, up to which the allowance has grown
};

// The cost store: one file with the prices that all models of a user share, so that tuning a second
// network measures only what is new in it. The file is a cache (src/cache/cache_file.h) whose
// ingredients are those of the machine.

// The prices of these libraries in `folder`; empty if the store is missing, damaged, or from
// another machine.
CostTable read_cost_store(const std::filesystem::path& folder,
                          const std::vector<cache::Ingredient>& machine,
                          const std::vector<PricedLibrary>& libraries);

// Adds `costs` and discards entries of another machine or version. If the store would grow too
// large, keeps only `costs`. Returns the reason of a failure, or "".
std::string add_to_cost_store(const std::filesystem::path& folder,
                              const std::vector<cache::Ingredient>& machine,
                              const std::vector<PricedLibrary>& libraries, const CostTable& costs);

}  // namespace tessera::tuning
