#include "price/cost_store.h"

#include <optional>
#include <utility>

#include "cache/cache_file.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "cache/user_key.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

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
         to_sections({.costs = all, .seconds = seconds_to_measure(all)}, libraries, {})) {
      file.put(std::move(section));
    }
    cache::drop_oldest(file);
    std::string bytes = cache::encode(file, key);
    if (static_cast<int64_t>(bytes.size()) <= kMaxStoreBytes) return bytes;
    const FoundCosts fresh{.costs = costs, .seconds = seconds_to_measure(costs)};
    return cache::encode({.ingredients = machine, .sections = to_sections(fresh, libraries, {})},
                         key);
  });
}

}  // namespace tessera::tuning
