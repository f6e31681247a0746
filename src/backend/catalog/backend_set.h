// The known backends, and the opened plug-ins among them.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/catalog/catalog.h"
#include "backend/catalog/library_version.h"
#include "backend/device.h"
#include "backend/plugin.h"
#include "base/files/file_stamp.h"
#include "base/threads/fork.h"
#include "tessera/device_storage.h"
#include "tessera/error.h"
#include "tessera/tessera.h"

namespace tessera {

// Why a backend cannot be used, and how to change that.
struct Unusable {
  BackendStatus status = BackendStatus::Usable;
  std::string reason;
  std::string remedy;  // "" if no remedy is known
};

// Both as a sentence: "its plug-in is missing; build it with ...".
std::string sentence_of(const Unusable& unusable);

// Whether users who write these mean the same backend of the catalog: case, '-' and '_' do not
// matter
// ("MyLib", "my-lib").
bool is_same_backend_name(std::string_view left, std::string_view right);

// One row of `tessera backends`.
struct BackendState {
  std::string name;  // the plug-in's file name if it could not be opened
  std::filesystem::path file;
  std::vector<std::string> aliases;
  std::shared_ptr<const Plugin> plugin;  // null: not usable, see `unusable`
  Unusable unusable;
};

// Thread-safe. Plug-ins are opened when first needed and stay open.
class BackendSet {
 public:
  // `folder` contains the plug-ins that were built or installed with this program; "" for none.
  // They are opened only if base/process/trusted_code.h trusts them or they are also added by path.
  BackendSet(std::span<const CatalogEntry> catalog, std::span<const AbsentBackend> absent,
             const std::filesystem::path& folder, std::shared_ptr<HostServices> services);

  // Adds a plug-in, or all "*.so" of a folder, to be opened when needed. A file that is called like
  // the plug-in of a backend of the catalog replaces it for later binds. Throws InvalidArgument if
  // there is no such file or folder.
  void add_path(const std::filesystem::path& path);
  // Opens a plug-in now. Throws Unsupported with the reason if it cannot be used.
  void load(const std::filesystem::path& library);

  // The plug-ins with these names or aliases, in this order, followed by the last of the catalog.
  // In names of the catalog, case, '-' and '_' do not matter ("MyLib", "my-lib"); a plug-in added
  // by path has the name that it gives itself. Without names: all usable plug-ins, those added by
  // path first. Throws InvalidArgument for an unknown name (listing the known ones), Unsupported
  // for a backend that cannot be used or that this version does not include.
  std::vector<std::shared_ptr<const Plugin>> choose(const std::vector<std::string>& names);
  // The names of these plug-ins, without opening those that are remembered.
  std::vector<std::string> choose_names(const std::vector<std::string>& names);
  // The plug-ins of choose() whose names are in `wanted`. Opens only these, and those about which
  // nothing is remembered. Skips plug-ins that can no longer be opened.
  std::vector<std::shared_ptr<const Plugin>> choose_some(const std::vector<std::string>& names,
                                                         const std::vector<std::string>& wanted);

  // The versions of the plug-ins of choose(), in the same order, without opening those that are
  // remembered.
  std::vector<LibraryVersion> choose_versions(const std::vector<std::string>& names);

  // As long as their files are unchanged, these plug-ins count as usable without being opened.
  void remember(const std::vector<RememberedPlugin>& usable);
  // All usable plug-ins of the catalog whose files have not changed recently.
  std::vector<RememberedPlugin> remembered() const;

  // The backend that `name` is an alias of; else `name`.
  std::string resolve_alias(const std::string& name) const;
  // Whether there are plug-ins that are not in the catalog, usable or not.
  bool has_third_party() const;
  // Plug-ins that are not in the catalog: models may use their ops.
  std::vector<std::shared_ptr<const Plugin>> third_party_plugins();

  // The device with this name that has memory of its own, such as "mylib:1". Opens the backend that
  // is called as its kind, else all. Throws InvalidArgument, listing all, if there is none, and
  // Unsupported if that backend cannot be used.
  Device device(const std::string& name);
  // The device that DLPack calls so; nullopt if there is none. Opens all backends.
  std::optional<Device> find_device(const DlpackDevice& called);

  // The states of all backends. Opens each.
  std::vector<BackendState> states();

 private:
  struct Entry {
    const CatalogEntry* known = nullptr;  // null: added by path
    std::filesystem::path file;
    bool is_named = false;  // named by the user, who vouches for it
    bool is_tried = false;
    std::optional<RememberedPlugin> remembered;  // as usable; need not be open
    std::shared_ptr<const Plugin> plugin;
    Unusable unusable;  // if opening was tried and failed
  };
  void open(Entry& entry);
  void open_all();
  Entry* find(const std::string& name);
  static std::string name_of(const Entry& entry) {
    return entry.plugin ? entry.plugin->name() : std::string(entry.known->name);
  }
  static bool is_lost(const Entry& entry);
  // Throws if there is none of this name, or if it cannot be used.
  Entry* usable(const std::string& name);
  std::vector<Entry*> choose_entries(const std::vector<std::string>& names);
  std::vector<std::string> known_names() const;
  // Unsupported for a backend that this version does not include; else InvalidArgument, listing all
  // names and the likeliest.
  Error unknown(const std::string& name) const;
  enum class From { OwnFolder, User };
  void add_files(const std::filesystem::path& path, From from);
  void add_file(const std::filesystem::path& file, From from);
  // Makes `file` the plug-in of the catalog's backend whose file is called so; false if there is
  // none.
  bool replace_known(const std::filesystem::path& file);

  std::span<const AbsentBackend> absent_;
  std::shared_ptr<HostServices> services_;
  mutable LongHeldMutex mutex_;
  std::vector<Entry> entries_;  // third-party plug-ins first, then the catalog's, in its order
};

}  // namespace tessera
