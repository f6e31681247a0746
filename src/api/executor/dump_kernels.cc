#include "api/executor/dump_kernels.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cache/fingerprint.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr size_t kNamedOps = 3;
constexpr size_t kMaxOpBytes = 24;
constexpr size_t kMaxExtensionBytes = 8;

bool is_plain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

// A part of a file's name: other characters than letters and digits become '_'.
std::string plain(std::string_view text) {
  std::string name(text.substr(0, kMaxOpBytes));
  std::ranges::replace_if(name, [](char letter) { return !is_plain(letter); }, '_');
  return name;
}

// "Sigmoid_Mul", "Div_Erf_Add_2_more".
std::string ops_text(const BuiltPlan& built, const Candidate& candidate) {
  std::string text;
  for (size_t index = 0; index < std::min(candidate.nodes.size(), kNamedOps); ++index) {
    text += (index == 0 ? "" : "_") + plain(built.graph[candidate.nodes[index]].op);
  }
  if (candidate.nodes.size() <= kNamedOps) return text;
  return text + "_" + std::to_string(candidate.nodes.size() - kNamedOps) + "_more";
}

// Extension -> contents of the files of one kernel; empty if it was not compiled.
using Texts = std::map<std::string, std::string>;

Texts texts_of(const Kernel& kernel) {
  Texts texts;
  const auto add = [&](const std::string& extension, int32_t form) {
    std::optional<std::string> text = kernel.describe(form);
    if (!text) return;
    if (!text->ends_with('\n')) *text += '\n';
    texts.emplace(extension, *std::move(text));
  };
  std::string extension = kernel.describe(TESSERA_KERNEL_SOURCE_EXTENSION).value_or("");
  const bool is_usable = !extension.empty() && extension.size() <= kMaxExtensionBytes &&
                         std::ranges::all_of(extension, is_plain);
  if (!is_usable) extension = "source";
  add(extension, TESSERA_KERNEL_SOURCE);
  if (texts.empty()) return texts;
  add("expr", TESSERA_KERNEL_EXPRESSION);
  add("s", TESSERA_KERNEL_ASSEMBLY);
  return texts;
}

std::string digest_of(const Texts& texts) {
  std::string all;
  for (const auto& [extension, text] : texts) {
    all += extension + " " + std::to_string(text.size()) + "\n" + text;
  }
  return cache::digest_text(all);
}

void add_kernels(const BuiltPlan& built,
                 std::map<std::string, std::pair<std::string, Texts>>& all) {
  for (size_t index = 0; index < built.kernels.size(); ++index) {
    if (built.kernels[index] == nullptr) continue;
    Texts texts = texts_of(*built.kernels[index]);
    if (texts.empty()) continue;
    const std::string digest = digest_of(texts);
    const Candidate& candidate =
        built.offers.candidates[static_cast<size_t>(built.plan.steps[index].candidate)];
    const std::string stem =
        plain(candidate.backend()) + "-" + ops_text(built, candidate) + "-" + digest;
    all.try_emplace(candidate.backend() + "/" + digest, stem, std::move(texts));
  }
}

void say(const Log& log, const std::string& text) { log.warn("TESSERA_DUMP_KERNELS: " + text); }

enum class Written { New, WasThere, Other };

// Throws std::system_error.
Written write_once(const std::filesystem::path& file, const std::string& text) {
  if (std::ifstream old(file, std::ios::binary); old) {
    const std::string found{std::istreambuf_iterator<char>(old), {}};
    return found == text ? Written::WasThere : Written::Other;
  }
  // Other processes may write the same file; each renames its own to that name.
  std::filesystem::path part = file;
  part += "." + std::to_string(::getpid()) + ".part";
  errno = 0;
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code failure(out ? 0 : (errno == 0 ? EIO : errno), std::generic_category());
  if (!failure) std::filesystem::rename(part, file, failure);
  if (!failure) return Written::New;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  throw std::system_error(failure, "cannot write '" + file.string() + "'");
}

}  // namespace

std::filesystem::path dump_folder() {
  const char* const text = std::getenv("TESSERA_DUMP_KERNELS");
  return text == nullptr ? std::filesystem::path() : std::filesystem::path(text);
}

void dump_kernels(const BuiltPlan& built, const std::filesystem::path& folder, const Log& log,
                  const Log& information) {
  if (folder.empty()) return;
  try {
    std::map<std::string, std::pair<std::string, Texts>> kernels;
    add_kernels(built, kernels);
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw std::system_error(failure, "cannot create that folder");
    size_t written = 0;
    std::string changed;
    for (const auto& [key, kernel] : kernels) {
      bool is_new = false;
      for (const auto& [extension, text] : kernel.second) {
        const std::string name = kernel.first + "." + extension;
        const Written result = write_once(folder / name, text);
        is_new = is_new || result == Written::New;
        if (result == Written::Other) changed = name;
      }
      written += is_new ? 1 : 0;
    }
    say(information, "wrote " + std::to_string(written) + " of the " +
                         std::to_string(kernels.size()) + " compiled kernels of this plan to '" +
                         folder.string() + "'" +
                         (written < kernels.size() ? "; the others were there" : ""));
    if (changed.empty()) return;
    say(log, "'" + changed + "' in '" + folder.string() +
                 "' has other contents than this kernel, and was left as it is");
  } catch (const std::system_error& error) {
    say(log, "not all kernels were written to '" + folder.string() + "': " + error.what());
  } catch (const Error& error) {
    say(log, "not all kernels were written to '" + folder.string() + "': " + error.what());
  }
}

}  // namespace tessera
