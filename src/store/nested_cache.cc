#include "store/nested_cache.h"

#include <algorithm>
#include <map>
#include <utility>

#include "price/cost_sections.h"

namespace tessera {
namespace {

// The content of such sections; their type is the fingerprint of the file.
constexpr const char* kNestedContent = "nested";

std::string location_in(const std::string& outer) { return outer + ", a nested graph"; }

}  // namespace

bool is_nested_cache(const cache::Section& section) { return section.content == kNestedContent; }

cache::CacheFile cache_file_of(const CacheRecord& record, const std::string& wanted) {
  const CacheRecord::Contents& contents = record.contents();
  cache::CacheFile file{.ingredients = record.model(),
                        .sections = tuning::to_sections(contents.found, record.plan(),
                                                        contents.libraries, record.binding())};
  if (!wanted.empty()) {
    std::erase_if(file.sections,
                  [&](const cache::Section& section) { return section.type != wanted; });
  }
  return file;
}

void add_nested_caches(const CacheRecords& nested, const std::string& wanted,
                       const cache::UserKey* key, cache::CacheFile& file) {
  std::map<cache::Fingerprint, cache::CacheFile> files;
  for (const std::shared_ptr<const CacheRecord>& record : nested) {
    cache::CacheFile one = cache_file_of(*record, wanted);
    cache::CacheFile& all = files[one.fingerprint()];
    all.ingredients = std::move(one.ingredients);
    for (cache::Section& section : one.sections) {
      const cache::Section* const present =
          all.find(section.type, section.content, section.ingredients);
      all.put(present == nullptr ? std::move(section)
                                 : tuning::merged(*present, std::move(section)));
    }
  }
  for (const auto& [fingerprint, each] : files) {
    if (each.sections.empty()) continue;
    file.put(
        {.type = text(fingerprint), .content = kNestedContent, .bytes = cache::encode(each, key)});
  }
}

std::optional<cache::CacheFile> find_nested_cache(const cache::CacheFile& outer,
                                                  std::span<const cache::Ingredient> ingredients,
                                                  const cache::UserKey* key,
                                                  const std::string& location) {
  const cache::Section* const found =
      outer.find(text(cache::fingerprint_of(ingredients)), kNestedContent);
  if (found == nullptr) return std::nullopt;
  cache::CacheFile file = cache::decode(found->bytes, key, location_in(location));
  if (!std::ranges::equal(file.ingredients, ingredients)) return std::nullopt;
  return file;
}

void check_nested_caches(const cache::CacheFile& outer, const std::string& location) {
  for (const cache::Section& section : outer.sections) {
    if (!is_nested_cache(section)) continue;
    const cache::CacheFile file =
        cache::decode(section.bytes, /*key=*/nullptr, location_in(location));
    tuning::check_plans(file, location_in(location));
  }
}

}  // namespace tessera
