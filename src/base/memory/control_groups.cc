#include "base/memory/control_groups.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The first version writes this or a little less for "no limit".
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::optional<int64_t> read_number(const fs::path& file) {
  std::ifstream stream(file);
  int64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// The value after `name` in a file of lines "<name> <number>".
std::optional<int64_t> read_named(const fs::path& file, std::string_view name) {
  std::ifstream stream(file);
  std::string key;
  int64_t number = 0;
  while (stream >> key >> number) {
    if (key == name) return number;
  }
  return std::nullopt;
}

std::set<std::string> names_in(const std::string& list) {
  std::set<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) names.insert(std::move(name));
  return names;
}

// mountinfo writes spaces and a few other characters as octal numbers: "\040".
fs::path without_escapes(const std::string& text) {
  constexpr size_t kDigits = 3;
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string digits = text.substr(std::min(at + 1, text.size()), kDigits);
    const bool is_escape = text[at] == '\\' && digits.size() == kDigits &&
                           digits.find_first_not_of("01234567") == std::string::npos;
    if (is_escape) at += kDigits;
    plain += is_escape ? static_cast<char>(std::stoi(digits, nullptr, 8)) : text[at];
  }
  return plain;
}

// The part of `path` below `beginning`. In a container, the path may be that outside, or begin with
// "..": then only the outermost folder is known.
fs::path below(const fs::path& beginning, const fs::path& path) {
  const fs::path part = path.lexically_normal().lexically_relative(beginning);
  const bool is_outside = part.empty() || part == "." || *part.begin() == "..";
  return is_outside ? fs::path() : part;
}

// The smallest number in these files of the group; those that say "max", or are not there, are
// skipped.
std::optional<int64_t> smallest_limit(const fs::path& group,
                                      std::initializer_list<const char*> names) {
  std::optional<int64_t> least;
  for (const char* name : names) {
    const std::optional<int64_t> bytes = read_number(group / name);
    if (!bytes || *bytes < 0 || *bytes >= kNoLimit) continue;
    least = std::min(least.value_or(*bytes), *bytes);
  }
  return least;
}

std::optional<int64_t> available_in(const fs::path& group) {
  // Above memory.high, the system slows the processes down until they give memory back.
  const std::optional<int64_t> limit =
      smallest_limit(group, {"memory.max", "memory.high", "memory.limit_in_bytes"});
  if (!limit) return std::nullopt;
  std::optional<int64_t> used = read_number(group / "memory.current");
  std::optional<int64_t> cached = read_named(group / "memory.stat", "inactive_file");
  if (!used) {
    used = read_number(group / "memory.usage_in_bytes");
    const auto total = read_named(group / "memory.stat", "total_inactive_file");
    if (total) cached = total;
  }
  if (!used) return std::nullopt;
  const int64_t needed = std::max<int64_t>(0, *used - cached.value_or(0));
  return std::max<int64_t>(0, *limit - needed);
}

}  // namespace

ControlGroups::ControlGroups(fs::path root) : root_(std::move(root)) { read_mounts(); }

void ControlGroups::read_mounts() {
  std::ifstream file(root_ / "proc" / "self" / "mountinfo");
  if (!file.is_open()) return;
  mounts_.emplace();
  // "36 35 0:30 <group> <folder> <options> [<tags>] - <type> <source> <options of the type>"
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string number;
    std::string beginning;
    std::string folder;
    words >> number >> number >> number >> beginning >> folder;
    std::string word;
    while (words >> word && word != "-") continue;
    std::string type;
    std::string source;
    std::string options;
    words >> type >> source >> options;
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts_->push_back({.controllers = type == "cgroup" ? options : "",
                        .beginning = without_escapes(beginning),
                        .folder = root_ / without_escapes(folder).relative_path()});
  }
}

void ControlGroups::add_usual_mounts(const std::string& controllers,
                                     std::vector<Mount>& mounts) const {
  const fs::path usual = root_ / "sys" / "fs" / "cgroup";
  std::vector<fs::path> folders;
  if (controllers.empty()) {
    folders = {usual, usual / "unified"};
  } else {
    folders = {usual / controllers};
    for (const std::string& name : names_in(controllers)) folders.push_back(usual / name);
  }
  for (const fs::path& folder : folders) mounts.push_back({controllers, "/", folder});
}

// The mounts of a line of /proc/self/cgroup. The options of a mount have further words, and the
// order of controllers may differ.
std::vector<ControlGroups::Mount> ControlGroups::mounts_of(const std::string& controllers) const {
  std::vector<Mount> mounts;
  if (!mounts_) {
    add_usual_mounts(controllers, mounts);
    return mounts;
  }
  const std::set<std::string> wanted = names_in(controllers);
  std::ranges::copy_if(*mounts_, std::back_inserter(mounts), [&](const Mount& mount) {
    return mount.controllers.empty() == controllers.empty() &&
           std::ranges::includes(names_in(mount.controllers), wanted);
  });
  return mounts;
}

std::vector<fs::path> ControlGroups::folders() const {
  std::vector<fs::path> all;
  const auto add = [&](const fs::path& folder) {
    std::error_code unknown;
    const bool is_new = std::ranges::find(all, folder) == all.end();
    if (is_new && fs::is_directory(folder, unknown)) all.push_back(folder);
  };
  std::ifstream file(root_ / "proc" / "self" / "cgroup");
  // Lines are "<number>:<controllers>:<path>"; the second version has no controllers.
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path path = line.substr(second + 1);
    for (const Mount& mount : mounts_of(controllers)) {
      fs::path folder = mount.folder;
      add(folder);
      for (const fs::path& part : below(mount.beginning, path)) add(folder /= part);
    }
  }
  return all;
}

std::optional<int64_t> ControlGroups::memory_limit_bytes() const {
  std::optional<int64_t> least;
  for (const fs::path& folder : folders()) {
    const std::optional<int64_t> limit = group_memory_limit_bytes(folder);
    if (limit) least = std::min(least.value_or(*limit), *limit);
  }
  return least;
}

std::optional<int64_t> ControlGroups::available_bytes() const {
  std::optional<int64_t> least;
  for (const fs::path& folder : folders()) {
    const std::optional<int64_t> available = available_in(folder);
    if (available) least = std::min(least.value_or(*available), *available);
  }
  return least;
}

std::optional<int64_t> group_memory_limit_bytes(const fs::path& folder) {
  return smallest_limit(folder, {"memory.max", "memory.limit_in_bytes"});
}

}  // namespace tessera
