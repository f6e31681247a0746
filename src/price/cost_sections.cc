#include "price/cost_sections.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/files/file_stamp.h"
#include "cache/origin.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

double seconds_of(const std::optional<Timing>& timing) {
  return timing ? timing->seconds * timing->rounds : 0;
}

CostTable part_of(const CostTable& costs, const std::string& backend) {
  CostTable part{.machine = costs.machine};
  for (const auto& [key, cost] : costs.kernels) {
    if (key.candidate.backend == backend) part.kernels.emplace(key, cost);
  }
  for (const auto& [key, cost] : costs.conversions) {
    if (key.backend == backend) part.conversions.emplace(key, cost);
  }
  return part;
}

// The key, in a plan's section, of the plan that runs until the kernels are built.
constexpr const char* kStartupPlanGraph = "until built";

// Takes the entries of `part`; all must belong to the current version of the library.
void take(const CostTable& part, cache::Origin origin, const PricedLibrary& library,
          const std::string& location, CostTable& costs) {
  const auto check = [&](const std::string& backend) {
    if (backend == library.backend) return;
    throw Error(ErrorKind::Corrupt, location,
                "expected prices of '" + library.backend + "', found one of '" + backend + "'");
  };
  for (const auto& [stored, cost] : part.kernels) {
    check(stored.candidate.backend);
    CostKey key = stored;
    key.ingredients = library.ingredients;
    Cost& taken = costs.kernels[std::move(key)] = cost;
    taken.is_verified_here = cost.is_verified_here && cache::trusts_results(origin);
  }
  for (const auto& [stored, cost] : part.conversions) {
    check(stored.backend);
    ConversionCostKey key = stored;
    key.ingredients = library.ingredients;
    costs.conversions[std::move(key)] = cost;
  }
}

KnownPlan read_plan(const cache::Section& section, const std::string& location) {
  CostTable table = read_cost_table(section.bytes, location);
  auto found = table.plans.extract(PlanKey{});
  auto startup_plan = table.plans.extract(PlanKey{.graph = kStartupPlanGraph});
  if (found.empty() || !table.plans.empty()) {
    throw Error(ErrorKind::Corrupt, location,
                "expected a plan, and at most one more to run until it is built, found others");
  }
  KnownPlan plan = std::move(found.mapped());
  if (!startup_plan.empty()) plan.startup_plan.push_back(std::move(startup_plan.mapped()));
  return plan;
}

// Independent of the locale.
std::string decimal_digits(double number) {
  std::array<char, 64> text{};
  const auto [end, failure] =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, 3);
  return failure == std::errc() ? std::string(text.data(), end) : "0";
}

// nullopt if the section is malformed.
std::optional<double> interrupted_seconds_of(const cache::Section& section) {
  double seconds = 0;
  const char* const end = section.bytes.data() + section.bytes.size();
  const auto [read, failure] = std::from_chars(section.bytes.data(), end, seconds);
  const bool is_number = failure == std::errc() && read == end && std::isfinite(seconds);
  return is_number && seconds >= 0 ? std::optional(seconds) : std::nullopt;
}

std::span<const cache::Ingredient> binding_part(const cache::Section& section,
                                                const Binding& binding) {
  return std::span(section.ingredients).first(std::min(binding.size(), section.ingredients.size()));
}

std::span<const cache::Ingredient> version_part(const cache::Section& section,
                                                const Binding& binding) {
  return std::span(section.ingredients).subspan(binding_part(section, binding).size());
}

// Whether `left` is preferred to `right`, both for one binding and equally suitable: trusted ones
// first, then newer ones.
bool is_better(const cache::Section& left, const cache::Section& right) {
  const bool is_ours = cache::trusts_results(left.origin);
  if (is_ours != cache::trusts_results(right.origin)) return is_ours;
  return left.made_ns > right.made_ns;
}

std::vector<cache::Ingredient> fully_measured_key(const Binding& binding,
                                                  const PricedLibrary& library) {
  std::vector<cache::Ingredient> key = binding;
  key.insert(key.end(), library.stable.begin(), library.stable.end());
  return key;
}

std::string location_of(const cache::Section& section, const std::string& file) {
  return file + ", section '" + section.type + "'";
}

}  // namespace

double seconds_to_measure(const CostTable& table) {
  double seconds = 0;
  for (const auto& [key, cost] : table.kernels) {
    seconds += cost.build_seconds + seconds_of(cost.cold) + seconds_of(cost.warm) +
               seconds_of(cost.in_context);
  }
  for (const auto& [key, cost] : table.conversions) {
    seconds += cost.timing.seconds * cost.timing.rounds;
  }
  return seconds;
}

std::string first_two_numbers(const std::string& version) {
  const size_t first = version.find('.');
  if (first == std::string::npos) return version;
  return version.substr(0, version.find_first_not_of("0123456789", first + 1));
}

std::vector<PricedLibrary> priced_libraries(const std::vector<LibraryVersion>& versions) {
  std::vector<PricedLibrary> libraries;
  for (const LibraryVersion& version : versions) {
    PricedLibrary& library = libraries.emplace_back(PricedLibrary{.backend = version.backend});
    for (const auto& [name, value] : version.ingredients) {
      if (name == "commit") continue;
      library.stable.push_back({name, name == "version" ? first_two_numbers(value) : value});
    }
  }
  return libraries;
}

std::vector<PricedLibrary> priced_libraries(
    const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  std::vector<LibraryVersion> versions;
  for (const std::shared_ptr<const Plugin>& plugin : plugins) {
    versions.push_back(version_of(*plugin));
  }
  std::vector<PricedLibrary> libraries = priced_libraries(versions);
  for (size_t index = 0; index < plugins.size(); ++index) {
    libraries[index].ingredients = plugins[index]->ingredients();
  }
  return libraries;
}

std::vector<cache::Ingredient> versions_in_key(const std::vector<PricedLibrary>& libraries) {
  std::vector<cache::Ingredient> versions;
  for (const PricedLibrary& library : libraries) {
    std::string all;
    for (const auto& [name, value] : library.stable) {
      if (name == kCoreRevisionName) {
        if (versions.empty() || versions.front().name != name)
          versions.insert(versions.begin(), {name, value});
        continue;
      }
      all += (all.empty() ? "" : ", ") + name + " " + value;
    }
    versions.push_back({library.backend, all});
  }
  return versions;
}

namespace {

// Adds a section for each library that has prices. Returns the seconds that the plan took.
double add_prices(const FoundCosts& found, const std::vector<PricedLibrary>& libraries,
                  int64_t now_ns, std::vector<cache::Section>& sections) {
  double left = found.seconds;
  for (const PricedLibrary& library : libraries) {
    const CostTable part = part_of(found.costs, library.backend);
    if (part.kernels.empty() && part.conversions.empty()) continue;
    const double seconds = std::min(left, seconds_to_measure(part));
    left -= seconds;
    sections.push_back({.type = library.backend,
                        .content = kCostsContent,
                        .ingredients = library.stable,
                        .seconds = seconds,
                        .made_ns = now_ns,
                        .bytes = write_cost_table(part)});
  }
  return left;
}

}  // namespace

std::vector<cache::Section> to_sections(const FoundCosts& found, const FoundPlan& plan,
                                        const std::vector<PricedLibrary>& libraries,
                                        const Binding& binding) {
  std::vector<cache::Section> sections;
  const int64_t now_ns = system_time_ns();
  const double left = add_prices(found, libraries, now_ns, sections);
  for (const PricedLibrary& library : libraries) {
    if (!plan.plan || !plan.change.empty() || plan.interrupted_seconds) break;
    sections.push_back({.type = library.backend,
                        .content = kFullyMeasuredContent,
                        .ingredients = fully_measured_key(binding, library),
                        .made_ns = now_ns});
  }
  std::vector<cache::Ingredient> key = binding;
  const std::vector<cache::Ingredient> versions =
      plan.change.empty() ? versions_in_key(libraries) : plan.versions;
  key.insert(key.end(), versions.begin(), versions.end());
  if (plan.interrupted_seconds) {
    sections.push_back({.type = kPlanSection,
                        .content = kInterruptedContent,
                        .ingredients = key,
                        .made_ns = now_ns,
                        .bytes = decimal_digits(*plan.interrupted_seconds)});
  }
  if (!plan.plan) return sections;
  CostTable table{.machine = found.costs.machine};
  // The file's fingerprint identifies the graph.
  table.plans[PlanKey{}] = *plan.plan;
  for (const KnownPlan& other : plan.plan->startup_plan) {
    table.plans[PlanKey{.graph = kStartupPlanGraph}] = other;
  }
  sections.push_back({.type = kPlanSection,
                      .content = kCostsContent,
                      .ingredients = std::move(key),
                      .seconds = left,
                      .made_ns = now_ns,
                      .bytes = write_cost_table(table)});
  return sections;
}

cache::Section merged(const cache::Section& present, cache::Section added) {
  if (present.type == kPlanSection || present.content != kCostsContent) return added;
  try {
    CostTable both = read_cost_table(present.bytes, present.type);
    if (!cache::trusts_results(present.origin)) {
      for (auto& [key, cost] : both.kernels) cost.is_verified_here = false;
    }
    merge(both, read_cost_table(added.bytes, added.type));
    added.bytes = write_cost_table(both);
    added.seconds = std::max(present.seconds, added.seconds);
    return added;
  } catch (const Error&) {
    return added;  // the present section is unreadable
  }
}

FoundPlan take_plan(const cache::CacheFile& file, const Binding& binding,
                    const std::vector<PricedLibrary>& libraries, const std::string& location) {
  const std::vector<cache::Ingredient> versions = versions_in_key(libraries);
  FoundPlan taken;
  const cache::Section* best = nullptr;
  std::vector<const cache::Section*> interrupted;
  bool is_exact = false;
  for (const cache::Section& section : file.sections) {
    if (section.type != kPlanSection) continue;
    if (!std::ranges::equal(binding_part(section, binding), binding)) continue;
    if (section.content == kInterruptedContent) {
      taken.interrupted_seconds = interrupted_seconds_of(section);
      interrupted.push_back(&section);
      continue;
    }
    if (section.content != kCostsContent) continue;
    const bool fits = std::ranges::equal(version_part(section, binding), versions);
    const bool is_preferred =
        best == nullptr || (fits != is_exact ? fits : is_better(section, *best));
    if (!is_preferred) continue;
    best = &section;
    is_exact = fits;
  }
  if (best == nullptr) return taken;
  // A search that was completed later makes up for an interrupted one.
  taken.interrupted_seconds.reset();
  for (const cache::Section* section : interrupted) {
    const bool is_same = section->ingredients == best->ingredients;
    if (is_same && section->made_ns >= best->made_ns) {
      taken.interrupted_seconds = interrupted_seconds_of(*section);
    }
  }
  taken.plan = read_plan(*best, location_of(*best, location));
  taken.origin = best->origin;
  taken.seconds = best->seconds;
  const auto found_with = version_part(*best, binding);
  taken.versions.assign(found_with.begin(), found_with.end());
  taken.change = cache::explain_difference(found_with, versions);
  return taken;
}

std::string explain_nearest_plan(const cache::CacheFile& file, const Binding& binding) {
  std::string nearest;
  size_t min_count = std::numeric_limits<size_t>::max();
  for (const cache::Section& section : file.sections) {
    if (section.type != kPlanSection || section.content != kCostsContent) continue;
    const auto of = binding_part(section, binding);
    const size_t count = cache::different_names(of, binding).size();
    if (std::ranges::equal(of, binding) || count >= min_count) continue;
    min_count = count;
    nearest = cache::explain_difference(of, binding);
  }
  return nearest;
}

void check_plans(const cache::CacheFile& file, const std::string& location) {
  for (const cache::Section& section : file.sections) {
    if (section.type == kPlanSection && section.content == kCostsContent) {
      read_plan(section, location_of(section, location));
    }
  }
}

bool is_fully_measured(const cache::CacheFile& file, const Binding& binding,
                       const PricedLibrary& library) {
  return file.find(library.backend, kFullyMeasuredContent, fully_measured_key(binding, library)) !=
         nullptr;
}

TakenCosts take_costs(const cache::CacheFile& file, const std::string& type,
                      const std::vector<PricedLibrary>& libraries, const std::string& location) {
  TakenCosts taken;
  for (const PricedLibrary& library : libraries) {
    if (!type.empty() && type != library.backend) continue;
    const cache::Section* const fitting = file.find(library.backend, kCostsContent, library.stable);
    if (fitting == nullptr) {
      const cache::Section* const other = file.find(library.backend, kCostsContent);
      if (other != nullptr) {
        taken.reasons.push_back(location_of(*other, location) + " is not used: " +
                                cache::explain_difference(other->ingredients, library.stable));
      }
      continue;
    }
    const std::string where = location_of(*fitting, location);
    const CostTable part = read_cost_table(fitting->bytes, where);
    take(part, fitting->origin, library, where, taken.costs);
    taken.entries[library.backend] =
        static_cast<int64_t>(part.kernels.size() + part.conversions.size());
    taken.seconds[library.backend] = fitting->seconds;
    taken.origins[library.backend] = fitting->origin;
  }
  return taken;
}

}  // namespace tessera::tuning
