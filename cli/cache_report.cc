#include "cli/cache_report.h"

#include <algorithm>

#include "cli/quantities.h"

namespace tessera::cli {
namespace {

const std::string& value_of(const std::vector<CacheIngredient>& ingredients,
                            const std::string& name) {
  static const std::string kNone;
  for (const CacheIngredient& ingredient : ingredients) {
    if (ingredient.name == name) return ingredient.value;
  }
  return kNone;
}

Json to_json(const std::vector<CacheIngredient>& ingredients) {
  Json json = Json::array();
  for (const CacheIngredient& ingredient : ingredients) {
    json.push_back({{"ingredient", ingredient.name},
                    {"text", ingredient.value},
                    {"digest", ingredient.digest}});
  }
  return json;
}

double seconds_of(const CacheFileDescription& file) {
  double seconds = 0;
  for (const CacheSection& section : file.sections) seconds += section.seconds;
  return seconds;
}

std::string table_of(const std::vector<CacheIngredient>& ingredients, const TextStyle& style) {
  TextTable table({{"depends on"}, {"value", Align::Left, true}});
  for (const CacheIngredient& ingredient : ingredients) {
    table.add_row({ingredient.name, ingredient.value.empty() ? "none" : ingredient.value});
  }
  return table.text(style);
}

}  // namespace

std::string ingredients_text(const CacheReport& report, const TextStyle& style) {
  return wrapped("fingerprint " + report.fingerprint, style) + table_of(report.ingredients, style);
}

Json ingredients_json(const CacheReport& report) {
  return {{"fingerprint", report.fingerprint}, {"ingredients", to_json(report.ingredients)}};
}

Json cache_json(const CacheReport& report) {
  if (report.fingerprint.empty()) return nullptr;
  return {{"is_hit", report.is_hit}, {"file", report.file.string()}, {"reason", report.reason}};
}

std::string cache_file_text(const CacheFileDescription& file, const TextStyle& style) {
  TextTable table({{"section"},
                   {"saves", Align::Right},
                   {"size", Align::Right},
                   {"depends on", Align::Left, true}});
  for (const CacheSection& section : file.sections) {
    std::string ingredients;
    for (const CacheIngredient& ingredient : section.ingredients) {
      ingredients += (ingredients.empty() ? "" : ", ") + ingredient.name + " " + ingredient.value;
    }
    table.add_row(
        {section.type, time_text(section.seconds), bytes_text(section.bytes), ingredients});
  }
  return wrapped(file.file.string() + ", " + bytes_text(file.bytes) + ", saves " +
                     time_text(seconds_of(file)) + " of measuring",
                 style) +
         wrapped("fingerprint " + file.fingerprint, style) + table_of(file.ingredients, style) +
         "\n" + table.text(style);
}

Json to_json(const CacheFileDescription& file) {
  Json json = {{"file", file.file.string()},
               {"size_bytes", file.bytes},
               {"saved_us", microseconds_json(seconds_of(file))},
               {"fingerprint", file.fingerprint},
               {"ingredients", to_json(file.ingredients)},
               {"sections", Json::array()}};
  for (const CacheSection& section : file.sections) {
    json["sections"].push_back({{"section", section.type},
                                {"content", section.content},
                                {"size_bytes", section.bytes},
                                {"saved_us", microseconds_json(section.seconds)},
                                {"ingredients", to_json(section.ingredients)}});
  }
  return json;
}

std::string cache_list_text(const std::vector<ListedCache>& files, const TextStyle& style) {
  if (files.empty()) return "no caches\n";
  TextTable table({{"file", Align::Left, true},
                   {"saves", Align::Right},
                   {"size", Align::Right},
                   {"threads", Align::Right},
                   {"inputs", Align::Left, true}});
  std::string damages;
  for (const ListedCache& listed : files) {
    const CacheFileDescription& file = listed.description;
    if (!listed.damage.empty()) {
      damages += wrapped(listed.damage, style);
      continue;
    }
    table.add_row({listed.path.string(), time_text(seconds_of(file)), bytes_text(file.bytes),
                   value_of(file.ingredients, "threads"), value_of(file.ingredients, "inputs")});
  }
  return table.text(style) + damages;
}

Json cache_list_json(const std::vector<ListedCache>& files) {
  Json json = Json::array();
  for (const ListedCache& listed : files) {
    // Of a damaged one nothing is known but where it is.
    CacheFileDescription description = listed.description;
    description.file = listed.path;
    Json entry = to_json(description);
    entry["reason"] = listed.damage;
    json.push_back(std::move(entry));
  }
  return {{"caches", std::move(json)}};
}

}  // namespace tessera::cli
