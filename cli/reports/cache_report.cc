#include "cli/reports/cache_report.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string_view>
#include <utility>

#include "cli/output/quantities.h"

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

constexpr int64_t kNanoseconds = 1'000'000'000;

// The ingredients of a bind with default options.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kUsual = {{
    {"fetch", ""},
    {"layouts", ""},
    {"strict storage", "no"},
    {"device", "cpu"},
    {"memory budget", "0"},
    {"optimize for", "latency"},
    {"backends", "all"},
    {"pins", ""},
    {"exclusions", ""},
    {"state pairs", ""},
    {"denormals", "flushed"},
    {"precision", "float32"},
    {"nan", "exact"},
    {"accuracy", "bounded"},
}};

bool is_usual(const CacheIngredient& ingredient) {
  return std::ranges::any_of(kUsual, [&](const auto& usual) {
    return usual.first == ingredient.name && usual.second == ingredient.value;
  });
}

// The options that differ from their defaults; "" if none does.
std::string options_text(const std::vector<CacheIngredient>& ingredients) {
  std::string text;
  for (const CacheIngredient& ingredient : ingredients) {
    const bool is_option = std::ranges::any_of(
        kUsual, [&](const auto& usual) { return usual.first == ingredient.name; });
    if (!is_option || is_usual(ingredient)) continue;
    text += (text.empty() ? "" : ", ") + ingredient.name + " " + ingredient.value;
  }
  return text;
}

// "2026-11-23T18:22:10Z"; "" for 0, which means that no time is known.
std::string date_text(int64_t time_ns) {
  if (time_ns == 0) return {};
  const std::time_t seconds = time_ns / kNanoseconds;
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

// The time since `since_ns`, rounded down: "5 min".
std::string age_text(int64_t since_ns) {
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const int64_t seconds = std::max<int64_t>(0, now - since_ns / kNanoseconds);
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / (24 * 3600)) + " days";
}

double seconds_of(const CacheFileDescription& file) {
  double seconds = 0;
  for (const CacheSection& section : file.sections) seconds += section.seconds;
  return seconds;
}

std::string table_of(const std::string& title, const std::vector<CacheIngredient>& ingredients,
                     const TextStyle& style) {
  TextTable table({{title}, {"value", Align::Left, true}});
  for (const CacheIngredient& ingredient : ingredients) {
    table.add_row({ingredient.name, ingredient.value.empty() ? "none" : ingredient.value});
  }
  return table.text(style);
}

}  // namespace

Json ingredients_json(const std::vector<CacheIngredient>& ingredients) {
  Json json = Json::array();
  for (const CacheIngredient& ingredient : ingredients) {
    json.push_back({{"ingredient", ingredient.name},
                    {"text", ingredient.value},
                    {"digest", ingredient.digest}});
  }
  return json;
}

std::string ingredients_text(const CacheReport& report, const TextStyle& style) {
  return wrapped("fingerprint " + report.fingerprint, style) +
         table_of("the file depends on", report.ingredients, style) + "\n" +
         table_of("a plan in it depends on", report.entry_ingredients, style);
}

Json ingredients_json(const CacheReport& report) {
  return {{"fingerprint", report.fingerprint},
          {"ingredients", ingredients_json(report.ingredients)},
          {"entry_ingredients", ingredients_json(report.entry_ingredients)}};
}

Json cache_json(const CacheReport& report) {
  if (report.fingerprint.empty()) return nullptr;
  return fields_json(report);
}

std::string cache_answer_text(const CacheReport& report, const TextStyle& style) {
  std::string text =
      wrapped(report.is_hit ? "hit: " + report.file.string() : "miss: " + report.reason, style);
  if (!report.change.empty()) {
    text += wrapped(
        report.change + "; the plan runs while these libraries are measured in the background",
        style);
  }
  return text + origins_text(report, style);
}

std::string origins_text(const CacheReport& report, const TextStyle& style) {
  std::string text;
  for (const CacheTypeReport& type : report.types) {
    if (type.origin.empty()) continue;
    const std::string what = type.type == "plan" ? "the plan" : "measured times of " + type.type;
    text += wrapped(what + ": " + type.origin + ", saves " + time_text(type.seconds_saved), style);
  }
  return text;
}

std::string plans_text(const std::vector<CacheSection>& sections, const TextStyle& style) {
  TextTable table({{"of"},
                   {"what"},
                   {"origin"},
                   {"saves", Align::Right},
                   {"size", Align::Right},
                   {"age", Align::Right},
                   {"depends on", Align::Left, true}});
  for (const CacheSection& section : sections) {
    // If there is a plan, it is clear that nothing is left to be measured.
    if (section.content == "settled") continue;
    std::string ingredients;
    for (const CacheIngredient& ingredient : section.ingredients) {
      if (is_usual(ingredient)) continue;
      ingredients += (ingredients.empty() ? "" : ", ") + ingredient.name + " " + ingredient.value;
    }
    table.add_row({section.type, section.content, section.origin, time_text(section.seconds),
                   bytes_text(section.bytes), age_text(section.made_ns), ingredients});
  }
  return table.text(style);
}

std::string cache_file_text(const CacheFileDescription& file, const TextStyle& style) {
  return wrapped(file.file.string() + (file.model.empty() ? "" : " of " + file.model) + ", " +
                     bytes_text(file.bytes) + ", saves " + time_text(seconds_of(file)) +
                     " of measuring, written by " + file.written_by,
                 style) +
         wrapped("fingerprint " + file.fingerprint, style) +
         table_of("depends on", file.ingredients, style) + "\n" + plans_text(file.sections, style);
}

Json sections_json(const std::vector<CacheSection>& sections) {
  Json json = Json::array();
  for (const CacheSection& section : sections) {
    json.push_back({{"section", section.type},
                    {"content", section.content},
                    {"origin", section.origin},
                    {"made_at", date_text(section.made_ns)},
                    {"size_bytes", section.bytes},
                    {"saved_us", microseconds_json(section.seconds)},
                    {"ingredients", ingredients_json(section.ingredients)}});
  }
  return json;
}

Json to_json(const CacheFileDescription& file) {
  return {{"file", file.file.string()},
          {"model", file.model},
          {"written_by", file.written_by},
          {"used_at", date_text(file.used_ns)},
          {"size_bytes", file.bytes},
          {"saved_us", microseconds_json(seconds_of(file))},
          {"fingerprint", file.fingerprint},
          {"ingredients", ingredients_json(file.ingredients)},
          {"sections", sections_json(file.sections)}};
}

std::string cache_list_text(const std::vector<ListedCache>& files, const TextStyle& style) {
  if (files.empty()) return "no caches\n";
  TextTable table({{"file", Align::Left, true},
                   {"model", Align::Left, true},
                   {"inputs", Align::Left, true},
                   {"threads", Align::Right},
                   {"options", Align::Left, true},
                   {"saves", Align::Right},
                   {"size", Align::Right},
                   {"age", Align::Right},
                   {"last use", Align::Right}});
  std::string damages;
  for (const ListedCache& listed : files) {
    const CacheFileDescription& file = listed.description;
    if (!listed.damage.empty()) {
      damages += wrapped(listed.damage, style);
      continue;
    }
    // One row for each plan; only the first row has the columns that describe the whole file.
    bool is_first = true;
    for (const CacheSection& section : file.sections) {
      if (section.type != "plan") continue;
      table.add_row({is_first ? listed.path.string() : "", is_first ? file.model : "",
                     value_of(section.ingredients, "inputs"),
                     value_of(section.ingredients, "threads"), options_text(section.ingredients),
                     is_first ? time_text(seconds_of(file)) : "",
                     is_first ? bytes_text(file.bytes) : "", age_text(section.made_ns),
                     is_first ? age_text(file.used_ns) : ""});
      is_first = false;
    }
    if (is_first) {
      table.add_row({listed.path.string(), file.model, "", "", "no plan",
                     time_text(seconds_of(file)), bytes_text(file.bytes), "",
                     age_text(file.used_ns)});
    }
  }
  return table.text(style) + damages;
}

Json cache_list_json(const std::vector<ListedCache>& files) {
  Json json = Json::array();
  for (const ListedCache& listed : files) {
    // Nothing but the path is known of a damaged file.
    CacheFileDescription description = listed.description;
    description.file = listed.path;
    Json entry = to_json(description);
    entry["reason"] = listed.damage;
    json.push_back(std::move(entry));
  }
  return {{"caches", std::move(json)}};
}

namespace {

// The sum of all kinds.
CacheKindDescription total_of(const CacheFolderDescription& folder) {
  CacheKindDescription total;
  for (const CacheKindDescription& kind : folder.kinds) {
    total.files += kind.files;
    total.bytes += kind.bytes;
    total.unusable += kind.unusable;
  }
  return total;
}

std::string folder_stats_text(const CacheFolderDescription& folder, const TextStyle& style) {
  const CacheKindDescription total = total_of(folder);
  const std::string title = folder.folder.string() + ": " + count_text(total.files, "file") + ", " +
                            bytes_text(total.bytes) + "; at most " +
                            count_text(folder.max_files, "file") + ", " +
                            bytes_text(folder.max_bytes);
  if (total.files == 0) return wrapped(title, style);
  TextTable table({{"what"},
                   {"backend"},
                   {"files", Align::Right},
                   {"size", Align::Right},
                   {"unusable", Align::Right},
                   {"last use", Align::Right},
                   {"first", Align::Right}});
  for (const CacheKindDescription& kind : folder.kinds) {
    table.add_row({kind.kind, kind.backend, std::to_string(kind.files), bytes_text(kind.bytes),
                   kind.unusable == 0 ? "" : std::to_string(kind.unusable),
                   age_text(kind.newest_use_ns), age_text(kind.oldest_use_ns)});
  }
  return wrapped(title, style) + table.text(style, "  ");
}

}  // namespace

std::string cache_stats_text(const std::vector<CacheFolderDescription>& folders,
                             const TextStyle& style) {
  std::string text;
  for (const CacheFolderDescription& folder : folders) text += folder_stats_text(folder, style);
  return text;
}

Json cache_stats_json(const std::vector<CacheFolderDescription>& folders) {
  Json json = Json::array();
  for (const CacheFolderDescription& folder : folders) {
    Json kinds = Json::array();
    for (const CacheKindDescription& kind : folder.kinds) {
      kinds.push_back({{"kind", kind.kind},
                       {"backend", kind.backend},
                       {"file_count", kind.files},
                       {"size_bytes", kind.bytes},
                       {"unusable_count", kind.unusable},
                       {"oldest_use_at", date_text(kind.oldest_use_ns)},
                       {"newest_use_at", date_text(kind.newest_use_ns)}});
    }
    const CacheKindDescription total = total_of(folder);
    json.push_back({{"folder", folder.folder.string()},
                    {"file_count", total.files},
                    {"size_bytes", total.bytes},
                    {"max_file_count", folder.max_files},
                    {"max_bytes", folder.max_bytes},
                    {"kinds", std::move(kinds)}});
  }
  return {{"folders", std::move(json)}};
}

}  // namespace tessera::cli
