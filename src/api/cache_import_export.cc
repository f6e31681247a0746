// prune_caches(), export_caches(), import_caches().
#include <algorithm>

#include "base/files/writable_path.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "tessera/cache.h"
#include "tessera/error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

// An export is a cache file with one section for each exported file, whose name is the type of the
// section.
constexpr const char* kFileContent = "file";
constexpr const char* kSharedPrices = "costs";

std::string export_location(const std::filesystem::path& path) {
  return "export '" + path.string() + "'";
}

std::vector<cache::Ingredient> export_ingredients() { return {{"export of tessera", version()}}; }

std::filesystem::path checked_folder(const std::filesystem::path& folder) {
  std::string reason = cache::make_private_folder(folder);
  if (reason.empty()) reason = cache::explain_unsafe_folder(folder);
  if (reason.empty()) return folder;
  throw Error(ErrorKind::InvalidArgument, "folder '" + folder.string() + "'", reason);
}

}  // namespace

PrunedCaches prune_caches(const std::filesystem::path& folder, int64_t max_bytes) {
  if (max_bytes < 0) {
    throw Error(ErrorKind::InvalidArgument, "max_bytes",
                "expected 0 or more, found " + std::to_string(max_bytes));
  }
  cache::sweep(folder);
  const cache::Pruned pruned = cache::prune(cache::list_kept_files(folder), {.bytes = max_bytes});
  return {.files = pruned.files, .bytes = pruned.bytes};
}

int64_t export_caches(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const std::string unwritable = explain_unwritable_file(file);
  if (!unwritable.empty())
    throw Error(ErrorKind::InvalidArgument, export_location(file), unwritable);
  cache::CacheFile all{.ingredients = export_ingredients()};
  std::vector<std::filesystem::path> paths = cache::list_folder(folder);
  paths.push_back(folder / kSharedPrices);
  for (const std::filesystem::path& path : paths) {
    cache::FileText text = cache::read_stored_file(path, cache::kMaxFileBytes);
    if (!text.bytes) continue;
    try {
      cache::decode(*text.bytes, /*key=*/nullptr, path.string());
    } catch (const Error&) {
      continue;  // a damaged file is not exported
    }
    all.put({.type = path.filename().string(),
             .content = kFileContent,
             .bytes = *std::move(text.bytes)});
  }
  const std::string reason =
      cache::replace_file(file, [&] { return cache::encode(all, /*key=*/nullptr); });
  if (!reason.empty()) {
    throw Error(ErrorKind::DeviceFailed, export_location(file), "cannot be written: " + reason);
  }
  return std::ranges::count_if(
      all.sections, [](const cache::Section& section) { return section.type != kSharedPrices; });
}

int64_t import_caches(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const cache::CacheFile all = cache::read_cache_file(file, /*key=*/nullptr);
  if (all.ingredients.size() != 1 ||
      all.ingredients.front().name != export_ingredients().front().name) {
    throw Error(ErrorKind::InvalidArgument, export_location(file),
                "expected what `tessera cache export` wrote, found a cache: copy it");
  }
  std::vector<cache::CacheFile> caches;
  const cache::Section* prices = nullptr;
  for (const cache::Section& section : all.sections) {
    if (section.content != kFileContent) continue;
    cache::CacheFile read = cache::decode(section.bytes, /*key=*/nullptr,
                                          export_location(file) + ", '" + section.type + "'");
    if (section.type == kSharedPrices) {
      prices = &section;
    } else {
      caches.push_back(std::move(read));
    }
  }
  checked_folder(folder);
  const auto check = [](const std::string& reason, const std::filesystem::path& path) {
    if (reason.empty()) return;
    throw Error(ErrorKind::DeviceFailed, "'" + path.string() + "'", "cannot be written: " + reason);
  };
  for (const cache::CacheFile& read : caches) {
    check(cache::save_in_folder(folder, read, /*key=*/nullptr).reason, folder);
  }
  const std::filesystem::path shared = folder / kSharedPrices;
  const bool has_prices = cache::read_stored_file(shared, cache::kMaxFileBytes).bytes.has_value();
  if (prices != nullptr && !has_prices) {
    check(cache::replace_file(shared, [&] { return prices->bytes; }), shared);
  }
  return static_cast<int64_t>(caches.size());
}

}  // namespace tessera
