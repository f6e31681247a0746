#include "price/shared_costs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/threads/fork.h"
#include "cache/cache_file.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "cache/user_key.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Reading a larger file takes longer than measuring what a network needs.
constexpr int64_t kMaxStoreBytes = int64_t{64} << 20;

std::filesystem::path file_in(const std::filesystem::path& folder) { return folder / "costs"; }

// Empty if the file is unusable: measuring fills it again.
cache::CacheFile read_store(const std::filesystem::path& folder,
                            const std::vector<cache::Ingredient>& machine,
                            const cache::UserKey* key) {
  const cache::FileText text = cache::read_stored_file(file_in(folder), kMaxStoreBytes);
  cache::CacheFile empty{.ingredients = machine};
  if (!text.bytes) return empty;
  try {
    cache::CacheFile file = cache::decode(*text.bytes, key, file_in(folder).string());
    return file.ingredients == machine ? file : empty;
  } catch (const Error&) {
    return empty;
  }
}

CostTable costs_in(const cache::CacheFile& file, const std::vector<PricedLibrary>& libraries) {
  try {
    return take_costs(file, "", libraries, "costs").costs;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

SharedCosts::SharedCosts(std::function<double()> now, size_t max_costs, const PriceTuning& tuning)
    : max_costs_(max_costs),
      tuning_(tuning),
      now_(now ? std::move(now) : steady_seconds),
      allowance_seconds_(tuning_.max_allowance_seconds),
      counted_seconds_(now_()) {}

double SharedCosts::allowance_seconds() {
  const ForkSafeLock lock(mutex_);
  const double now = now_();
  allowance_seconds_ += tuning_.allowance_share * (now - counted_seconds_);
  allowance_seconds_ = std::min(allowance_seconds_, tuning_.max_allowance_seconds);
  counted_seconds_ = now;
  return std::max(0.0, allowance_seconds_);
}

void SharedCosts::spend(double seconds) {
  const ForkSafeLock lock(mutex_);
  allowance_seconds_ -= seconds;
}

void SharedCosts::renew(const CostKey& key) { recent_.kernels.insert(older_.kernels.extract(key)); }
void SharedCosts::renew(const PlanKey& key) { recent_.plans.insert(older_.plans.extract(key)); }

void SharedCosts::forget_oldest() {
  if (recent_.kernels.size() + recent_.plans.size() < max_costs_ / 2) return;
  older_.kernels = std::exchange(recent_.kernels, {});
  older_.plans = std::exchange(recent_.plans, {});
}

void SharedCosts::add(const CostTable& costs) {
  const ForkSafeLock lock(mutex_);
  for (const auto& [key, cost] : costs.kernels) renew(key);
  for (const auto& [key, plan] : costs.plans) renew(key);
  merge(recent_, costs);
  forget_oldest();
}

void SharedCosts::look_up(const std::vector<std::optional<CostKey>>& keys,
                          const std::optional<PlanKey>& plan, CostTable& table) {
  const ForkSafeLock lock(mutex_);
  if (recent_.kernels.empty() && older_.kernels.empty() && recent_.conversions.empty()) return;
  CostTable known{.machine = recent_.machine, .conversions = recent_.conversions};
  for (const std::optional<CostKey>& key : keys) {
    if (!key) continue;
    renew(*key);
    const auto found = recent_.kernels.find(*key);
    if (found != recent_.kernels.end()) known.kernels.insert(*found);
  }
  if (plan) {
    renew(*plan);
    const auto found = recent_.plans.find(*plan);
    if (found != recent_.plans.end()) known.plans.insert(*found);
  }
  forget_oldest();
  merge(table, known);
}

size_t SharedCosts::size() const {
  const ForkSafeLock lock(mutex_);
  return recent_.kernels.size() + recent_.plans.size() + older_.kernels.size() +
         older_.plans.size();
}

CostTable read_cost_store(const std::filesystem::path& folder,
                          const std::vector<cache::Ingredient>& machine,
                          const std::vector<PricedLibrary>& libraries) {
  const std::optional<cache::UserKey> key = cache::find_key(folder);
  return costs_in(read_store(folder, machine, key ? &*key : nullptr), libraries);
}

std::string add_to_cost_store(const std::filesystem::path& folder,
                              const std::vector<cache::Ingredient>& machine,
                              const std::vector<PricedLibrary>& libraries, const CostTable& costs) {
  std::string reason = cache::make_private_folder(folder);
  if (reason.empty()) reason = cache::explain_foreign_folder(folder);
  if (!reason.empty()) return reason;
  const std::optional<cache::UserKey> ours = cache::make_key(folder);
  const cache::UserKey* const key = ours ? &*ours : nullptr;
  return cache::replace_file(file_in(folder), [&] {
    cache::CacheFile file = read_store(folder, machine, key);
    CostTable all = costs_in(file, libraries);
    merge(all, costs);
    for (cache::Section& section :
         to_sections({.costs = all, .seconds = seconds_to_measure(all)}, {}, libraries, {})) {
      file.put(std::move(section));
    }
    cache::drop_oldest(file);
    std::string bytes = cache::encode(file, key);
    if (static_cast<int64_t>(bytes.size()) <= kMaxStoreBytes) return bytes;
    const FoundCosts fresh{.costs = costs, .seconds = seconds_to_measure(costs)};
    return cache::encode(
        {.ingredients = machine, .sections = to_sections(fresh, {}, libraries, {})}, key);
  });
}

}  // namespace tessera::tuning
