#include "api/options/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "backend/catalog/catalog.h"
#include "base/errors/likely_name.h"

namespace tessera {
namespace {

struct KnownVariable {
  const char* name;
  const char* meaning;
};

constexpr std::array kKnown = {
    KnownVariable{"TESSERA_BACKENDS", "the backends to use, unless a call names some"},
    KnownVariable{"TESSERA_BACKEND_PATH", "further plug-ins, before those of the installation"},
    KnownVariable{"TESSERA_CACHE_DIR",
                  "the first folder of caches, in place of the working folder"},
    KnownVariable{"TESSERA_DUMP_KERNELS", "the folder into which each bind writes its kernels"},
    KnownVariable{"TESSERA_OPTIMIZE", "whether binding measures and reads caches by default"},
    KnownVariable{"XDG_CACHE_HOME", "where the user's folder of caches is, in place of HOME"},
};

std::string upper_case(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return text;
}

// Plug-ins may have variables of their own: TESSERA_<BACKEND>_...
std::string meaning_of(const std::string& name) {
  for (const KnownVariable& known : kKnown) {
    if (name == known.name) return known.meaning;
  }
  for (const CatalogEntry& entry : catalog()) {
    if (name.starts_with("TESSERA_" + upper_case(entry.name) + "_")) {
      return "read by the plug-in of '" + std::string(entry.name) + "'";
    }
  }
  return {};
}

}  // namespace

std::vector<EnvironmentVariable> describe_environment(const std::vector<std::string>& environment) {
  std::vector<std::string> names;
  for (const KnownVariable& known : kKnown) names.emplace_back(known.name);
  std::vector<EnvironmentVariable> found;
  for (const std::string& entry : environment) {
    const size_t sign = entry.find('=');
    if (sign == std::string::npos || sign + 1 == entry.size()) continue;
    EnvironmentVariable variable{.name = entry.substr(0, sign), .value = entry.substr(sign + 1)};
    variable.meaning = meaning_of(variable.name);
    if (variable.meaning.empty()) {
      if (!variable.name.starts_with("TESSERA_")) continue;
      variable.hint = did_you_mean(variable.name, names);
    }
    found.push_back(std::move(variable));
  }
  std::ranges::sort(found, {}, &EnvironmentVariable::name);
  return found;
}

std::vector<EnvironmentVariable> describe_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return describe_environment(entries);
}

}  // namespace tessera
