// save_cache(), load_cache() and what they and the command line tell of caches.
#include "tessera/cache.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "api/backends_state.h"
#include "api/bind_options.h"
#include "api/cache_ingredients.h"
#include "api/executor_state.h"
#include "api/model_state.h"
#include "backend/catalog.h"
#include "base/likely_name.h"
#include "base/parallel.h"
#include "base/writable_path.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "tune/cost_sections.h"

namespace tessera {
namespace {

constexpr const char* kAllTypes = "all";

std::string place_of(const std::filesystem::path& path) { return "cache '" + path.string() + "'"; }

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

// The type of sections that is meant, "" for all. Throws InvalidArgument for one that nobody knows,
// Unsupported for a backend that this machine or this version does not have.
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

// The type and content of a section of packs.
constexpr const char* kPacks = "packs";

void save(const CacheRecord* record, const std::filesystem::path& path, const std::string& type,
          BackendSet& set, std::optional<std::string> packs) {
  const std::string wanted = section_type(type, set);
  if (record == nullptr) {
    throw Error(ErrorKind::InvalidArgument, place_of(path),
                "there is nothing to save yet: call bind(optimize=true) first");
  }
  const CacheRecord::Contents& contents = record->contents();
  cache::CacheFile file{.ingredients = record->ingredients(),
                        .sections = tuning::to_sections(contents.found, contents.libraries)};
  if (!wanted.empty()) {
    std::erase_if(file.sections,
                  [&](const cache::Section& section) { return section.type != wanted; });
  }
  if (packs) {
    file.sections.push_back({.type = kPacks, .content = kPacks, .bytes = *std::move(packs)});
  }
  const std::string reason = explain_unwritable_file(path);
  if (!reason.empty()) throw Error(ErrorKind::InvalidArgument, place_of(path), reason);
  const cache::FileText present = cache::read_stored_file(path, cache::kMostFileBytes);
  const bool is_foreign =
      present.bytes && !present.bytes->empty() && !cache::is_cache(*present.bytes);
  if (is_foreign || !present.refusal.empty()) {
    throw Error(ErrorKind::InvalidArgument, place_of(path),
                "expected the name of a new file or of a cache, found a file that is none" +
                    (is_foreign ? "" : ": " + present.refusal));
  }
  const std::string failure = cache::save_in_file(path, file, /*key=*/nullptr);
  if (failure.empty()) return;
  throw Error(ErrorKind::DeviceFailed, place_of(path), "cannot be written: " + failure);
}

// The file, which fits as far as `ingredients` tell.
GivenCache read_given(const std::filesystem::path& path, const std::string& type, BackendSet& set,
                      const std::vector<cache::Ingredient>& ingredients) {
  GivenCache given{.path = path, .type = section_type(type, set)};
  given.file = cache::read_cache_file(path, /*key=*/nullptr);
  std::vector<cache::Ingredient> there;
  for (const cache::Ingredient& ingredient : given.file.ingredients) {
    const bool counts =
        std::any_of(ingredients.begin(), ingredients.end(),
                    [&](const cache::Ingredient& known) { return known.name == ingredient.name; });
    if (counts) there.push_back(ingredient);
  }
  const std::string difference = cache::explain_difference(there, ingredients);
  if (!difference.empty()) {
    throw Error(ErrorKind::InvalidArgument, place_of(path), "it does not fit: " + difference);
  }
  // What is damaged behind right checksums is found now, while all is as it was.
  tuning::take_sections(given.file, given.type, tuning::priced_libraries(set.choose({})),
                        place_of(path));
  return given;
}

}  // namespace

std::optional<std::string> Model::State::encoded_packs() {
  const std::lock_guard lock(mutex);
  std::optional<std::string> bytes;
  if (warm_start) bytes = warm_start->encode_packs(loaded, packs);
  if (!bytes) log.warn("the packs are not saved: there is no folder of the user's with a key");
  return bytes;
}

void Model::State::take_packs(const GivenCache& given) {
  const cache::Section* const section = given.file.find(kPacks, kPacks);
  if (section == nullptr || !given.type.empty()) return;
  const std::string reason =
      warm_start ? warm_start->add_packs(section->bytes, given.path) : "this model keeps no index";
  if (!reason.empty()) log.warn(reason);
}

void Model::save_cache(const std::filesystem::path& file, const std::string& type,
                       bool include_packs) const {
  std::shared_ptr<const CacheRecord> newest;
  {
    const std::lock_guard lock(state_->mutex);
    newest = state_->newest_cache;
  }
  save(newest.get(), file, type, state_->backends.state_->set,
       newest && include_packs ? state_->encoded_packs() : std::nullopt);
}

void Model::load_cache(const std::filesystem::path& file, const std::string& type) {
  std::vector<cache::Ingredient> ingredients;
  {
    const std::lock_guard lock(state_->mutex);
    ingredients = model_ingredients(state_->loaded_structure());
  }
  GivenCache given = read_given(file, type, state_->backends.state_->set, ingredients);
  state_->take_packs(given);
  const std::lock_guard lock(state_->mutex);
  state_->given_caches.push_back(std::move(given));
}

CacheReport Model::cache_report() const {
  std::shared_ptr<const CacheRecord> newest;
  {
    const std::lock_guard lock(state_->mutex);
    newest = state_->newest_cache;
  }
  return newest ? newest->contents().report : CacheReport{};
}

CacheReport Model::find_cache(const BindOptions& options) const {
  const ThreadPool pool(options.threads);
  return BindCache(state_->cache_question(options, {}, pool.threads()),
                   state_->backends.state_->plans, state_->log)
      .find();
}

void Executor::save_cache(const std::filesystem::path& file, const std::string& type,
                          bool include_packs) const {
  save(state_->cache.get(), file, type, state_->model->backends.state_->set,
       state_->cache && include_packs ? state_->model->encoded_packs() : std::nullopt);
}

void Executor::load_cache(const std::filesystem::path& file, const std::string& type) {
  BackendSet& set = state_->model->backends.state_->set;
  BindOptions options = state_->options;
  options.optimize = true;
  const GivenCache given =
      read_given(file, type, set, state_->model->ingredients(options, threads()));
  state_->model->take_packs(given);
  *this = state_->model->bind(options, {given});
}

const CacheReport& Executor::cache_report() const {
  static const CacheReport kNone;
  return state_->cache ? state_->cache->contents().report : kNone;
}

CacheFileDescription describe_cache(const std::filesystem::path& file) {
  const cache::CacheFile read = cache::read_cache_file(file, /*key=*/nullptr);
  CacheFileDescription description{.file = file,
                                   .fingerprint = text(read.fingerprint()),
                                   .ingredients = describe(read.ingredients)};
  std::error_code failure;
  const auto bytes = std::filesystem::file_size(file, failure);
  if (!failure) description.bytes = static_cast<int64_t>(bytes);
  const bool has_plan = read.find(tuning::kPlanSection, tuning::kCostsContent) != nullptr;
  for (const cache::Section& section : read.sections) {
    // What was interrupted once has been found since.
    if (has_plan && section.content == tuning::kInterruptedContent) continue;
    description.sections.push_back({.type = section.type,
                                    .content = section.content,
                                    .ingredients = describe(section.ingredients),
                                    .seconds = section.seconds,
                                    .bytes = static_cast<int64_t>(section.bytes.size())});
  }
  return description;
}

std::vector<std::filesystem::path> list_caches(const std::filesystem::path& folder) {
  return cache::list_folder(folder);
}

}  // namespace tessera
