// `tessera cache`: what was found out about models before, and where it is kept.
#include <array>

#include "cli/bound_model.h"
#include "cli/cache_report.h"
#include "cli/command.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

struct CacheArguments {
  ModelArguments model;
  std::string file;
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
  }
  const Json json = {{"removed", removed}};
  return {kFine,
          arguments.is_json ? json_text(json) : std::to_string(removed) + " caches removed\n"};
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
  bool asks_for_file = false;
};

constexpr std::array kRows = {
    CacheRow{"ls", "List the caches of the working folder and of the user", list},
    CacheRow{"show", "Show what a cache file holds", show, false, true},
    CacheRow{"fingerprint", "Show what the cache of a model depends on", show_fingerprint, true},
    CacheRow{"why-miss", "Say whether a model's cache is found, and if not, why", explain_miss,
             true},
    CacheRow{"verify", "Look for damaged caches", verify},
    CacheRow{"clear", "Remove the user's caches, or those of --cache-dir", clear},
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
      add_cache_dir_option(*part, arguments->model.bind);
    } else if (row.asks_for_file) {
      part->add_option("FILE", arguments->file, "a cache")->required();
    } else {
      part->add_option("--cache-dir", arguments->folder,
                       "DIR: the caches there alone (default: the working folder and the user's)");
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
