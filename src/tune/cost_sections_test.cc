#include "tune/cost_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/error.h"

namespace tessera::tuning {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CostKey key(const std::string& backend, const std::string& ingredients) {
  return {.work = "i0 float32 1: v0=Relu.14(i0) -> v0",
          .backend = backend,
          .ingredients = ingredients,
          .algorithm = "plain",
          .layouts = "i0=row_major -> v0=row_major"};
}

FoundCosts found() {
  FoundCosts found{.seconds = 9};
  found.costs.machine = "a machine";
  const Cost cost{.warm = Timing{1e-3, 1e-3, 2e-3, 1000}, .build_seconds = 1};
  found.costs.kernels[key("fast", "version=3.2.1;commit=abc;")] = cost;
  found.costs.kernels[key("plain", "version=0.1.0;")] = cost;
  found.costs
      .conversions[{.backend = "fast", .from = "a", .to = "b", .element = DataType::Float32}] = {};
  found.plan = KnownPlan{.steps = {{.nodes = {0}, .backend = "fast", .algorithm = "plain"}}};
  return found;
}

std::vector<PricedLibrary> libraries() {
  return {{"fast", "version=3.2.1;commit=abc;", {{"version", "3.2"}}},
          {"plain", "version=0.1.0;", {{"version", "0.1"}}}};
}

cache::CacheFile stored() { return {.sections = to_sections(found(), libraries())}; }

TEST(CostSections, HoldPricesByLibraryAndThePlan) {
  const cache::CacheFile file = stored();
  std::vector<std::string> types;
  double seconds = 0;
  for (const cache::Section& section : file.sections) {
    types.push_back(section.type);
    seconds += section.seconds;
  }
  EXPECT_THAT(types, ElementsAre("fast", "plain", "plan"));
  EXPECT_DOUBLE_EQ(seconds, 9);
  EXPECT_THAT(file.sections[0].ingredients, ElementsAre(cache::Ingredient{"version", "3.2"}));
  EXPECT_THAT(file.sections[2].ingredients, ElementsAre(cache::Ingredient{"fast version", "3.2"}));
}

TEST(CostSections, AreTakenBack) {
  const TakenCosts taken = take_sections(stored(), "", libraries(), "file");
  EXPECT_EQ(taken.costs.kernels, found().costs.kernels);
  EXPECT_EQ(taken.costs.conversions.size(), 1U);
  EXPECT_EQ(taken.plan, found().plan);
  EXPECT_THAT(taken.reasons, testing::IsEmpty());
  EXPECT_EQ(taken.entries.at("fast"), 2);
  EXPECT_EQ(taken.entries.at("plan"), 1);
}

TEST(CostSections, APlanBringsTheOneThatRunsUntilItIsBuilt) {
  FoundCosts both = found();
  both.plan->until_built = {
      KnownPlan{.steps = {{.nodes = {0}, .backend = "plain", .algorithm = "soon"}}}};
  const cache::CacheFile file{.sections = to_sections(both, libraries())};
  EXPECT_THAT(file.sections[2].ingredients, ElementsAre(cache::Ingredient{"fast version", "3.2"},
                                                        cache::Ingredient{"plain version", "0.1"}));
  EXPECT_EQ(take_sections(file, "", libraries(), "file").plan, both.plan);
  const FindLibraries find = [](const std::vector<std::string>& names) {
    EXPECT_THAT(names, ElementsAre("fast", "plain"));
    return libraries();
  };
  EXPECT_EQ(take_plan(file, find, "file").plan, both.plan);
}

TEST(CostSections, WithoutAPlanSayAfterHowLongItWasInterrupted) {
  FoundCosts stopped = found();
  stopped.plan.reset();
  stopped.interrupted_seconds = 0.25;
  cache::CacheFile file{.sections = to_sections(stopped, libraries())};
  const FindLibraries find = [](const std::vector<std::string>&) { return libraries(); };
  EXPECT_FALSE(take_plan(file, find, "file").plan);
  EXPECT_EQ(take_plan(file, find, "file").interrupted_seconds, 0.25);
  EXPECT_FALSE(take_sections(file, "", libraries(), "file").plan);
  EXPECT_EQ(take_sections(file, "", libraries(), "file").costs.kernels.size(), 2U);
  // What is found later counts.
  for (const cache::Section& section : stored().sections) file.put(section);
  EXPECT_TRUE(take_plan(file, find, "file").plan);
  EXPECT_FALSE(take_plan(file, find, "file").interrupted_seconds);
  // Whatever else stands there says nothing.
  for (const char* bytes : {"", "x", "1x", "-1", "nan"}) {
    const cache::CacheFile odd{
        .sections = {{.type = kPlanSection, .content = kInterruptedContent, .bytes = bytes}}};
    EXPECT_FALSE(take_plan(odd, find, "file").interrupted_seconds) << bytes;
  }
}

TEST(CostSections, ASectionWithoutAPlanOrWithOthersIsCorrupt) {
  for (const std::vector<const char*>& graphs :
       {std::vector<const char*>{}, {"until built"}, {"", "other"}}) {
    CostTable table;
    for (const char* graph : graphs) table.plans[PlanKey{.graph = graph}] = {};
    const cache::CacheFile file{
        .sections = {
            {.type = kPlanSection, .content = kCostsContent, .bytes = write_cost_table(table)}}};
    EXPECT_THROW(take_sections(file, "", libraries(), "file"), Error) << graphs.size();
  }
}

TEST(CostSections, OfOneTypeAreTakenAlone) {
  const TakenCosts taken = take_sections(stored(), "plain", libraries(), "file");
  EXPECT_EQ(taken.costs.kernels.size(), 1U);
  EXPECT_EQ(taken.costs.kernels.begin()->first.backend, "plain");
  EXPECT_FALSE(taken.plan);
}

TEST(CostSections, APatchOfALibraryKeepsItsPrices) {
  std::vector<PricedLibrary> patched = libraries();
  patched[0].ingredients = "version=3.2.2;commit=def;";
  const TakenCosts taken = take_sections(stored(), "", patched, "file");
  EXPECT_TRUE(taken.costs.kernels.contains(key("fast", "version=3.2.2;commit=def;")));
  EXPECT_TRUE(taken.plan);
}

TEST(CostSections, AnotherVersionLosesItsOwnPricesAndThePlan) {
  std::vector<PricedLibrary> newer = libraries();
  newer[0].stable = {{"version", "3.3"}};
  const TakenCosts taken = take_sections(stored(), "", newer, "file");
  EXPECT_EQ(taken.costs.kernels.size(), 1U);
  EXPECT_FALSE(taken.plan);
  EXPECT_THAT(taken.reasons, ElementsAre(HasSubstr("version: 3.2 in the file, 3.3 now"),
                                         HasSubstr("fast version")));
  newer.pop_back();
  newer[0].stable = libraries()[0].stable;
  EXPECT_TRUE(take_sections(stored(), "", newer, "file").plan) << "it uses the other one alone";
}

TEST(CostSections, APlanWithoutItsLibraryIsNotTaken) {
  const TakenCosts taken = take_sections(stored(), "", {libraries()[1]}, "file");
  EXPECT_FALSE(taken.plan);
  EXPECT_THAT(taken.reasons, ElementsAre(HasSubstr("fast version: 3.2 in the file, nothing now")));
}

TEST(CostSections, PricesOfAnotherLibraryAreDamage) {
  cache::CacheFile file = stored();
  std::swap(file.sections[0].bytes, file.sections[1].bytes);
  EXPECT_THROW(take_sections(file, "", libraries(), "file"), Error);
  file = stored();
  file.sections[2].bytes = file.sections[0].bytes;
  EXPECT_THROW(take_sections(file, "", libraries(), "file"), Error);
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
