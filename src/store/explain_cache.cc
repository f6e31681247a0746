#include "store/explain_cache.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/files/file_stamp.h"
#include "base/machine/processor.h"
#include "cache/cache_folder.h"
#include "cache/origin.h"
#include "cache/pack_file.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "cache/user_key.h"
#include "tessera/error.h"

namespace tessera {
namespace {

const std::string* value_of(const std::vector<cache::Ingredient>& ingredients,
                            const std::string& name) {
  for (const cache::Ingredient& ingredient : ingredients) {
    if (ingredient.name == name) return &ingredient.value;
  }
  return nullptr;
}

bool is_of_same_model(const std::vector<cache::Ingredient>& left,
                      const std::vector<cache::Ingredient>& right) {
  const std::string* const one = value_of(left, "model");
  const std::string* const other = value_of(right, "model");
  return one != nullptr && other != nullptr && *one == *other;
}

// nullopt if the file cannot be read or decoded.
std::optional<cache::CacheFile> file_at(const std::filesystem::path& path) {
  const cache::FileText text = cache::read_stored_file(path, cache::kMaxFileBytes);
  if (!text.bytes) return std::nullopt;
  try {
    return cache::decode(*text.bytes, /*key=*/nullptr, path.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string explain_no_plan_in(const cache::CacheFile& file, const tuning::Binding& binding,
                               const std::string& location) {
  try {
    tuning::take_plan(file, binding, {}, location);  // throws if the plan is damaged
    return explain_no_plan(file, binding, location);
  } catch (const Error& error) {
    return error.what();
  }
}

const std::string& backend_of(const tuning::CostKey& key) { return key.candidate.backend; }
const std::string& backend_of(const tuning::ConversionCostKey& key) { return key.backend; }

// The number of prices and conversions of one backend that `known` lacks.
template <class Entries>
int64_t count_of(const Entries& entries, const std::string& backend, const Entries& known) {
  return std::count_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return backend_of(entry.first) == backend && !known.contains(entry.first);
  });
}

constexpr const char* kKernels = "kernels";
constexpr const char* kPacks = "packs";

// The kind of a file, by its place and its contents.
struct Found {
  std::string kind;
  std::string backend;
  bool is_usable = true;
};

// The backend of "plug-in 'backend_mylib.so'" or "backend 'mylib'", as HostTable names the owners
// of blobs.
std::string backend_of_owner(const std::string& owner) {
  const size_t begin = owner.find('\'');
  const size_t end = owner.rfind('\'');
  if (begin == end) return owner;
  std::string name = owner.substr(begin + 1, end - begin - 1);
  if (name.ends_with(".so")) name.resize(name.size() - 3);
  return name.starts_with("backend_") ? name.substr(8) : name;
}

class Counter {
 public:
  Counter(const std::filesystem::path& key_folder, const IsIntact& is_intact)
      : key_(cache::find_key(key_folder)), is_intact_(is_intact) {}

  void add(const cache::KeptFile& file) {
    const Found found = identify(file.path);
    CacheKindDescription& kind = kinds_[{found.kind, found.backend}];
    const bool is_first = kind.files++ == 0;
    kind.bytes += file.bytes;
    kind.unusable += found.is_usable ? 0 : 1;
    kind.oldest_use_ns = is_first ? file.used_ns : std::min(kind.oldest_use_ns, file.used_ns);
    kind.newest_use_ns = std::max(kind.newest_use_ns, file.used_ns);
  }

  std::vector<CacheKindDescription> kinds() const {
    std::vector<CacheKindDescription> all;
    for (const auto& [names, kind] : kinds_) {
      all.push_back(kind);
      std::tie(all.back().kind, all.back().backend) = names;
    }
    return all;
  }

 private:
  Found identify(const std::filesystem::path& path) const {
    if (path.extension() == ".model") return {.kind = "models"};
    if (path.extension() != cache::kPacksEnding) {
      const bool is_shared = path.filename() == "costs";
      return {.kind = is_shared ? "prices" : "caches", .is_usable = is_intact_(path)};
    }
    const bool is_kernel = path.parent_path().parent_path().filename() == kKernels;
    const std::string kind = is_kernel ? kKernels : kPacks;
    if (!key_) return {.kind = kind, .is_usable = false};
    const cache::PackFile::Opened opened =
        cache::PackFile::open(path, processor_model(), *key_, std::nullopt);
    if (opened.file == nullptr) return {.kind = kind, .is_usable = false};
    return is_kernel ? identify_kernel(*opened.file) : Found{.kind = kind};
  }

  // A file has one kernel, "kernel;BACKEND;...", or one blob, "blob;BACKEND/...".
  static Found identify_kernel(cache::PackFile& file) {
    const std::vector<std::string> keys = file.keys();
    if (keys.size() != 1) return {.kind = kKernels, .is_usable = false};
    const std::string& key = keys.front();
    const bool is_blob = key.starts_with("blob;");
    const size_t begin = key.find(';') + 1;
    const size_t end = key.find(is_blob ? '/' : ';', begin);
    const std::string owner = key.substr(begin, end - begin);
    return {.kind = is_blob ? "blobs" : kKernels,
            .backend = is_blob ? backend_of_owner(owner) : owner,
            .is_usable = file.is_sound()};
  }

  std::optional<cache::UserKey> key_;
  const IsIntact& is_intact_;
  std::map<std::pair<std::string, std::string>, CacheKindDescription> kinds_;
};

}  // namespace

std::string cache_location(const std::filesystem::path& path) {
  return "cache '" + path.string() + "'";
}

std::string explain_interrupted(double seconds, bool is_frozen) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", std::max(seconds, 0.1));
  const std::string after = std::string("interrupted after ") + text.data();
  return is_frozen ? "measuring was " + after : after + "; measuring continues";
}

std::string explain_no_plan(const cache::CacheFile& file, const tuning::Binding& binding,
                            const std::string& location) {
  const std::string nearest = tuning::explain_nearest_plan(file, binding);
  if (nearest.empty()) return location + " has measured times, but no plan";
  return location + " has a plan for another case, " + nearest;
}

std::vector<CacheTypeReport> describe_types(const std::vector<tuning::PricedLibrary>& libraries,
                                            const tuning::TakenCosts& known,
                                            const tuning::CostTable* costs) {
  std::vector<CacheTypeReport> reports;
  const auto add = [&](const std::string& type, int64_t measured) {
    CacheTypeReport report{.type = type, .measured = measured};
    if (known.entries.contains(type)) report.loaded = known.entries.at(type);
    if (known.seconds.contains(type)) report.seconds_saved = known.seconds.at(type);
    if (known.origins.contains(type)) report.origin = cache::origin_text(known.origins.at(type));
    if (report.loaded > 0 || report.measured > 0) reports.push_back(report);
  };
  for (const tuning::PricedLibrary& library : libraries) {
    const std::string& backend = library.backend;
    add(backend, costs == nullptr
                     ? 0
                     : count_of(costs->kernels, backend, known.costs.kernels) +
                           count_of(costs->conversions, backend, known.costs.conversions));
  }
  return reports;
}

std::string explain_miss(const std::vector<std::filesystem::path>& folders,
                         const std::vector<cache::Ingredient>& model,
                         const tuning::Binding& binding) {
  std::string nearest;
  size_t least = 0;
  std::string names;
  for (const std::filesystem::path& folder : folders) {
    names += (names.empty() ? "'" : ", '") + folder.string() + "'";
    for (const std::filesystem::path& path : cache::list_folder(folder)) {
      const std::optional<cache::CacheFile> file = file_at(path);
      if (!file || !is_of_same_model(file->ingredients, model)) continue;
      const size_t count = cache::different_names(file->ingredients, model).size();
      if (!nearest.empty() && count >= least) continue;
      least = count;
      const std::string difference = cache::explain_difference(file->ingredients, model);
      nearest = difference.empty()
                    ? explain_no_plan_in(*file, binding, cache_location(path))
                    : cache_location(path) + " was made for another case, " + difference;
    }
  }
  return nearest.empty() ? "no cache of this model in " + names : nearest;
}

std::vector<CacheIngredient> describe(const std::vector<cache::Ingredient>& ingredients) {
  std::vector<CacheIngredient> described;
  for (const cache::Ingredient& ingredient : ingredients) {
    described.push_back(
        {ingredient.name, ingredient.value, text(cache::fingerprint_of({&ingredient, 1}))});
  }
  return described;
}

CacheFolderDescription count_stored(const std::filesystem::path& folder,
                                    const std::filesystem::path& key_folder,
                                    const IsIntact& is_intact) {
  std::error_code failure;
  const bool is_users = std::filesystem::exists(folder / "key", failure);
  const cache::FolderLimits& limits = is_users ? cache::kUserLimits : cache::kWorkingLimits;
  Counter counter(key_folder, is_intact);
  for (const cache::KeptFile& file : cache::list_kept_files(folder)) counter.add(file);
  const std::filesystem::path prices = folder / "costs";
  if (const std::optional<FileStamp> stamp = stamp_of(prices); is_users && stamp) {
    counter.add({prices, stamp->bytes, stamp->modified_ns});
  }
  return {folder, limits.files, limits.bytes, counter.kinds()};
}

}  // namespace tessera
