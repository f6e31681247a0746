// `tessera cache`: lists, checks and removes stored artifacts of models, and says where they are
// kept.
#include <array>
#include <filesystem>
#include <system_error>

#include "api/options/argument_text.h"
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/output/quantities.h"
#include "cli/output/span.h"
#include "cli/output/staged_files.h"
#include "cli/output/text_table.h"
#include "cli/reports/cache_report.h"

namespace tessera::cli {
namespace {

struct CacheArguments {
  ModelArguments model;
  std::string file;
  std::string limit = "8G";
  std::string folder;  // "": the default folders
  bool is_json = false;
};

void check_is_folder(const std::string& folder) {
  std::error_code unknown;
  if (std::filesystem::is_directory(folder, unknown)) return;
  throw Error(ErrorKind::InvalidArgument, "--cache-dir '" + folder + "'",
              "there is no such folder");
}

std::vector<std::filesystem::path> folders_of(const CacheArguments& arguments) {
  if (!arguments.folder.empty()) {
    check_is_folder(arguments.folder);
    return {arguments.folder};
  }
  std::vector<std::filesystem::path> folders = {"."};
  if (!user_cache_folder().empty()) folders.push_back(user_cache_folder());
  return folders;
}

std::vector<ListedCache> listed(const std::vector<std::filesystem::path>& folders) {
  std::vector<ListedCache> files;
  for (const std::filesystem::path& folder : folders) {
    for (const std::filesystem::path& path : list_caches(folder)) {
      ListedCache& file = files.emplace_back();
      file.path = path;
      try {
        file.description = describe_cache(path);
      } catch (const Error& error) {
        file.damage = error.what();
      }
    }
  }
  return files;
}

CommandResult list(const CacheArguments& arguments) {
  const std::vector<ListedCache> files = listed(folders_of(arguments));
  return {kFine, arguments.is_json ? json_text(cache_list_json(files))
                                   : cache_list_text(files, stdout_style())};
}

CommandResult count(const CacheArguments& arguments) {
  std::vector<CacheFolderDescription> folders;
  for (const std::filesystem::path& folder : folders_of(arguments)) {
    folders.push_back(describe_cache_folder(folder));
  }
  return {kFine, arguments.is_json ? json_text(cache_stats_json(folders))
                                   : cache_stats_text(folders, stdout_style())};
}

CommandResult show(const CacheArguments& arguments) {
  const CacheFileDescription file = describe_cache(arguments.file);
  return {kFine,
          arguments.is_json ? json_text(to_json(file)) : cache_file_text(file, stdout_style())};
}

CommandResult verify(const CacheArguments& arguments) {
  std::vector<ListedCache> files = listed(folders_of(arguments));
  const size_t count = files.size();
  std::erase_if(files, [](const ListedCache& file) { return file.damage.empty(); });
  const ExitCode code = files.empty() ? kFine : kAnswerIsNo;
  if (arguments.is_json) {
    Json json = {{"cache_count", count}};
    json.update(cache_list_json(files));
    return {code, json_text(json)};
  }
  std::string text;
  for (const ListedCache& file : files) text += wrapped(file.damage, stdout_style());
  return {code, text + count_text(static_cast<int64_t>(count), "cache") + ", " +
                    std::to_string(files.size()) + " of them cannot be used\n"};
}

bool is_saved_on_purpose(const std::filesystem::path& path) {
  try {
    return describe_cache(path).written_by == "save_cache";
  } catch (const Error&) {
    return false;
  }
}

CommandResult clear(const CacheArguments& arguments) {
  size_t removed = 0;
  size_t saved = 0;
  int64_t others = 0;
  for (const std::filesystem::path& folder : folders_of(arguments)) {
    for (const std::filesystem::path& path : list_caches(folder)) {
      // Files that the user saved on purpose are removed only if the user names their folder.
      if (arguments.folder.empty() && is_saved_on_purpose(path)) {
        ++saved;
        continue;
      }
      std::error_code failure;
      std::filesystem::remove(path, failure);
      if (failure) {
        throw Error(ErrorKind::DeviceFailed, "'" + path.string() + "'",
                    "cannot be removed: " + failure.message());
      }
      ++removed;
    }
    // Other files in the folder: packs, kernels and indices of models.
    if (folder != ".") others += prune_caches(folder, 0).files;
  }
  const Json json = {{"removed_count", removed}, {"other_count", others}, {"kept_count", saved}};
  if (arguments.is_json) return {kFine, json_text(json)};
  std::string rest = others == 0 ? ""
                                 : " and " + count_text(others, "file") +
                                       " of packed weights, kernels and indices of models";
  if (saved > 0) {
    rest += "; " + count_text(static_cast<int64_t>(saved), "cache") + " that save_cache() wrote " +
            (saved == 1 ? "stays" : "stay") + ", unless --cache-dir names the folder";
  }
  return {kFine, wrapped("removed " + count_text(static_cast<int64_t>(removed), "cache") + rest,
                         stdout_style())};
}

// The only folder that the command uses; it may be missing if --cache-dir does not name it.
std::filesystem::path only_folder(const CacheArguments& arguments) {
  if (!arguments.folder.empty()) {
    check_is_folder(arguments.folder);
    return arguments.folder;
  }
  if (!user_cache_folder().empty()) return user_cache_folder();
  throw Error(ErrorKind::InvalidArgument, "--cache-dir",
              "expected a folder, because neither XDG_CACHE_HOME nor HOME names that of the user");
}

int64_t parse_limit(const std::string& text) {
  const int64_t bytes = parse_byte_count("--limit", text, 0);
  // Earlier versions read a bare number as mebibytes. Read as bytes, it would remove nearly
  // everything.
  const bool has_unit = text.find_first_not_of("0123456789") != std::string::npos;
  if (bytes == 0 || has_unit) return bytes;
  throw Error(ErrorKind::InvalidArgument, "--limit '" + text + "'",
              "expected a size with its unit, such as 512M or 8G");
}

CommandResult prune(const CacheArguments& arguments) {
  const int64_t max_bytes = parse_limit(arguments.limit);
  const PrunedCaches pruned = prune_caches(only_folder(arguments), max_bytes);
  const Json json = {{"removed_count", pruned.files}, {"removed_bytes", pruned.bytes}};
  return {kFine, arguments.is_json ? json_text(json)
                                   : "removed " + count_text(pruned.files, "file") + ", " +
                                         bytes_text(pruned.bytes) + "\n"};
}

CommandResult export_all(const CacheArguments& arguments) {
  check_writable_file("FILE", arguments.file);
  const int64_t count = export_caches(only_folder(arguments), arguments.file);
  const Json json = {{"cache_count", count}, {"file", arguments.file}};
  return {kFine, arguments.is_json
                     ? json_text(json)
                     : wrapped("wrote " + count_text(count, "cache") + " to " + arguments.file,
                               stdout_style())};
}

CommandResult import_all(const CacheArguments& arguments) {
  // import_caches() creates the folder, so it need not exist.
  const std::filesystem::path folder =
      arguments.folder.empty() ? only_folder(arguments) : std::filesystem::path(arguments.folder);
  const int64_t count = import_caches(arguments.file, folder);
  const Json json = {{"cache_count", count}, {"file", arguments.file}};
  return {kFine,
          arguments.is_json ? json_text(json) : "imported " + count_text(count, "cache") + "\n"};
}

CacheReport find(const CacheArguments& arguments) {
  const ModelRequest request(arguments.model, MissingInputs::AreRandom);
  const LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
  return request.find_cache(loaded);
}

CommandResult show_fingerprint(const CacheArguments& arguments) {
  const CacheReport report = find(arguments);
  return {kFine, arguments.is_json ? json_text(ingredients_json(report))
                                   : ingredients_text(report, stdout_style())};
}

CommandResult explain_miss(const CacheArguments& arguments) {
  const CacheReport report = find(arguments);
  const ExitCode code = report.is_hit ? kFine : kAnswerIsNo;
  if (arguments.is_json) return {code, json_text(cache_json(report))};
  return {code, cache_answer_text(report, stdout_style())};
}

struct CacheRow {
  const char* name;
  const char* summary;
  const char* example;
  CommandResult (*run)(const CacheArguments& arguments);
  bool asks_for_model = false;
  const char* file = nullptr;  // the description of the file argument; null: the command has none
  bool asks_for_folder = false;
  bool asks_for_limit = false;
};

constexpr std::array kRows = {
    CacheRow{.name = "ls",
             .summary = "List the caches of the working folder and of the user",
             .example = "tessera cache ls --json",
             .run = list,
             .asks_for_folder = true},
    CacheRow{.name = "stats",
             .summary = "Count what the working folder and the user's folder keep, by kind",
             .example = "tessera cache stats",
             .run = count,
             .asks_for_folder = true},
    CacheRow{.name = "show",
             .summary = "Show what a cache file holds",
             .example = "tessera cache show 1a2b3c4.cache",
             .run = show,
             .file = "a cache"},
    CacheRow{.name = "fingerprint",
             .summary = "Show what the cache of a model depends on",
             .example = "tessera cache fingerprint resnet50.onnx",
             .run = show_fingerprint,
             .asks_for_model = true},
    CacheRow{.name = "why-miss",
             .summary = "Say whether a model's cache is found, and if not, why",
             .example = "tessera cache why-miss resnet50.onnx --threads 2",
             .run = explain_miss,
             .asks_for_model = true},
    CacheRow{.name = "verify",
             .summary = "Look for damaged caches",
             .example = "tessera cache verify --cache-dir caches",
             .run = verify,
             .asks_for_folder = true},
    CacheRow{.name = "prune",
             .summary = "Remove the user's least recently used files until the rest fits",
             .example = "tessera cache prune --limit 2G",
             .run = prune,
             .asks_for_folder = true,
             .asks_for_limit = true},
    CacheRow{.name = "export",
             .summary = "Write the user's caches and measured times into one file",
             .example = "tessera cache export caches.tessera",
             .run = export_all,
             .file = "the file to write",
             .asks_for_folder = true},
    CacheRow{.name = "import",
             .summary = "Read the caches and measured times of an exported file",
             .example = "tessera cache import caches.tessera",
             .run = import_all,
             .file = "what export wrote",
             .asks_for_folder = true},
    CacheRow{
        .name = "clear",
        .summary = "Remove what binds wrote here and in the user's folder, or all of --cache-dir",
        .example = "tessera cache clear",
        .run = clear,
        .asks_for_folder = true},
};

}  // namespace

Command make_cache_command(CommandOptions command) {
  const auto arguments = std::make_shared<CacheArguments>();
  std::vector<CommandOptions> parts;
  for (const CacheRow& row : kRows) {
    CommandOptions part = command.add_command(row.name, row.summary);
    if (row.asks_for_model) {
      add_model_options(part, kCacheCommand, arguments->model, MissingInputs::AreRandom);
    }
    if (row.file != nullptr) part.add_positional("FILE", arguments->file, row.file);
    if (row.asks_for_folder) {
      part.add_option("--cache-dir", arguments->folder, "DIR: this folder alone");
    }
    if (row.asks_for_limit) {
      part.add_option("--limit", arguments->limit,
                      "SIZE: the size of files to keep, e.g. 512M or 1.5G; K is 1024 bytes,\n"
                      "M 1024 K, and so on (default 8G)");
    }
    part.add_flag("--json", arguments->is_json, "print JSON");
    part.set_footer(std::string("Example:\n  ") + row.example);
    parts.push_back(part);
  }
  command.set_footer(
      "Example:\n  tessera cache why-miss resnet50.onnx --threads 2\n  tessera cache show "
      "1a2b3c4.cache");
  return [arguments, parts] {
    size_t chosen = 0;
    while (!parts[chosen].was_given()) ++chosen;
    return kRows[chosen].run(*arguments);
  };
}

}  // namespace tessera::cli
