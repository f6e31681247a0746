// save_cache(), load_cache(), and the descriptions of caches.
#include "tessera/cache.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "api/options/backends_state.h"
#include "api/options/bind_options.h"
#include "api/options/cache_ingredients.h"
#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "backend/catalog/catalog.h"
#include "base/errors/likely_name.h"
#include "base/files/file_stamp.h"
#include "base/files/writable_path.h"
#include "base/threads/parallel.h"
#include "cache/cache_folder.h"
#include "cache/origin.h"
#include "cache/stored_file.h"
#include "cache/user_key.h"
#include "price/cost_sections.h"
#include "store/explain_cache.h"
#include "store/nested_cache.h"

namespace tessera {
namespace {

constexpr const char* kAllTypes = "all";

std::string cache_location(const std::filesystem::path& path) {
  return "cache '" + path.string() + "'";
}

std::vector<std::string> type_names() {
  std::vector<std::string> names = {kAllTypes, tuning::kPlanSection};
  for (const CatalogEntry& entry : catalog()) names.emplace_back(entry.name);
  for (const AbsentBackend& absent : absent_backends()) names.emplace_back(absent.name);
  return names;
}

std::string known_types() {
  std::string list;
  for (const std::string& name : type_names()) list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

std::vector<std::string> type_names_and_aliases() {
  std::vector<std::string> names = type_names();
  const auto add = [&](const auto& entry) {
    names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
  };
  for (const CatalogEntry& entry : catalog()) add(entry);
  for (const AbsentBackend& absent : absent_backends()) add(absent);
  return names;
}

// Returns the type of sections for an argument `type`; "" for all. Throws InvalidArgument for an
// unknown type, Unsupported for a backend that this machine or this version does not have.
std::string section_type(const std::string& type, BackendSet& set) {
  if (type == kAllTypes) return "";
  if (type == tuning::kPlanSection) return type;
  try {
    set.choose({type});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Unsupported) {
      throw Error(ErrorKind::Unsupported, "type '" + type + "'", error.message());
    }
    if (error.kind() != ErrorKind::InvalidArgument) throw;
    throw Error(ErrorKind::InvalidArgument, "type '" + type + "'",
                "expected one of " + known_types() + " or an alias of one, found no such type" +
                    did_you_mean(type, type_names_and_aliases()));
  }
  return set.resolve_alias(type);
}

// Returns sections of packs and kernels, which are kept in separate files, of a backend or ("") of
// all.
using StoredSections = std::function<std::vector<cache::Section>(const std::string& backend)>;

// Throws InvalidArgument for a file that cannot be written, or that is not a cache.
void check_may_be_written(const std::filesystem::path& path) {
  const std::string reason = explain_unwritable_file(path);
  if (!reason.empty()) throw Error(ErrorKind::InvalidArgument, cache_location(path), reason);
  const cache::FileText present =
      cache::read_stored_file(path, cache::kMaxFileBytes, cache::Chosen::ByUser);
  const bool is_foreign =
      present.bytes && !present.bytes->empty() && !cache::is_cache(*present.bytes);
  if (is_foreign || !present.refusal.empty()) {
    throw Error(ErrorKind::InvalidArgument, cache_location(path),
                "expected the name of a new file or of a cache, found " +
                    (is_foreign ? "a file that is not a cache"
                                : "a file that cannot be used: " + present.refusal));
  }
}

void save(const CacheRecord* record, const CacheRecords& nested, const std::filesystem::path& path,
          const std::string& type, BackendSet& set, const std::string& model_name,
          const StoredSections& stored) {
  const std::string wanted = section_type(type, set);
  if (record == nullptr) {
    throw Error(ErrorKind::InvalidArgument, cache_location(path),
                "there is nothing to save yet: call bind(optimize=true) first");
  }
  cache::CacheFile file = cache_file_of(*record, wanted);
  file.notes = {{cache::kWrittenBy, cache::kBySaveCache}, {cache::kModelNote, model_name}};
  if (wanted != tuning::kPlanSection) {
    for (cache::Section& section : stored(wanted)) {
      file.put(std::move(section));
    }
  }
  if (file.sections.empty()) {
    throw Error(
        ErrorKind::InvalidArgument, cache_location(path),
        "expected something to save of '" + type + "', found nothing: " +
            (wanted == tuning::kPlanSection ? "no plan was found"
                                            : "none of its kernels was measured for this model"));
  }
  check_may_be_written(path);
  const std::optional<cache::UserKey> key = cache::make_key(user_cache_folder());
  add_nested_caches(nested, wanted, key ? &*key : nullptr, file);
  const std::string failure = cache::save_in_file(path, file, key ? &*key : nullptr);
  if (failure.empty()) return;
  throw Error(ErrorKind::DeviceFailed, cache_location(path), "cannot be written: " + failure);
}

// Reads a file. Throws InvalidArgument if it is not of this model and this machine.
LoadedCache read_given(const std::filesystem::path& path, const std::string& type, BackendSet& set,
                       const std::vector<cache::Ingredient>& model) {
  LoadedCache given{.path = path, .type = section_type(type, set)};
  const std::optional<cache::UserKey> key = cache::find_key(user_cache_folder());
  given.file = cache::read_cache_file(path, key ? &*key : nullptr);
  const std::string difference = cache::explain_difference(given.file.ingredients, model);
  if (!difference.empty()) {
    throw Error(ErrorKind::InvalidArgument, cache_location(path), "it does not fit: " + difference);
  }
  // Finds damage behind correct checksums now, before anything is changed.
  std::vector<tuning::PricedLibrary> libraries = tuning::priced_libraries(set.choose({}));
  add_core_revision(libraries);
  tuning::take_costs(given.file, given.type, libraries, cache_location(path));
  tuning::check_plans(given.file, cache_location(path));
  check_nested_caches(given.file, cache_location(path));
  return given;
}

// Throws InvalidArgument if the file has plans, but none for this binding: a caller who loads a
// file into one executor expects its plan.
void check_has_plan(const LoadedCache& given, const tuning::Binding& binding) {
  if (!given.type.empty() && given.type != tuning::kPlanSection) return;
  const std::string location = cache_location(given.path);
  if (tuning::take_plan(given.file, binding, {}, location).plan) return;
  const std::string nearest = tuning::explain_nearest_plan(given.file, binding);
  if (nearest.empty()) return;
  throw Error(ErrorKind::InvalidArgument, location, "it does not fit: " + nearest);
}

}  // namespace

void Model::save_cache(const std::filesystem::path& file, const std::string& type,
                       bool include_packs) const {
  save(state_->stored.newest_record().get(), state_->stored.newest_nested_records(), file, type,
       state_->backends.state_->set, state_->loaded.source().file.filename().string(),
       [&](const std::string& backend) { return state_->stored.sections(backend, include_packs); });
}

void Model::load_cache(const std::filesystem::path& file, const std::string& type) {
  LoadedCache given =
      read_given(file, type, state_->backends.state_->set, state_->loaded.ingredients());
  state_->stored.take_packs(given);
  state_->stored.add_cache(std::move(given));
}

CacheReport Model::cache_report() const {
  const std::shared_ptr<const CacheRecord> newest = state_->stored.newest_record();
  return newest ? newest->contents().report : CacheReport{};
}

CacheReport Model::find_cache(const BindOptions& options) const {
  const ThreadPool pool(options.threads);
  return state_->backends.state_->store.describe(
      state_->stored.request(options, {}, pool.threads()), state_->log);
}

void Executor::save_cache(const std::filesystem::path& file, const std::string& type,
                          bool include_packs) const {
  Model::State& model = *state().model;
  save(state().cache.get(), nested_records(state().plan().runner->built()), file, type,
       model.backends.state_->set, model.loaded.source().file.filename().string(),
       [&](const std::string& backend) { return model.stored.sections(backend, include_packs); });
}

void Executor::load_cache(const std::filesystem::path& file, const std::string& type) {
  BackendSet& set = state().model->backends.state_->set;
  BindOptions options = state().options;
  options.optimize = Optimize::Now;
  const LoadedCache given = read_given(file, type, set, state().model->loaded.ingredients());
  check_has_plan(given, state().model->stored.request(options, {}, threads()).binding);
  state().model->stored.take_packs(given);
  *this = state().model->bind(options, {given});
}

CacheReport Executor::cache_report() const {
  return state().cache ? state().cache->contents().report : CacheReport{};
}

CacheFileDescription describe_cache(const std::filesystem::path& file) {
  const std::optional<cache::UserKey> key = cache::find_key(user_cache_folder());
  const cache::CacheFile read = cache::read_cache_file(file, key ? &*key : nullptr);
  CacheFileDescription description{.file = file,
                                   .fingerprint = text(read.fingerprint()),
                                   .model = read.note(cache::kModelNote),
                                   .written_by = read.note(cache::kWrittenBy),
                                   .ingredients = describe(read.ingredients)};
  const std::optional<FileStamp> stamp = stamp_of(file);
  if (stamp) {
    description.bytes = stamp->bytes;
    description.used_ns = stamp->modified_ns;
  }
  for (const cache::Section& section : read.sections) {
    description.sections.push_back({.type = section.type,
                                    .content = section.content,
                                    .ingredients = describe(section.ingredients),
                                    .origin = cache::origin_text(section.origin),
                                    .seconds = section.seconds,
                                    .bytes = static_cast<int64_t>(section.bytes.size()),
                                    .made_ns = section.made_ns});
  }
  return description;
}

CacheFolderDescription describe_cache_folder(const std::filesystem::path& folder) {
  return count_stored(folder, user_cache_folder(), [](const std::filesystem::path& file) {
    try {
      cache::read_cache_file(file, nullptr);
      return true;
    } catch (const Error&) {
      return false;
    }
  });
}

std::vector<std::filesystem::path> list_caches(const std::filesystem::path& folder) {
  return cache::list_folder(folder);
}

}  // namespace tessera
