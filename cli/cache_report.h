// What `tessera cache` and `bench` tell of caches.
#pragma once

#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/text_table.h"

namespace tessera::cli {

std::string ingredients_text(const CacheReport& report, const TextStyle& style);
Json ingredients_json(const CacheReport& report);

// {"hit", "file", "reason"}; null where nothing was looked up.
Json cache_json(const CacheReport& report);

// Hit or miss, why, and whose word it is.
std::string cache_answer_text(const CacheReport& report, const TextStyle& style);

// Of each thing that was loaded who found it out, and what that saved.
std::string origins_text(const CacheReport& report, const TextStyle& style);

// A cache file with its sections.
std::string cache_file_text(const CacheFileDescription& file, const TextStyle& style);
Json to_json(const CacheFileDescription& file);

// A file of a list, or why it cannot be used.
struct ListedCache {
  std::filesystem::path path;
  CacheFileDescription description;
  std::string damage;  // "": none
};
std::string cache_list_text(const std::vector<ListedCache>& files, const TextStyle& style);
Json cache_list_json(const std::vector<ListedCache>& files);

}  // namespace tessera::cli
