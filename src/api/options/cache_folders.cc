#include "api/options/cache_folders.h"

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "api/options/cache_ingredients.h"
#include "cache/cache_folder.h"

namespace tessera {
namespace {

// "" if it is not set.
std::filesystem::path folder_of_environment(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::filesystem::path() : std::filesystem::path(text);
}

}  // namespace

std::filesystem::path user_cache_folder() {
  // The XDG specification says that relative paths are ignored.
  const std::filesystem::path caches = folder_of_environment("XDG_CACHE_HOME");
  if (caches.is_absolute()) return caches / "tessera";
  const std::filesystem::path home = folder_of_environment("HOME");
  if (home.is_absolute()) return home / ".cache" / "tessera";
  return {};
}

bool is_optimize_wanted_by_environment() {
  const char* const text = std::getenv("TESSERA_OPTIMIZE");
  return text == nullptr || std::string_view(text) != "0";
}

std::vector<std::filesystem::path> cache_folders(const BindOptions& options) {
  std::filesystem::path first = options.cache.cache_dir;
  if (!first.empty()) {
    std::error_code unknown;
    const std::filesystem::file_status status = std::filesystem::status(first, unknown);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
      throw Error(ErrorKind::InvalidArgument, "cache_dir '" + first.string() + "'",
                  "expected a folder, or a path where nothing is yet; found a file");
    }
  }
  if (first.empty()) first = folder_of_environment("TESSERA_CACHE_DIR");
  if (first.empty()) first = ".";
  std::vector<std::filesystem::path> folders = {first};
  const std::filesystem::path user = user_cache_folder();
  if (!user.empty()) folders.push_back(user);
  return folders;
}

std::vector<double> known_gains(const BindOptions& options) {
  const std::vector<cache::Ingredient> machine = machine_ingredients();
  std::vector<double> all;
  for (const std::filesystem::path& folder : cache_folders(options)) {
    const std::vector<double> gains = cache::read_gains(folder, machine);
    all.insert(all.end(), gains.begin(), gains.end());
  }
  return all;
}

}  // namespace tessera
