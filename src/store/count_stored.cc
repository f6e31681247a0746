#include "store/count_stored.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file_stamp.h"
#include "base/processor.h"
#include "cache/cache_folder.h"
#include "cache/pack_file.h"
#include "cache/user_folder.h"
#include "cache/user_key.h"

namespace tessera {
namespace {

constexpr const char* kKernels = "kernels";
constexpr const char* kPacks = "packs";

// The kind of a file, by its place and its contents.
struct Found {
  std::string kind;
  std::string backend;
  bool is_usable = true;
};

// The backend of "plug-in 'backend_mylib.so'" or "backend 'mylib'", as HostTable names the owners
// of blobs.
std::string backend_of_owner(const std::string& owner) {
  const size_t begin = owner.find('\'');
  const size_t end = owner.rfind('\'');
  if (begin == end) return owner;
  std::string name = owner.substr(begin + 1, end - begin - 1);
  if (name.ends_with(".so")) name.resize(name.size() - 3);
  return name.starts_with("backend_") ? name.substr(8) : name;
}

class Counter {
 public:
  Counter(const std::filesystem::path& key_folder, const IsIntact& is_intact)
      : key_(cache::find_key(key_folder)), is_intact_(is_intact) {}

  void add(const cache::KeptFile& file) {
    const Found found = identify(file.path);
    CacheKindDescription& kind = kinds_[{found.kind, found.backend}];
    const bool is_first = kind.files++ == 0;
    kind.bytes += file.bytes;
    kind.unusable += found.is_usable ? 0 : 1;
    kind.oldest_use_ns = is_first ? file.used_ns : std::min(kind.oldest_use_ns, file.used_ns);
    kind.newest_use_ns = std::max(kind.newest_use_ns, file.used_ns);
  }

  std::vector<CacheKindDescription> kinds() const {
    std::vector<CacheKindDescription> all;
    for (const auto& [names, kind] : kinds_) {
      all.push_back(kind);
      std::tie(all.back().kind, all.back().backend) = names;
    }
    return all;
  }

 private:
  Found identify(const std::filesystem::path& path) const {
    if (path.extension() == ".model") return {.kind = "models"};
    if (path.extension() != cache::kPacksEnding) {
      const bool is_shared = path.filename() == "costs";
      return {.kind = is_shared ? "prices" : "caches", .is_usable = is_intact_(path)};
    }
    const bool is_kernel = path.parent_path().parent_path().filename() == kKernels;
    const std::string kind = is_kernel ? kKernels : kPacks;
    if (!key_) return {.kind = kind, .is_usable = false};
    const cache::PackFile::Opened opened =
        cache::PackFile::open(path, processor_model(), *key_, std::nullopt);
    if (opened.file == nullptr) return {.kind = kind, .is_usable = false};
    return is_kernel ? identify_kernel(*opened.file) : Found{.kind = kind};
  }

  // A file has one kernel, "kernel;BACKEND;...", or one blob, "blob;BACKEND/...".
  static Found identify_kernel(cache::PackFile& file) {
    const std::vector<std::string> keys = file.keys();
    if (keys.size() != 1) return {.kind = kKernels, .is_usable = false};
    const std::string& key = keys.front();
    const bool is_blob = key.starts_with("blob;");
    const size_t begin = key.find(';') + 1;
    const size_t end = key.find(is_blob ? '/' : ';', begin);
    const std::string owner = key.substr(begin, end - begin);
    return {.kind = is_blob ? "blobs" : kKernels,
            .backend = is_blob ? backend_of_owner(owner) : owner,
            .is_usable = file.is_sound()};
  }

  std::optional<cache::UserKey> key_;
  const IsIntact& is_intact_;
  std::map<std::pair<std::string, std::string>, CacheKindDescription> kinds_;
};

}  // namespace

CacheFolderDescription count_stored(const std::filesystem::path& folder,
                                    const std::filesystem::path& key_folder,
                                    const IsIntact& is_intact) {
  std::error_code failure;
  const bool is_users = std::filesystem::exists(folder / "key", failure);
  const cache::FolderLimits& limits = is_users ? cache::kUserLimits : cache::kWorkingLimits;
  Counter counter(key_folder, is_intact);
  for (const cache::KeptFile& file : cache::list_kept_files(folder)) counter.add(file);
  const std::filesystem::path prices = folder / "costs";
  if (const std::optional<FileStamp> stamp = stamp_of(prices); is_users && stamp) {
    counter.add({prices, stamp->bytes, stamp->modified_ns});
  }
  return {folder, limits.files, limits.bytes, counter.kinds()};
}

}  // namespace tessera
