#include "cli/cache_report.h"

#include <algorithm>

#include "cli/span.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

constexpr size_t kDigestColumns = 12;
constexpr size_t kValueColumns = 60;

std::string seconds_text(double seconds) { return decimal_text(seconds, seconds < 10 ? 3 : 1); }

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
    json.push_back(
        {{"name", ingredient.name}, {"value", ingredient.value}, {"digest", ingredient.digest}});
  }
  return json;
}

double seconds_of(const CacheFileDescription& file) {
  double seconds = 0;
  for (const CacheSection& section : file.sections) seconds += section.seconds;
  return seconds;
}

std::string table_of(const std::vector<CacheIngredient>& ingredients) {
  TextTable table({{"ingredient"}, {"digest"}, {"value", Align::Left, true}});
  for (const CacheIngredient& ingredient : ingredients) {
    table.add_row({ingredient.name, ingredient.digest.substr(0, kDigestColumns),
                   shorten(printable(ingredient.value), kValueColumns)});
  }
  return table.text();
}

}  // namespace

std::string ingredients_text(const CacheReport& report) {
  return "fingerprint " + report.fingerprint + "\n" + table_of(report.ingredients);
}

Json ingredients_json(const CacheReport& report) {
  return {{"fingerprint", report.fingerprint}, {"ingredients", to_json(report.ingredients)}};
}

Json cache_json(const CacheReport& report) {
  if (report.fingerprint.empty()) return nullptr;
  return {{"hit", report.is_hit}, {"file", report.file.string()}, {"reason", report.reason}};
}

std::string cache_file_text(const CacheFileDescription& file) {
  TextTable table({{"section"},
                   {"seconds", Align::Right},
                   {"bytes", Align::Right},
                   {"depends on", Align::Left, true}});
  for (const CacheSection& section : file.sections) {
    std::string ingredients;
    for (const CacheIngredient& ingredient : section.ingredients) {
      ingredients += (ingredients.empty() ? "" : ", ") + ingredient.name + " " + ingredient.value;
    }
    table.add_row(
        {section.type, seconds_text(section.seconds), bytes_text(section.bytes), ingredients});
  }
  return wrapped(file.file.string() + ", " + bytes_text(file.bytes) + ", saves " +
                 seconds_text(seconds_of(file)) + " s") +
         "fingerprint " + file.fingerprint + "\n" + table_of(file.ingredients) + "\n" +
         table.text();
}

Json to_json(const CacheFileDescription& file) {
  Json json = {{"file", file.file.string()},
               {"bytes", file.bytes},
               {"seconds", seconds_of(file)},
               {"fingerprint", file.fingerprint},
               {"ingredients", to_json(file.ingredients)},
               {"sections", Json::array()}};
  for (const CacheSection& section : file.sections) {
    json["sections"].push_back({{"type", section.type},
                                {"content", section.content},
                                {"seconds", section.seconds},
                                {"bytes", section.bytes},
                                {"ingredients", to_json(section.ingredients)}});
  }
  return json;
}

std::string cache_list_text(const std::vector<ListedCache>& files) {
  if (files.empty()) return "no caches\n";
  TextTable table({{"file"},
                   {"seconds", Align::Right},
                   {"bytes", Align::Right},
                   {"threads", Align::Right},
                   {"inputs", Align::Left, true}});
  std::string damages;
  for (const ListedCache& listed : files) {
    const CacheFileDescription& file = listed.description;
    if (!listed.damage.empty()) {
      damages += wrapped(listed.damage);
      continue;
    }
    table.add_row({listed.path.string(), seconds_text(seconds_of(file)), bytes_text(file.bytes),
                   value_of(file.ingredients, "threads"), value_of(file.ingredients, "inputs")});
  }
  return table.text() + damages;
}

Json cache_list_json(const std::vector<ListedCache>& files) {
  Json json = Json::array();
  for (const ListedCache& listed : files) {
    Json entry =
        listed.damage.empty() ? to_json(listed.description) : Json{{"file", listed.path.string()}};
    entry["damage"] = listed.damage;
    json.push_back(std::move(entry));
  }
  return {{"caches", std::move(json)}};
}

}  // namespace tessera::cli
