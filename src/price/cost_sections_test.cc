#include "price/cost_sections.h"

#include <tuple>
#include <utility>

#include "base/matchers_test.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

CostKey key(const std::string& backend, const std::string& ingredients) {
  return {.work = "i0 float32 1: v0=Relu.14(i0) -> v0",
          .candidate = {.nodes = {},
                        .backend = backend,
                        .algorithm = "plain",
                        .ports = "i0=row_major -> v0=row_major"},
          .ingredients = ingredients};
}

FoundCosts found() {
  FoundCosts found{.seconds = 9};
  found.costs.machine = "a machine";
  const Cost cost{.warm = Timing{1e-3, 1e-3, 2e-3, 1000}, .build_seconds = 1};
  found.costs.kernels[key("fast", "version=3.2.1;commit=abc;")] = cost;
  found.costs.kernels[key("plain", "version=0.1.0;")] = cost;
  found.costs
      .conversions[{.backend = "fast", .from = "a", .to = "b", .element = DataType::Float32}] = {};
  return found;
}

FoundPlan found_plan() {
  return {.plan = KnownPlan{.steps = {{.nodes = {0}, .backend = "fast", .algorithm = "plain"}}}};
}

std::vector<PricedLibrary> two_libraries() {
  return {{"fast", "version=3.2.1;commit=abc;", {{"version", "3.2"}}},
          {"plain", "version=0.1.0;", {{"version", "0.1"}}}};
}

const Binding kBinding = {{"inputs", "float32 1"}, {"threads", "2"}};

cache::CacheFile stored() {
  return {.sections = to_sections(found(), found_plan(), two_libraries(), kBinding)};
}

FoundPlan plan_in(const cache::CacheFile& file, const std::vector<PricedLibrary>& now) {
  return take_plan(file, kBinding, now, "file");
}

TEST(CostSections, HoldPricesByLibraryAndThePlan) {
  const cache::CacheFile file = stored();
  std::vector<std::string> types;
  double seconds = 0;
  for (const cache::Section& section : file.sections) {
    types.push_back(section.type);
    seconds += section.seconds;
  }
  EXPECT_THAT(types, ElementsAre("fast", "plain", "fast", "plain", "plan"));
  EXPECT_DOUBLE_EQ(seconds, 9);
  EXPECT_THAT(file.sections[0].ingredients, ElementsAre(cache::Ingredient{"version", "3.2"}));
  EXPECT_THAT(file.sections[4].ingredients,
              ElementsAre(kBinding[0], kBinding[1], cache::Ingredient{"fast", "version 3.2"},
                          cache::Ingredient{"plain", "version 0.1"}));
}

TEST(CostSections, AreTakenBack) {
  const TakenCosts taken = take_costs(stored(), "", two_libraries(), "file");
  EXPECT_EQ(taken.costs.conversions.size(), 1U);
  EXPECT_EQ(taken.costs.kernels.size(), 2U);
  EXPECT_THAT(taken.reasons, IsEmpty());
  EXPECT_EQ(taken.entries.at("fast"), 2);
  const FoundPlan plan = plan_in(stored(), two_libraries());
  EXPECT_EQ(plan.plan, found_plan().plan);
  EXPECT_EQ(plan.change, "");
}

// The origin decides: a plan that was not read from a file is our own.
TEST(CostSections, UntrustedPricesAreNotVerifiedButRefusalsCount) {
  FoundCosts costs = found();
  costs.costs.kernels.begin()->second = {.refusal = "it is wrong"};
  cache::CacheFile file{.sections = to_sections(costs, found_plan(), two_libraries(), kBinding)};
  for (const auto& [origin, is_verified] : {std::pair(cache::Origin::Local, true),
                                            {cache::Origin::Signed, true},
                                            {cache::Origin::Untrusted, false}}) {
    for (cache::Section& section : file.sections) section.origin = origin;
    const TakenCosts taken = take_costs(file, "", two_libraries(), "file");
    EXPECT_EQ(plan_in(file, two_libraries()).origin, origin);
    EXPECT_EQ(taken.costs.kernels.begin()->second.refusal, "it is wrong");
    for (const auto& [key, cost] : taken.costs.kernels)
      EXPECT_EQ(cost.is_verified_here, is_verified);
  }
}

TEST(CostSections, OfTwoPlansForOneBindTheOneThatIsVouchedForCounts) {
  cache::CacheFile file;
  for (const auto& [origin, algorithm, made_ns] :
       {std::tuple(cache::Origin::Signed, "ours", 1), {cache::Origin::Untrusted, "his", 2}}) {
    FoundPlan plan = found_plan();
    plan.plan->steps[0].algorithm = algorithm;
    cache::Section section = to_sections(found(), plan, two_libraries(), kBinding).back();
    section.origin = origin;
    section.made_ns = made_ns;
    file.sections.push_back(section);
  }
  EXPECT_EQ(plan_in(file, two_libraries()).plan->steps[0].algorithm, "ours");
  std::swap(file.sections[0], file.sections[1]);
  EXPECT_EQ(plan_in(file, two_libraries()).plan->steps[0].algorithm, "ours");
}

TEST(CostSections, APlanBringsTheOneThatRunsUntilItIsBuilt) {
  FoundPlan both = found_plan();
  both.plan->startup_plan = {
      KnownPlan{.steps = {{.nodes = {0}, .backend = "plain", .algorithm = "soon"}}}};
  const cache::CacheFile file{.sections = to_sections(found(), both, two_libraries(), kBinding)};
  EXPECT_EQ(plan_in(file, two_libraries()).plan, both.plan);
}

TEST(CostSections, WithoutAPlanSayAfterHowLongItWasInterrupted) {
  const FoundPlan stopped{.interrupted_seconds = 0.25};
  cache::CacheFile file{.sections = to_sections(found(), stopped, two_libraries(), kBinding)};
  EXPECT_FALSE(plan_in(file, two_libraries()).plan);
  EXPECT_EQ(plan_in(file, two_libraries()).interrupted_seconds, 0.25);
  EXPECT_EQ(take_costs(file, "", two_libraries(), "file").costs.kernels.size(), 2U);
  // The later result wins.
  for (const cache::Section& section : stored().sections) file.put(section);
  EXPECT_TRUE(plan_in(file, two_libraries()).plan);
  EXPECT_FALSE(plan_in(file, two_libraries()).interrupted_seconds);
  // Malformed contents count as no result.
  for (const char* bytes : {"", "x", "1x", "-1", "nan"}) {
    const cache::CacheFile odd{.sections = {{.type = kPlanSection,
                                             .content = kInterruptedContent,
                                             .ingredients = kBinding,
                                             .bytes = bytes}}};
    EXPECT_FALSE(plan_in(odd, two_libraries()).interrupted_seconds) << bytes;
  }
}

TEST(CostSections, ASectionWithoutAPlanOrWithOthersIsCorrupt) {
  for (const std::vector<const char*>& graphs :
       {std::vector<const char*>{}, {"until built"}, {"", "other"}}) {
    CostTable table;
    for (const char* graph : graphs) table.plans[PlanKey{.graph = graph}] = {};
    const cache::CacheFile file{.sections = {{.type = kPlanSection,
                                              .content = kCostsContent,
                                              .ingredients = kBinding,
                                              .bytes = write_cost_table(table)}}};
    EXPECT_THROW(plan_in(file, two_libraries()), Error) << graphs.size();
    EXPECT_THROW(check_plans(file, "file"), Error) << graphs.size();
  }
}

TEST(CostSections, OfOneTypeAreTakenAlone) {
  const TakenCosts taken = take_costs(stored(), "plain", two_libraries(), "file");
  EXPECT_EQ(taken.costs.kernels.size(), 1U);
  EXPECT_EQ(taken.costs.kernels.begin()->first.candidate.backend, "plain");
}

TEST(CostSections, APatchOfALibraryKeepsItsPrices) {
  std::vector<PricedLibrary> patched = two_libraries();
  patched[0].ingredients = "version=3.2.2;commit=def;";
  const TakenCosts taken = take_costs(stored(), "", patched, "file");
  EXPECT_TRUE(taken.costs.kernels.contains(key("fast", "version=3.2.2;commit=def;")));
  EXPECT_EQ(plan_in(stored(), patched).change, "");
}

TEST(CostSections, AnotherVersionLosesItsPricesAndThePlanNamesIt) {
  std::vector<PricedLibrary> newer = two_libraries();
  newer[0].stable = {{"version", "3.3"}};
  const TakenCosts taken = take_costs(stored(), "", newer, "file");
  EXPECT_EQ(taken.costs.kernels.size(), 1U);
  EXPECT_THAT(taken.reasons, ElementsAre(HasSubstr("version: 3.2 in the file, 3.3 now")));
  const FoundPlan plan = plan_in(stored(), newer);
  EXPECT_TRUE(plan.plan) << "it may run until what is new was measured";
  EXPECT_EQ(plan.change, "fast: version 3.2 in the file, version 3.3 now");
}

TEST(CostSections, ALibraryThatAppearsOrGoesIsAChangeThoughThePlanDoesNotUseIt) {
  std::vector<PricedLibrary> now = two_libraries();
  now.push_back({"extra", "", {{"version", "1.0"}}});
  EXPECT_EQ(plan_in(stored(), now).change, "extra: nothing in the file, version 1.0 now");
  now = {two_libraries()[0]};
  EXPECT_EQ(plan_in(stored(), now).change, "plain: version 0.1 in the file, nothing now");
}

TEST(CostSections, APlanForTheseLibrariesGoesBeforeANewerOneForOthers) {
  cache::CacheFile file = stored();
  std::vector<PricedLibrary> newer = two_libraries();
  newer[0].stable = {{"version", "3.3"}};
  for (cache::Section& section : to_sections(found(), found_plan(), newer, kBinding)) {
    section.made_ns += 1'000'000'000;
    file.put(std::move(section));
  }
  EXPECT_EQ(plan_in(file, two_libraries()).change, "");
  EXPECT_EQ(plan_in(file, newer).change, "");
  EXPECT_EQ(take_costs(file, "fast", two_libraries(), "file").entries.at("fast"), 2);
}

TEST(CostSections, AnOutdatedPlanThatIsKeptAgainStaysOne) {
  std::vector<PricedLibrary> newer = two_libraries();
  newer[0].stable = {{"version", "3.3"}};
  const FoundPlan taken = plan_in(stored(), newer);
  ASSERT_TRUE(taken.plan);
  const cache::CacheFile file{.sections = to_sections(found(), taken, newer, kBinding)};
  EXPECT_EQ(plan_in(file, newer).change, "fast: version 3.2 in the file, version 3.3 now");
  EXPECT_EQ(plan_in(file, two_libraries()).change, "");
  EXPECT_FALSE(is_fully_measured(file, kBinding, newer[0])) << "the newer one has still to compete";
}

TEST(CostSections, APlanForAnotherBindIsNotTakenAndTheNearestIsTold) {
  Binding other = kBinding;
  other[1].value = "1";
  const FoundPlan taken = take_plan(stored(), other, two_libraries(), "file");
  EXPECT_FALSE(taken.plan);
  EXPECT_EQ(explain_nearest_plan(stored(), other), "threads: 2 in the file, 1 now");
}

TEST(CostSections, OfALibraryNothingIsLeftToMeasureWhereAPlanWasFound) {
  Binding other = kBinding;
  other[1].value = "1";
  EXPECT_TRUE(is_fully_measured(stored(), kBinding, two_libraries()[0]));
  EXPECT_FALSE(is_fully_measured(stored(), other, two_libraries()[0]));
  EXPECT_FALSE(is_fully_measured(stored(), kBinding, {"fast", "", {{"version", "3.3"}}}));
  const cache::CacheFile file{.sections = to_sections(found(), {}, two_libraries(), kBinding)};
  EXPECT_FALSE(is_fully_measured(file, kBinding, two_libraries()[0]));
}

TEST(CostSections, PricesOfAnotherLibraryAreDamage) {
  cache::CacheFile file = stored();
  std::swap(file.sections[0].bytes, file.sections[1].bytes);
  EXPECT_THROW(take_costs(file, "", two_libraries(), "file"), Error);
  file = stored();
  file.sections[4].bytes = file.sections[0].bytes;
  EXPECT_THROW(plan_in(file, two_libraries()), Error);
}

TEST(CostSections, VersionsAreCutBehindTheSecondNumber) {
  EXPECT_EQ(first_two_numbers("3.2.1"), "3.2");
  EXPECT_EQ(first_two_numbers("2024.3.0-16041-abc"), "2024.3");
  EXPECT_EQ(first_two_numbers("3.2"), "3.2");
  EXPECT_EQ(first_two_numbers("3.2rc1"), "3.2");
  EXPECT_EQ(first_two_numbers("7"), "7");
}

}  // namespace
}  // namespace tessera::tuning
