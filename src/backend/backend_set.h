// Which backends there are, and the opened plug-ins among them.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/catalog.h"
#include "backend/library_version.h"
#include "backend/plugin.h"
#include "base/file_stamp.h"
#include "tessera/error.h"
#include "tessera/tessera.h"

namespace tessera {

// Why a backend cannot be used, and what to do about it.
struct Unusable {
  BackendStatus status = BackendStatus::Usable;
  std::string reason;
  std::string remedy;  // "" where nothing is known that helps
};

// The same in a sentence: "its plug-in is missing; build it with ...".
std::string sentence_of(const Unusable& unusable);

// One line of `tessera backends`.
struct BackendState {
  std::string name;  // a plug-in's file name where it could not be opened
  std::filesystem::path file;
  std::vector<std::string> aliases;
  std::shared_ptr<const Plugin> plugin;  // null: not usable, `unusable` says why
  Unusable unusable;
};

// Safe from any thread. Plug-ins are opened when first needed and stay open.
class BackendSet {
 public:
  // `folder` holds the plug-ins that were built or installed with this program; "" for none. They
  // are opened only where base/trusted_code.h trusts them, unless they are added by path too.
  BackendSet(std::span<const CatalogEntry> catalog, std::span<const AbsentBackend> absent,
             const std::filesystem::path& folder, std::shared_ptr<HostServices> services);

  // A plug-in, or all "*.so" of a folder, opened when needed. Throws InvalidArgument where nothing
  // is there.
  void add_path(const std::filesystem::path& path);
  // Opens one now, throwing Unsupported with the reason where it cannot be used.
  void load(const std::filesystem::path& library);

  // The plug-ins of these names or aliases, in this order, and the last of the catalog behind them.
  // Upper and lower case, '-' and '_' make no difference in names of the catalog ("MyLib",
  // "my-lib"); a plug-in added by path is called as it calls itself. No names: all that can be
  // used, those added by path first. Throws InvalidArgument for a name that nobody has (listing the
  // known ones), Unsupported for one that cannot be used or that this version does not have.
  std::vector<std::shared_ptr<const Plugin>> choose(const std::vector<std::string>& names);
  // The names of these. Plug-ins that are remembered are not opened for that.
  std::vector<std::string> choose_names(const std::vector<std::string>& names);
  // Of the plug-ins that choose() gives those that are called as in `wanted`: no others are opened
  // but those that nothing is remembered of. One that can no longer be opened is left out.
  std::vector<std::shared_ptr<const Plugin>> choose_some(const std::vector<std::string>& names,
                                                         const std::vector<std::string>& wanted);

  // What those that choose() gives say of their versions, in the same order. Plug-ins that are
  // remembered are not opened for that.
  std::vector<LibraryVersion> choose_versions(const std::vector<std::string>& names);

  // As long as their files are as they were, they count as usable without being opened.
  void remember(const std::vector<RememberedPlugin>& usable);
  // Of the catalog's all that are usable and whose files had not changed for a while.
  std::vector<RememberedPlugin> remembered() const;

  // The name of the backend that `name` is an alias of; else `name`.
  std::string resolve_alias(const std::string& name) const;
  // Those that are not in the catalog: the ones whose ops a model may use.
  std::vector<std::shared_ptr<const Plugin>> strangers();

  // All of them, opened to see.
  std::vector<BackendState> states();

 private:
  struct Entry {
    const CatalogEntry* known = nullptr;  // null: added by path
    std::filesystem::path file;
    bool is_named = false;  // by the user, who answers for it
    bool is_tried = false;
    std::optional<RememberedPlugin> remembered;  // that it is usable; it need not be open
    std::shared_ptr<const Plugin> plugin;
    Unusable unusable;  // of one that was tried and has no plug-in
  };
  void open(Entry& entry);
  void open_all();
  Entry* find(const std::string& name);
  static std::string name_of(const Entry& entry) {
    return entry.plugin ? entry.plugin->name() : std::string(entry.known->name);
  }
  std::vector<Entry*> choose_entries(const std::vector<std::string>& names);
  std::vector<std::string> known_names() const;
  // Unsupported for one that this version does not have; else InvalidArgument, with all that there
  // are and the likely one.
  Error unknown(const std::string& name) const;
  enum class From { OwnFolder, User };
  void add_files(const std::filesystem::path& path, From from);
  void add_file(const std::filesystem::path& file, From from);

  std::span<const AbsentBackend> absent_;
  std::shared_ptr<HostServices> services_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // strangers first, then the catalog's, in its order
};

}  // namespace tessera
