#include "backend/catalog/backend_set.h"

#include <algorithm>
#include <span>
#include <utility>

#include "backend/plugin_call.h"
#include "base/errors/likely_name.h"
#include "base/process/trusted_code.h"
#include "base/threads/fork.h"

namespace tessera {
namespace {

// Users spell library names as their authors do, like the package, or as in code.
std::string without_spelling(std::string_view name) {
  std::string letters;
  for (const char letter : name) {
    if (letter == '-' || letter == '_') continue;
    const bool is_upper = letter >= 'A' && letter <= 'Z';
    letters += is_upper ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return letters;
}

// `Entry` is an element of one of the catalog's lists.
template <class Entry>
bool is_called(const Entry& entry, const std::string& name) {
  const auto is_same = [&](std::string_view known) { return is_same_backend_name(known, name); };
  return is_same(entry.name) || std::any_of(entry.aliases.begin(), entry.aliases.end(), is_same);
}

template <class Entry>
void add_names(const Entry& entry, std::vector<std::string>& names) {
  names.emplace_back(entry.name);
  names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
}

// For a library of the catalog whose plug-in is not part of this build.
Unusable not_configured(const CatalogEntry& known) {
  const bool is_library_missing = known.fault == CatalogEntry::kLibraryMissing;
  return {
      is_library_missing ? BackendStatus::LibraryMissing : BackendStatus::NotBuilt,
      std::string(known.reason),
      is_library_missing
          ? "install it with " + std::string(known.install) + "; then build again with make demo"
          : "configure again without that option, then build again with make demo"};
}

Unusable no_plugin(const CatalogEntry& known, const std::filesystem::path& folder) {
  const std::string file = "its plug-in '" + std::string(known.file) + "' ";
  if (folder.empty()) {
    return {BackendStatus::NotBuilt,
            file + "was not found: no folder lib/tessera lies beside this program or library",
            "run the program from where it was built or installed, or name the folder of plug-ins "
            "in TESSERA_BACKEND_PATH"};
  }
  return {BackendStatus::NotBuilt, file + "is not in '" + folder.string() + "'",
          "build it: make demo builds everything, tools/build release tessera_backend_" +
              std::string(known.name) + " this plug-in alone"};
}

// For a plug-in that was found but is not trusted.
struct NotTrusted {
  std::string reason;
};

// For a plug-in that was found but could not be opened. The system's loader reports a missing
// library only by a message, not by a code.
Unusable not_opened(const CatalogEntry* known, const std::filesystem::path& file,
                    const Error& error) {
  const std::string reason = error.where() + ": " + error.message();
  if (reason.find("cannot open shared object file") == std::string::npos) {
    return {BackendStatus::Refused, reason, ""};
  }
  const std::string folder = "put its folder into LD_LIBRARY_PATH";
  if (known == nullptr) {
    return {BackendStatus::LibraryMissing, reason, "install the library, or " + folder};
  }
  // Plug-ins of the catalog search there first (tessera_library_folders() in CMake).
  const std::filesystem::path beside = file.parent_path() / known->name;
  return {BackendStatus::LibraryMissing, reason,
          "install it with " + std::string(known->install) +
              "; if it is installed elsewhere, link its libraries into '" + beside.string() +
              "', or " + folder};
}

bool is_as_it_was(const StampedFile& file) { return stamp_of(file.path) == file.stamp; }

// nullopt if one of its files changed so recently that a further change could have the same stamp.
std::optional<RememberedPlugin> stamped(const Plugin& plugin, int64_t now_ns) {
  RememberedPlugin remembered{.version = version_of(plugin)};
  const std::optional<FileStamp> stamp = stamp_of(plugin.file());
  if (!stamp || !is_reliable(*stamp, now_ns)) return std::nullopt;
  remembered.stamp = *stamp;
  for (const std::filesystem::path& file : plugin.libraries()) {
    const std::optional<FileStamp> of = stamp_of(file);
    if (!of || !is_reliable(*of, now_ns)) return std::nullopt;
    remembered.libraries.push_back({file, *of});
  }
  return remembered;
}

// The file to open for `file`: the target of its links, unless the user named it. Throws
// NotTrusted.
std::filesystem::path file_to_open(const std::filesystem::path& file, bool is_named) {
  if (is_named) return std::filesystem::absolute(file);
  const std::vector<uid_t> owners = trusted_owners();
  FoundCode found = look_at_code(file, owners);
  // The owner of the folder controls where its links lead.
  if (found.refusal.empty()) found.refusal = explain_untrusted_folder(file.parent_path(), owners);
  if (!found.refusal.empty()) throw NotTrusted{found.refusal};
  return found.path;
}

}  // namespace

LibraryVersion version_of(const Plugin& plugin) {
  LibraryVersion version{.backend = plugin.name()};
  const tessera_backend& abi = plugin.abi();
  for (const tessera_ingredient& ingredient :
       std::span(abi.ingredients, static_cast<size_t>(abi.ingredient_count))) {
    version.ingredients.push_back({ingredient.name, ingredient.value});
  }
  return version;
}

bool is_same_backend_name(std::string_view left, std::string_view right) {
  return without_spelling(left) == without_spelling(right);
}

std::string sentence_of(const Unusable& unusable) {
  return unusable.reason + (unusable.remedy.empty() ? "" : "; " + unusable.remedy);
}

BackendSet::BackendSet(std::span<const CatalogEntry> catalog, std::span<const AbsentBackend> absent,
                       const std::filesystem::path& folder, std::shared_ptr<HostServices> services)
    : absent_(absent), services_(std::move(services)) {
  for (const CatalogEntry& known : catalog) {
    Entry entry{.known = &known};
    if (!known.reason.empty()) {
      entry.is_tried = true;
      entry.unusable = not_configured(known);
    } else if (known.open == nullptr) {
      if (!folder.empty()) entry.file = folder / known.file;
      std::error_code ignored;
      if (folder.empty() || !std::filesystem::exists(entry.file, ignored)) {
        entry.is_tried = true;
        entry.unusable = no_plugin(known, folder);
      }
    }
    entries_.push_back(std::move(entry));
  }
  std::error_code ignored;
  if (!folder.empty() && std::filesystem::is_directory(folder, ignored)) {
    add_files(folder, From::OwnFolder);
  }
}

std::string BackendSet::resolve_alias(const std::string& name) const {
  const ForkSafeLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.known != nullptr && is_called(*entry.known, name))
      return std::string(entry.known->name);
  }
  return name;
}

void BackendSet::add_file(const std::filesystem::path& file, From from) {
  const bool is_named = from == From::User;
  for (Entry& entry : entries_) {
    std::error_code ignored;
    if (entry.file.empty() || !std::filesystem::equivalent(entry.file, file, ignored)) continue;
    // It may have been refused only because the user had not named it; so try again.
    if (is_named && !entry.is_named && entry.plugin == nullptr) entry.is_tried = false;
    entry.is_named = entry.is_named || is_named;
    return;
  }
  if (is_named && replace_known(file)) return;
  const auto first_known = std::find_if(entries_.begin(), entries_.end(),
                                        [](const Entry& entry) { return entry.known != nullptr; });
  entries_.insert(first_known, Entry{.file = file, .is_named = is_named});
}

bool BackendSet::replace_known(const std::filesystem::path& file) {
  for (Entry& entry : entries_) {
    if (entry.known == nullptr || entry.known->file.empty()) continue;
    if (file.filename() != std::filesystem::path(entry.known->file)) continue;
    entry = Entry{.known = entry.known, .file = file, .is_named = true};
    return true;
  }
  return false;
}

void BackendSet::add_path(const std::filesystem::path& path) {
  const ForkSafeLock lock(mutex_);
  add_files(path, From::User);
}

void BackendSet::add_files(const std::filesystem::path& path, From from) {
  std::error_code failure;
  if (std::filesystem::is_regular_file(path, failure)) {
    add_file(path, from);
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(path, failure)) {
    if (file.path().extension() == ".so") files.push_back(file.path());
  }
  // The plug-in folder beside the program may belong to somebody else and be unreadable; the
  // program must run anyway.
  if (failure && from == From::OwnFolder) return;
  if (failure) {
    throw Error(ErrorKind::InvalidArgument, "backend path '" + path.string() + "'",
                "expected a plug-in or a folder of plug-ins: " + failure.message());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) add_file(file, from);
}

void BackendSet::load(const std::filesystem::path& library) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(library, failure)) {
    throw Error(ErrorKind::InvalidArgument, "backend '" + library.string() + "'",
                "expected the file of a plug-in, found none");
  }
  const ForkSafeLock lock(mutex_);
  add_file(library, From::User);
  for (Entry& entry : entries_) {
    if (entry.file.empty() || !std::filesystem::equivalent(entry.file, library, failure)) continue;
    open(entry);
    if (!entry.plugin) {
      throw Error(ErrorKind::Unsupported, "backend '" + library.string() + "'",
                  sentence_of(entry.unusable));
    }
  }
}

void BackendSet::open(Entry& entry) {
  if (entry.is_tried) return;
  entry.is_tried = true;
  entry.remembered.reset();
  try {
    const std::string location =
        entry.known != nullptr ? "backend '" + std::string(entry.known->name) + "'" : "";
    entry.plugin = entry.known != nullptr && entry.known->open != nullptr
                       ? Plugin::open_linked(entry.known->open, location, services_)
                       : Plugin::open(file_to_open(entry.file, entry.is_named), services_);
  } catch (const NotTrusted& fault) {
    entry.unusable = {BackendStatus::Refused, fault.reason,
                      "name the file in TESSERA_BACKEND_PATH to use it all the same"};
    return;
  } catch (const Error& error) {
    entry.unusable = not_opened(entry.known, entry.file, error);
    return;
  }
  for (const Entry& other : entries_) {
    const bool is_taken =
        &other != &entry && other.plugin != nullptr && other.plugin->name() == entry.plugin->name();
    const bool is_reserved = entry.known == nullptr && other.known != nullptr &&
                             is_called(*other.known, entry.plugin->name());
    if (!is_taken && !is_reserved) continue;
    entry.unusable = {BackendStatus::Refused,
                      "another backend is called '" + entry.plugin->name() + "' already", ""};
    entry.plugin = nullptr;
    return;
  }
}

void BackendSet::open_all() {
  for (Entry& entry : entries_) open(entry);
}

BackendSet::Entry* BackendSet::find(const std::string& name) {
  for (Entry& entry : entries_) {
    if (entry.known != nullptr && is_called(*entry.known, name)) {
      if (!entry.remembered) open(entry);
      return &entry;
    }
  }
  for (Entry& entry : entries_) {
    if (entry.known != nullptr) continue;
    open(entry);
    if (entry.plugin != nullptr && entry.plugin->name() == name) return &entry;
  }
  return nullptr;
}

std::vector<std::string> BackendSet::known_names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.known == nullptr && entry.plugin == nullptr) continue;
    names.push_back(entry.known != nullptr ? std::string(entry.known->name) : entry.plugin->name());
  }
  return names;
}

Error BackendSet::unknown(const std::string& name) const {
  for (const AbsentBackend& known : absent_) {
    if (!is_called(known, name)) continue;
    return {ErrorKind::Unsupported, "backend '" + name + "'",
            "cannot be used: " + std::string(known.reason)};
  }
  const std::vector<std::string> names = known_names();
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  std::vector<std::string> likely = names;
  for (const Entry& entry : entries_) {
    if (entry.known != nullptr) add_names(*entry.known, likely);
  }
  for (const AbsentBackend& known : absent_) add_names(known, likely);
  return {
      ErrorKind::InvalidArgument, "backend '" + name + "'",
      "expected one of " + list + ", found no backend of this name" + did_you_mean(name, likely)};
}

bool BackendSet::is_lost(const Entry& entry) {
  return entry.plugin != nullptr && is_lost_by_fork(*entry.plugin);
}

BackendSet::Entry* BackendSet::usable(const std::string& name) {
  Entry* const entry = find(name);
  if (entry == nullptr) throw unknown(name);
  if (!entry->remembered && !entry->plugin) {
    throw Error(ErrorKind::Unsupported, "backend '" + name + "'",
                "cannot be used: " + sentence_of(entry->unusable));
  }
  if (is_lost(*entry)) {
    throw Error(ErrorKind::Unsupported, "backend '" + name + "'",
                "cannot be used in this process: when it was forked, another thread was in a call "
                "of the library; fork before, or leave the choice of backends to Tessera");
  }
  return entry;
}

// The usable entries, without duplicates.
std::vector<BackendSet::Entry*> BackendSet::choose_entries(const std::vector<std::string>& names) {
  std::vector<Entry*> chosen;
  const auto add = [&](Entry* entry) {
    const bool is_usable = entry->remembered || entry->plugin != nullptr;
    if (!is_usable || is_lost(*entry) ||
        std::find(chosen.begin(), chosen.end(), entry) != chosen.end())
      return;
    chosen.push_back(entry);
  };
  for (const std::string& name : names) {
    add(usable(name));
  }
  if (names.empty()) {
    const auto is_default = [](const Entry& entry) {
      return entry.known == nullptr || !entry.known->is_only_if_named;
    };
    for (Entry& entry : entries_) {
      if (is_default(entry) && !entry.remembered) open(entry);
    }
    for (Entry& entry : entries_) {
      if (is_default(entry)) add(&entry);
    }
  }
  open(entries_.back());
  add(&entries_.back());
  return chosen;
}

std::vector<std::shared_ptr<const Plugin>> BackendSet::choose(
    const std::vector<std::string>& names) {
  const ForkSafeLock lock(mutex_);
  // From here on, only what can be opened counts, not what is remembered.
  for (Entry* entry : choose_entries(names)) open(*entry);
  std::vector<std::shared_ptr<const Plugin>> chosen;
  for (const Entry* entry : choose_entries(names)) chosen.push_back(entry->plugin);
  return chosen;
}

std::vector<std::string> BackendSet::choose_names(const std::vector<std::string>& names) {
  const ForkSafeLock lock(mutex_);
  std::vector<std::string> chosen;
  for (const Entry* entry : choose_entries(names)) chosen.push_back(name_of(*entry));
  return chosen;
}

std::vector<std::shared_ptr<const Plugin>> BackendSet::choose_some(
    const std::vector<std::string>& names, const std::vector<std::string>& wanted) {
  const ForkSafeLock lock(mutex_);
  std::vector<std::shared_ptr<const Plugin>> chosen;
  for (Entry* entry : choose_entries(names)) {
    if (std::find(wanted.begin(), wanted.end(), name_of(*entry)) == wanted.end()) continue;
    open(*entry);
    if (entry->plugin != nullptr) chosen.push_back(entry->plugin);
  }
  return chosen;
}

std::vector<LibraryVersion> BackendSet::choose_versions(const std::vector<std::string>& names) {
  const ForkSafeLock lock(mutex_);
  std::vector<LibraryVersion> versions;
  for (const Entry* entry : choose_entries(names)) {
    versions.push_back(entry->plugin ? version_of(*entry->plugin) : entry->remembered->version);
  }
  return versions;
}

void BackendSet::remember(const std::vector<RememberedPlugin>& usable) {
  const ForkSafeLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.known == nullptr || entry.is_tried || entry.file.empty()) continue;
    const std::optional<FileStamp> stamp = stamp_of(entry.file);
    const auto found = std::ranges::find_if(usable, [&](const RememberedPlugin& plugin) {
      return plugin.stamp == stamp && std::ranges::all_of(plugin.libraries, is_as_it_was);
    });
    entry.remembered = found == usable.end() ? std::nullopt : std::optional(*found);
  }
}

std::vector<RememberedPlugin> BackendSet::remembered() const {
  const ForkSafeLock lock(mutex_);
  const int64_t now_ns = system_time_ns();
  std::vector<RememberedPlugin> all;
  for (const Entry& entry : entries_) {
    if (entry.known == nullptr || entry.file.empty()) continue;
    if (entry.remembered) {
      all.push_back(*entry.remembered);
    } else if (entry.plugin != nullptr) {
      std::optional<RememberedPlugin> plugin = stamped(*entry.plugin, now_ns);
      if (plugin) all.push_back(*std::move(plugin));
    }
  }
  return all;
}

bool BackendSet::has_third_party() const {
  const ForkSafeLock lock(mutex_);
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.known == nullptr; });
}

std::vector<std::shared_ptr<const Plugin>> BackendSet::third_party_plugins() {
  const ForkSafeLock lock(mutex_);
  std::vector<std::shared_ptr<const Plugin>> found;
  for (Entry& entry : entries_) {
    if (entry.known != nullptr) continue;
    open(entry);
    if (entry.plugin) found.push_back(entry.plugin);
  }
  return found;
}

Device BackendSet::device(const std::string& name) {
  const ForkSafeLock lock(mutex_);
  std::vector<std::string> known;
  const auto find_in = [&](const std::shared_ptr<const Plugin>& plugin) -> std::optional<Device> {
    for (int32_t index = 0; plugin != nullptr && index < plugin->abi().device_count; ++index) {
      if (interface_of(plugin->abi(), index) == nullptr) continue;
      known.push_back(device_name(plugin->abi().devices[index]));
      if (known.back() == name) return Device(plugin, index);
    }
    return std::nullopt;
  };
  Entry* const named = find(name.substr(0, name.find(':')));
  if (named != nullptr) {
    named->remembered.reset();
    open(*named);
    if (named->plugin == nullptr) {
      throw Error(ErrorKind::Unsupported, "device '" + name + "'",
                  "its backend cannot be used: " + sentence_of(named->unusable));
    }
    if (std::optional<Device> device = find_in(named->plugin)) return *std::move(device);
  }
  known.clear();
  open_all();
  for (const Entry& entry : entries_) {
    if (std::optional<Device> device = find_in(entry.plugin)) return *std::move(device);
  }
  std::string list;
  for (const std::string& device : known)
    list += (list.empty() ? "one of '" : ", '") + device + "'";
  throw Error(ErrorKind::InvalidArgument, "device '" + name + "'",
              "expected a device that has memory of its own (" +
                  (list.empty() ? "no backend has one" : list) + ")" + did_you_mean(name, known));
}

std::optional<Device> BackendSet::find_device(const DlpackDevice& called) {
  const ForkSafeLock lock(mutex_);
  open_all();
  for (const Entry& entry : entries_) {
    for (int32_t index = 0; entry.plugin != nullptr && index < entry.plugin->abi().device_count;
         ++index) {
      const tessera_device_interface* const abi = interface_of(entry.plugin->abi(), index);
      if (abi == nullptr || abi->dlpack_type == 0) continue;
      if (DlpackDevice{abi->dlpack_type, abi->dlpack_id} == called)
        return Device(entry.plugin, index);
    }
  }
  return std::nullopt;
}

std::vector<BackendState> BackendSet::states() {
  const ForkSafeLock lock(mutex_);
  open_all();
  std::vector<BackendState> states;
  for (const Entry& entry : entries_) {
    BackendState state{.file = entry.file, .plugin = entry.plugin, .unusable = entry.unusable};
    state.name = entry.plugin ? entry.plugin->name() : entry.file.filename().string();
    if (entry.known != nullptr) {
      state.name = entry.known->name;
      state.aliases.assign(entry.known->aliases.begin(), entry.known->aliases.end());
    }
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace tessera
