#include "cache/cache_folder.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <map>
#include <ranges>
#include <system_error>
#include <utility>

#include "cache/stored_file.h"
#include "tessera/error.h"

namespace tessera::cache {
namespace {

constexpr size_t kShortDigits = 7;
constexpr size_t kAllDigits = 40;
constexpr const char* kEnding = ".cache";
// How many names may be missing in a chain of names with more and more digits: files of other
// fingerprints, which forced a longer name, may have been removed.
constexpr int kMaxMissing = 3;

std::string location_of(const std::filesystem::path& path) {
  return "cache '" + path.string() + "'";
}

// How the file of one name relates to a fingerprint.
struct Candidate {
  enum class State { Missing, Unusable, Foreign, Ours };
  State state = State::Missing;
  std::string bytes;
  std::string reason;
  std::vector<Ingredient> ingredients;
};

Candidate look_at(const std::filesystem::path& path, const Fingerprint& wanted) {
  Candidate candidate;
  FileText text = read_stored_file(path, kMaxFileBytes);
  if (!text.bytes) {
    if (!text.refusal.empty()) {
      candidate.state = Candidate::State::Unusable;
      candidate.reason = location_of(path) + " is not used: " + text.refusal;
    }
    return candidate;
  }
  try {
    candidate.ingredients = decode_head(*text.bytes, location_of(path)).ingredients;
  } catch (const Error& error) {
    candidate.state = Candidate::State::Unusable;
    candidate.reason = error.what();
    return candidate;
  }
  const bool is_ours = fingerprint_of(candidate.ingredients) == wanted;
  candidate.state = is_ours ? Candidate::State::Ours : Candidate::State::Foreign;
  candidate.bytes = *std::move(text.bytes);
  return candidate;
}

// The maximum number of sections per type and content: plans, by shapes and options; prices, by
// library version.
constexpr size_t kMaxPlans = 256;
constexpr size_t kMaxVersions = 3;

// Files that read_gains() reads.
constexpr std::ptrdiff_t kMaxGains = 100;

bool is_cache_name(const std::string& name) {
  const size_t ending = std::string_view(kEnding).size();
  if (name.size() < kShortDigits + ending || name.size() > kAllDigits + ending) return false;
  const std::string digits = name.substr(0, name.size() - ending);
  return name.ends_with(kEnding) &&
         digits.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string file_name(const Fingerprint& fingerprint, size_t digits) {
  return text(fingerprint).substr(kAllDigits - digits) + kEnding;
}

void drop_oldest(CacheFile& file) {
  std::map<std::pair<std::string, std::string>, std::vector<int64_t>> times;
  for (const Section& section : file.sections) {
    times[{section.type, section.content}].push_back(section.made_ns);
  }
  for (auto& [kind, made] : times) {
    const size_t max_count =
        kind.first != "plan" && kind.second == "costs" ? kMaxVersions : kMaxPlans;
    if (made.size() <= max_count) continue;
    std::ranges::sort(made, std::greater());
    const int64_t oldest = made[max_count - 1];
    std::erase_if(file.sections, [&](const Section& section) {
      return section.type == kind.first && section.content == kind.second &&
             section.made_ns < oldest;
    });
  }
}

FoundCache find_in_folder(const std::filesystem::path& folder,
                          std::span<const Ingredient> ingredients, const UserKey* key,
                          const IsWanted& is_wanted) {
  const Fingerprint wanted = fingerprint_of(ingredients);
  FoundCache found;
  int missing = 0;
  for (size_t digits = kShortDigits; digits <= kAllDigits && missing < kMaxMissing; ++digits) {
    const std::filesystem::path path = folder / file_name(wanted, digits);
    Candidate candidate = look_at(path, wanted);
    missing = candidate.state == Candidate::State::Missing ? missing + 1 : 0;
    if (missing > 0) continue;
    if (candidate.state == Candidate::State::Foreign) continue;
    found.path = path;
    found.reason = candidate.reason;
    if (candidate.state == Candidate::State::Unusable) continue;
    try {
      found.file = decode(candidate.bytes, key, location_of(path), is_wanted);
      found.bytes = std::make_shared<const std::string>(std::move(candidate.bytes));
    } catch (const Error& error) {
      found.reason = error.what();
    }
    break;
  }
  return found;
}

SavedCache save_in_folder(const std::filesystem::path& folder, const CacheFile& file,
                          const UserKey* key, const MergeSections& merge) {
  const std::string unsafe = explain_unsafe_folder(folder);
  if (!unsafe.empty()) return {{}, unsafe};
  const Fingerprint wanted = file.fingerprint();
  size_t digits = kShortDigits;
  while (digits < kAllDigits &&
         look_at(folder / file_name(wanted, digits), wanted).state == Candidate::State::Foreign) {
    ++digits;
  }
  const std::filesystem::path path = folder / file_name(wanted, digits);
  return {path, save_in_file(path, file, key, merge)};
}

std::string save_in_file(const std::filesystem::path& path, const CacheFile& file,
                         const UserKey* key, const MergeSections& merge) {
  return replace_file(path, [&] {
    CacheFile merged{.ingredients = file.ingredients};
    const Candidate present = look_at(path, file.fingerprint());
    if (present.state == Candidate::State::Ours) {
      try {
        merged = decode(present.bytes, key, location_of(path));
      } catch (const Error&) {
        merged.sections.clear();  // damaged: discard everything
        merged.notes.clear();
      }
    }
    for (const Section& section : file.sections) {
      const Section* const there = merged.find(section.type, section.content, section.ingredients);
      merged.put(there == nullptr || !merge ? section : merge(*there, section));
    }
    // A file that was saved explicitly stays so.
    const bool is_saved = merged.note(kWrittenBy) == kBySaveCache;
    for (const Ingredient& note : file.notes) merged.set_note(note.name, note.value);
    if (is_saved) merged.set_note(kWrittenBy, kBySaveCache);
    drop_oldest(merged);
    return encode(merged, key);
  });
}

CacheFile read_cache_file(const std::filesystem::path& path, const UserKey* key) {
  FileText text = read_stored_file(path, kMaxFileBytes, Chosen::ByUser);
  if (!text.bytes) {
    throw Error(ErrorKind::InvalidArgument, location_of(path),
                text.refusal.empty()
                    ? "expected a file that save_cache() or bind() wrote, found none"
                    : "it is not used: " + text.refusal);
  }
  return decode(*text.bytes, key, location_of(path));
}

std::vector<double> read_gains(const std::filesystem::path& folder,
                               std::span<const Ingredient> machine) {
  std::vector<double> gains;
  for (const std::filesystem::path& path : list_folder(folder) | std::views::take(kMaxGains)) {
    const FileText text = read_stored_file(path, kMaxFileBytes);
    if (!text.bytes) continue;
    try {
      const CacheFile head = decode_head(*text.bytes, location_of(path));
      const auto common = std::ranges::mismatch(head.ingredients, machine);
      const std::string note = head.note(kGainNote);
      double gain = 0;
      const auto read = std::from_chars(note.data(), note.data() + note.size(), gain);
      const bool is_share = read.ec == std::errc() && gain >= 0 && gain < 1;
      if (common.in2 == machine.end() && is_share) gains.push_back(gain);
    } catch (const Error&) {
      continue;  // Damaged files count as missing.
    }
  }
  return gains;
}

bool is_automatic(std::span<const char> bytes) {
  try {
    return decode_head(bytes, "").note(kWrittenBy) == kByBind;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (is_cache_name(entry.path().filename().string())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tessera::cache
