#include "tune/cost_sections.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "tessera/error.h"

namespace tessera::tuning {
namespace {

double seconds_of(const std::optional<Timing>& timing) {
  return timing ? timing->seconds * timing->rounds : 0;
}

const PricedLibrary* find(const std::vector<PricedLibrary>& libraries, const std::string& backend) {
  for (const PricedLibrary& library : libraries) {
    if (library.backend == backend) return &library;
  }
  return nullptr;
}

CostTable part_of(const CostTable& costs, const std::string& backend) {
  CostTable part{.machine = costs.machine};
  for (const auto& [key, cost] : costs.kernels) {
    if (key.backend == backend) part.kernels.emplace(key, cost);
  }
  for (const auto& [key, cost] : costs.conversions) {
    if (key.backend == backend) part.conversions.emplace(key, cost);
  }
  return part;
}

// What the section of a plan calls the one that runs until its kernels are built.
constexpr const char* kUntilBuilt = "until built";

// Of its steps, and of the plan that runs until its kernels are built.
std::set<std::string> backends_of(const KnownPlan& plan) {
  std::set<std::string> backends;
  for (const PlannedStep& step : plan.steps) backends.insert(step.backend);
  for (const KnownPlan& other : plan.until_built) backends.merge(backends_of(other));
  return backends;
}

// A plan rests on every library that it uses.
std::vector<cache::Ingredient> ingredients_of(const KnownPlan& plan,
                                              const std::vector<PricedLibrary>& libraries) {
  std::vector<cache::Ingredient> ingredients;
  const std::set<std::string> backends = backends_of(plan);
  for (const PricedLibrary& library : libraries) {
    if (!backends.contains(library.backend)) continue;
    for (const cache::Ingredient& stable : library.stable) {
      ingredients.push_back({library.backend + " " + stable.name, stable.value});
    }
  }
  return ingredients;
}

// The entries of `part`, which must all be the library's, as it is now.
void take(const CostTable& part, const PricedLibrary& library, const std::string& place,
          CostTable& costs) {
  const auto check = [&](const std::string& backend) {
    if (backend == library.backend) return;
    throw Error(ErrorKind::Corrupt, place,
                "expected prices of '" + library.backend + "', found one of '" + backend + "'");
  };
  for (const auto& [stored, cost] : part.kernels) {
    check(stored.backend);
    CostKey key = stored;
    key.ingredients = library.ingredients;
    costs.kernels[std::move(key)] = cost;
  }
  for (const auto& [stored, cost] : part.conversions) {
    check(stored.backend);
    ConversionCostKey key = stored;
    key.ingredients = library.ingredients;
    costs.conversions[std::move(key)] = cost;
  }
}

KnownPlan read_plan(const cache::Section& section, const std::string& place) {
  CostTable table = read_cost_table(section.bytes, place);
  auto found = table.plans.extract(PlanKey{});
  auto until_built = table.plans.extract(PlanKey{.graph = kUntilBuilt});
  if (found.empty() || !table.plans.empty()) {
    throw Error(ErrorKind::Corrupt, place,
                "expected a plan, and at most one more to run until it is built, found others");
  }
  KnownPlan plan = std::move(found.mapped());
  if (!until_built.empty()) plan.until_built.push_back(std::move(until_built.mapped()));
  return plan;
}

// Why the plan of a section is not used, or "".
std::string explain_unfit(const cache::Section& section, const KnownPlan& plan,
                          const std::vector<PricedLibrary>& libraries, const std::string& place) {
  const std::string difference =
      cache::explain_difference(section.ingredients, ingredients_of(plan, libraries));
  return difference.empty() ? "" : "the plan of " + place + " is not used: " + difference;
}

// Whatever the locale.
std::string decimal_digits(double number) {
  std::array<char, 64> text{};
  const auto [end, failure] =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, 3);
  return failure == std::errc() ? std::string(text.data(), end) : "0";
}

// nullopt where the file says nothing of it that can be read.
std::optional<double> interrupted_seconds_of(const cache::CacheFile& file) {
  const cache::Section* const section = file.find(kPlanSection, kInterruptedContent);
  if (section == nullptr) return std::nullopt;
  double seconds = 0;
  const char* const end = section->bytes.data() + section->bytes.size();
  const auto [read, failure] = std::from_chars(section->bytes.data(), end, seconds);
  const bool is_number = failure == std::errc() && read == end && std::isfinite(seconds);
  return is_number && seconds >= 0 ? std::optional(seconds) : std::nullopt;
}

std::string place_of(const cache::Section& section, const std::string& file) {
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

std::vector<PricedLibrary> priced_libraries(
    const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  std::vector<PricedLibrary> libraries;
  for (const std::shared_ptr<const Plugin>& plugin : plugins) {
    PricedLibrary& library = libraries.emplace_back();
    library.backend = plugin->name();
    library.ingredients = plugin->ingredients();
    const tessera_backend& face = plugin->face();
    for (const tessera_ingredient& ingredient :
         std::span(face.ingredients, static_cast<size_t>(face.ingredient_count))) {
      const std::string name = ingredient.name;
      if (name == "commit") continue;
      library.stable.push_back(
          {name, name == "version" ? first_two_numbers(ingredient.value) : ingredient.value});
    }
  }
  return libraries;
}

std::vector<cache::Section> to_sections(const FoundCosts& found,
                                        const std::vector<PricedLibrary>& libraries) {
  std::vector<cache::Section> sections;
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
                        .bytes = write_cost_table(part)});
  }
  if (!found.plan && found.interrupted_seconds) {
    sections.push_back({.type = kPlanSection,
                        .content = kInterruptedContent,
                        .bytes = decimal_digits(*found.interrupted_seconds)});
  }
  if (!found.plan) return sections;
  CostTable plan{.machine = found.costs.machine};
  // Under which graph it stands is the file's fingerprint to say.
  plan.plans[PlanKey{}] = *found.plan;
  for (const KnownPlan& other : found.plan->until_built) {
    plan.plans[PlanKey{.graph = kUntilBuilt}] = other;
  }
  sections.push_back({.type = kPlanSection,
                      .content = kCostsContent,
                      .ingredients = ingredients_of(*found.plan, libraries),
                      .seconds = left,
                      .bytes = write_cost_table(plan)});
  return sections;
}

TakenPlan take_plan(const cache::CacheFile& file, const FindLibraries& find_libraries,
                    const std::string& place) {
  const cache::Section* const section = file.find(kPlanSection, kCostsContent);
  if (section == nullptr) return {.interrupted_seconds = interrupted_seconds_of(file)};
  if (!section->is_trusted) return {};
  KnownPlan plan = read_plan(*section, place_of(*section, place));
  const std::set<std::string> backends = backends_of(plan);
  std::string refusal =
      explain_unfit(*section, plan, find_libraries({backends.begin(), backends.end()}), place);
  if (!refusal.empty()) return {.refusal = std::move(refusal)};
  return {.plan = std::move(plan), .seconds = section->seconds};
}

TakenCosts take_sections(const cache::CacheFile& file, const std::string& type,
                         const std::vector<PricedLibrary>& libraries, const std::string& place) {
  TakenCosts taken;
  for (const cache::Section& section : file.sections) {
    const bool is_wanted = (type.empty() || section.type == type) && section.is_trusted;
    if (!is_wanted || section.content != kCostsContent) continue;
    const std::string where = place_of(section, place);
    if (section.type == kPlanSection) {
      KnownPlan plan = read_plan(section, where);
      std::string refusal = explain_unfit(section, plan, libraries, place);
      if (refusal.empty()) {
        taken.plan = std::move(plan);
      } else {
        taken.reasons.push_back(std::move(refusal));
      }
    } else {
      const PricedLibrary* library = find(libraries, section.type);
      if (library == nullptr) continue;
      const std::string difference =
          cache::explain_difference(section.ingredients, library->stable);
      if (!difference.empty()) {
        taken.reasons.push_back(where + " is not used: " + difference);
        continue;
      }
      const CostTable part = read_cost_table(section.bytes, where);
      take(part, *library, where, taken.costs);
      taken.entries[section.type] =
          static_cast<int64_t>(part.kernels.size() + part.conversions.size());
    }
    taken.seconds[section.type] = section.seconds;
  }
  if (taken.plan) taken.entries[kPlanSection] = 1;
  return taken;
}

}  // namespace tessera::tuning
