// The reports of `tessera cache`, and what `tessera bench` reports about caches.
#pragma once

#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"

namespace tessera::cli {

std::string ingredients_text(const CacheReport& report, const TextStyle& style);
Json ingredients_json(const CacheReport& report);

// {"hit", "file", "reason"}; null if no cache was searched.
Json cache_json(const CacheReport& report);

// Hit or miss, the reason, and the origin of the found artifacts.
std::string cache_answer_text(const CacheReport& report, const TextStyle& style);

// For each artifact that was loaded: its origin, and how much time it saved.
std::string origins_text(const CacheReport& report, const TextStyle& style);

// A cache file with its sections.
std::string cache_file_text(const CacheFileDescription& file, const TextStyle& style);
Json to_json(const CacheFileDescription& file);

Json ingredients_json(const std::vector<CacheIngredient>& ingredients);
Json sections_json(const std::vector<CacheSection>& sections);
// A table of sections, without those that mean nothing to people.
std::string plans_text(const std::vector<CacheSection>& sections, const TextStyle& style);

// One file of a listing, or why it cannot be used.
struct ListedCache {
  std::filesystem::path path;
  CacheFileDescription description;
  std::string damage;  // "" if the file is intact
};
// The contents of folders, by kind.
std::string cache_stats_text(const std::vector<CacheFolderDescription>& folders,
                             const TextStyle& style);
Json cache_stats_json(const std::vector<CacheFolderDescription>& folders);

std::string cache_list_text(const std::vector<ListedCache>& files, const TextStyle& style);
Json cache_list_json(const std::vector<ListedCache>& files);

}  // namespace tessera::cli
