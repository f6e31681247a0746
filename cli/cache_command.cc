// `tessera cache`: what was found out about models before, and where it is kept.
#include <array>

#include "cli/bound_model.h"
#include "cli/cache_report.h"
#include "cli/command.h"
#include "cli/named_argument.h"
#include "cli/span.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr uint64_t kMostMebibytes = uint64_t{1} << 30;

struct CacheArguments {
  ModelArguments model;
  std::string file;
  std::string most_mebibytes = "8192";
  std::string folder;  // "": the usual ones
  bool is_json = false;
};

std::vector<std::filesystem::path> folders_of(const CacheArguments& arguments) {
  if (!arguments.folder.empty()) return {arguments.folder};
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
  return {kFine, arguments.is_json ? json_text(cache_list_json(files)) : cache_list_text(files)};
}

CommandResult show(const CacheArguments& arguments) {
  const CacheFileDescription file = describe_cache(arguments.file);
  return {kFine, arguments.is_json ? json_text(to_json(file)) : cache_file_text(file)};
}

CommandResult verify(const CacheArguments& arguments) {
  std::vector<ListedCache> files = listed(folders_of(arguments));
  const size_t count = files.size();
  std::erase_if(files, [](const ListedCache& file) { return file.damage.empty(); });
  const ExitCode code = files.empty() ? kFine : kAnswerIsNo;
  if (arguments.is_json) return {code, json_text(cache_list_json(files))};
  std::string text;
  for (const ListedCache& file : files) text += wrapped(file.damage);
  return {code, text + std::to_string(count) + " caches, " + std::to_string(files.size()) +
                    " that cannot be used\n"};
}

CommandResult clear(const CacheArguments& arguments) {
  std::vector<std::filesystem::path> folders = folders_of(arguments);
  // What lies in a working folder was put there on purpose, or by another program.
  if (arguments.folder.empty()) folders.erase(folders.begin());
  size_t removed = 0;
  int64_t others = 0;
  for (const std::filesystem::path& folder : folders) {
    for (const std::filesystem::path& path : list_caches(folder)) {
      std::error_code failure;
      std::filesystem::remove(path, failure);
      if (failure) {
        throw Error(ErrorKind::DeviceFailed, "'" + path.string() + "'",
                    "cannot be removed: " + failure.message());
      }
      ++removed;
    }
    // What else is kept there: packs and indices of models.
    others += prune_caches(folder, 0).files;
  }
  const Json json = {{"removed", removed}, {"others", others}};
  if (arguments.is_json) return {kFine, json_text(json)};
  const std::string rest =
      others == 0 ? "" : ", and " + std::to_string(others) + " files of packs and indices";
  return {kFine, std::to_string(removed) + " caches removed" + rest + "\n"};
}

// The one folder that a command is about.
std::filesystem::path only_folder(const CacheArguments& arguments) {
  if (!arguments.folder.empty()) return arguments.folder;
  if (!user_cache_folder().empty()) return user_cache_folder();
  throw Error(ErrorKind::InvalidArgument, "--cache-dir",
              "expected a folder, as neither XDG_CACHE_HOME nor HOME names the user's");
}

CommandResult prune(const CacheArguments& arguments) {
  const auto mebibytes = parse_whole_number("--limit", arguments.most_mebibytes, 0, kMostMebibytes);
  const PrunedCaches pruned =
      prune_caches(only_folder(arguments), static_cast<int64_t>(mebibytes) * kMebibyte);
  const Json json = {{"removed", pruned.files}, {"bytes", pruned.bytes}};
  return {kFine, arguments.is_json
                     ? json_text(json)
                     : std::to_string(pruned.files) + " files of " +
                           decimal_text(static_cast<double>(pruned.bytes) / kMebibyte, 1) +
                           " MiB removed\n"};
}

CommandResult export_all(const CacheArguments& arguments) {
  const int64_t count = export_caches(only_folder(arguments), arguments.file);
  const Json json = {{"exported", count}, {"file", arguments.file}};
  return {kFine, arguments.is_json ? json_text(json)
                                   : std::to_string(count) + " caches written to " +
                                         printable(arguments.file) + "\n"};
}

CommandResult import_all(const CacheArguments& arguments) {
  const int64_t count = import_caches(arguments.file, only_folder(arguments));
  const Json json = {{"imported", count}};
  return {kFine, arguments.is_json ? json_text(json) : std::to_string(count) + " caches taken\n"};
}

CacheReport find(const CacheArguments& arguments) {
  const ModelRequest request(arguments.model, MissingInputs::AreRandom);
  const LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
  return request.find_cache(loaded);
}

CommandResult show_fingerprint(const CacheArguments& arguments) {
  const CacheReport report = find(arguments);
  return {kFine,
          arguments.is_json ? json_text(ingredients_json(report)) : ingredients_text(report)};
}

CommandResult explain_miss(const CacheArguments& arguments) {
  const CacheReport report = find(arguments);
  const ExitCode code = report.is_hit ? kFine : kAnswerIsNo;
  if (arguments.is_json) return {code, json_text(cache_json(report))};
  return {code, wrapped(report.is_hit ? "hit: " + report.file.string() : "miss: " + report.reason)};
}

struct CacheRow {
  const char* name;
  const char* summary;
  CommandResult (*run)(const CacheArguments& arguments);
  bool asks_for_model = false;
  const char* file = nullptr;  // what the file is that it asks for; null: it asks for none
  bool asks_for_folder = false;
  bool asks_for_limit = false;
};

constexpr std::array kRows = {
    CacheRow{.name = "ls",
             .summary = "List the caches of the working folder and of the user",
             .run = list,
             .asks_for_folder = true},
    CacheRow{
        .name = "show", .summary = "Show what a cache file holds", .run = show, .file = "a cache"},
    CacheRow{.name = "fingerprint",
             .summary = "Show what the cache of a model depends on",
             .run = show_fingerprint,
             .asks_for_model = true},
    CacheRow{.name = "why-miss",
             .summary = "Say whether a model's cache is found, and if not, why",
             .run = explain_miss,
             .asks_for_model = true},
    CacheRow{.name = "verify",
             .summary = "Look for damaged caches",
             .run = verify,
             .asks_for_folder = true},
    CacheRow{.name = "prune",
             .summary = "Remove what is worth least of the user's, until the rest fits",
             .run = prune,
             .asks_for_folder = true,
             .asks_for_limit = true},
    CacheRow{.name = "export",
             .summary = "Write the user's caches and prices into one file",
             .run = export_all,
             .file = "the file to write",
             .asks_for_folder = true},
    CacheRow{.name = "import",
             .summary = "Take the caches and prices of an exported file",
             .run = import_all,
             .file = "what export wrote",
             .asks_for_folder = true},
    CacheRow{.name = "clear",
             .summary = "Remove the user's caches, packs and indices, or those of --cache-dir",
             .run = clear,
             .asks_for_folder = true},
};

}  // namespace

Command make_cache_command(CLI::App& command) {
  const auto arguments = std::make_shared<CacheArguments>();
  command.require_subcommand(1);
  std::vector<CLI::App*> parts;
  for (const CacheRow& row : kRows) {
    CLI::App* const part = command.add_subcommand(row.name, row.summary);
    if (row.asks_for_model) {
      add_model_options(*part, arguments->model, MissingInputs::AreRandom, Prices::AreNotAsked);
      add_optimize_for_option(*part, arguments->model.bind);
      add_cache_dir_option(*part, arguments->model.bind);
    }
    if (row.file != nullptr) part->add_option("FILE", arguments->file, row.file)->required();
    if (row.asks_for_folder) {
      part->add_option("--cache-dir", arguments->folder, "DIR: that folder alone");
    }
    if (row.asks_for_limit) {
      part->add_option("--limit", arguments->most_mebibytes,
                       "MEBIBYTES that may stay (default 8192)");
    }
    part->add_flag("--json", arguments->is_json, "print JSON");
    parts.push_back(part);
  }
  command.footer(
      "Example:\n  tessera cache why-miss resnet50.onnx --threads 2\n  tessera cache show "
      "1a2b3c4.cache");
  return [arguments, parts] {
    size_t chosen = 0;
    while (!parts[chosen]->parsed()) ++chosen;
    return kRows[chosen].run(*arguments);
  };
}

}  // namespace tessera::cli
