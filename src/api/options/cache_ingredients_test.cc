// Each thing that results depend on makes a cache a miss, and is named as the reason.
#include "api/options/cache_ingredients.h"

#include <string>
#include <vector>

#include "base/files/temporary_folder_test.h"
#include "cache/cache_folder.h"
#include "ops/graph_test.h"
#include "store/store.h"

namespace tessera {
namespace {

using cache::Ingredient;

// Of x -> Relu -> y.
std::vector<Ingredient> ingredients_of(const BindOptions& options,
                                       const std::vector<std::string>& backends = {"reference"},
                                       int threads = 2) {
  GraphBuilder builder(all_ops());
  builder.input("x", float_type(Shape{2, 3})).node("0", "Relu", {"x"}, {"y"}).output("y");
  const Graph graph = builder.graph();
  const ModelStructure structure{.digest = "0123",
                                 .names = std::vector<std::string>(graph.values.size(), "v0")};
  return bind_ingredients(graph, structure, options, backends, threads);
}

tuning::FoundPlan some_plan() {
  return {.plan = tuning::KnownPlan{.steps = {{.nodes = {0}, .backend = "reference"}}}};
}

// The result of a look-up in a folder that has one file with these ingredients.
CacheReport report_of(const std::vector<Ingredient>& model, const tuning::Binding& binding,
                      const tuning::FoundPlan& plan) {
  const TemporaryFolder folder;
  const cache::CacheFile file{.ingredients = model,
                              .sections = tuning::to_sections({}, plan, {}, binding)};
  EXPECT_EQ(cache::save_in_folder(folder.path(), file, nullptr).reason, "");
  PlanRequest request{
      .model = model_ingredients({.digest = "0123"}),
      .binding = ingredients_of({}),
      .find_versions = [] { return std::vector<tuning::PricedLibrary>(); },
      .find_libraries = [](const auto&) { return std::vector<tuning::PricedLibrary>(); },
      .folders = {folder.path()}};
  const Log silent([](const std::string&) {});
  return Store().describe(std::move(request), silent);
}

TEST(CacheIngredients, OfTheFileEachAloneIsAMissThatNamesIt) {
  const std::vector<Ingredient> wanted = model_ingredients({.digest = "0123"});
  for (const char* name : {"tessera", "cache format", "processor", "instruction set", "model"}) {
    EXPECT_THAT(wanted, testing::Contains(testing::Field(&Ingredient::name, name)));
  }
  EXPECT_TRUE(report_of(wanted, ingredients_of({}), some_plan()).is_hit);
  for (size_t index = 0; index < wanted.size(); ++index) {
    const std::string& name = wanted[index].name;
    SCOPED_TRACE(name);
    std::vector<Ingredient> other = wanted;
    other[index].value = "another";
    const CacheReport report = report_of(other, ingredients_of({}), some_plan());
    EXPECT_FALSE(report.is_hit);
    if (name == "model") {
      EXPECT_THAT(report.reason, HasSubstr("no cache of this model"));
      continue;
    }
    EXPECT_THAT(report.reason, HasSubstr(" another case, " + name + ": another in the file, "));
    EXPECT_THAT(report.reason, testing::EndsWith(wanted[index].value + " now")) << "nothing else";
  }
}

TEST(CacheIngredients, OfThePlanEachAloneIsAMissThatNamesIt) {
  const tuning::Binding wanted = ingredients_of({});
  for (size_t index = 0; index < wanted.size(); ++index) {
    SCOPED_TRACE(wanted[index].name);
    tuning::Binding other = wanted;
    other[index].value = "another";
    const CacheReport report = report_of(model_ingredients({.digest = "0123"}), other, some_plan());
    EXPECT_FALSE(report.is_hit);
    EXPECT_THAT(report.reason, HasSubstr(" has a plan for another case, " + wanted[index].name +
                                         ": another in the file, "));
  }
}

TEST(CacheIngredients, AFileWithoutAPlanSaysSo) {
  const CacheReport report =
      report_of(model_ingredients({.digest = "0123"}), ingredients_of({}), {});
  EXPECT_FALSE(report.is_hit);
  EXPECT_THAT(report.reason, testing::EndsWith("has measured times, but no plan"));
}

TEST(CacheIngredients, EachOptionChangesOne) {
  const std::vector<Ingredient> plain = ingredients_of({});
  const auto expect_changes = [&](const std::string& name, const BindOptions& options) {
    EXPECT_THAT(cache::different_names(plain, ingredients_of(options)), ElementsAre(name));
  };
  expect_changes("inputs", {.shapes = {{"x", {4, 3}}}});
  expect_changes("fetch", {.fetch = {"y"}});
  expect_changes("layouts", {.run = {.layouts = {{"x", "csr"}}}});
  expect_changes("strict storage", {.run = {.strict_storage = true}});
  expect_changes("device", {.run = {.devices = {"gpu"}}});
  expect_changes("memory budget", {.limits = {.memory_budget_bytes = 1000}});
  expect_changes("optimize for", {.tune = {.optimize_for = "start"}});
  expect_changes("pins", {.run = {.pins = {{"0", "native"}}}});
  expect_changes("exclusions", {.run = {.exclusions = {{"native", ""}}}});
  expect_changes("state pairs", {.run = {.state_pairs = {{"x", "y"}}}});
  expect_changes("denormals", {.run = {.keeps_denormals = true}});
  expect_changes("precision", {.run = {.precision = Precision::BFloat16}});
  expect_changes("nan", {.run = {.nan = NanMode::Fast}});
  expect_changes("fuse", {.run = {.fuse = false}});
  expect_changes("accuracy", {.run = {.accuracy = Accuracy::Fast}});
  EXPECT_THAT(cache::different_names(plain, ingredients_of({}, {"native", "reference"})),
              ElementsAre("backends"));
  EXPECT_THAT(cache::different_names(plain, ingredients_of({}, {"reference"}, 1)),
              ElementsAre("threads"));
}

TEST(CacheIngredients, WhatChangesNoResultIsNone) {
  const std::vector<Ingredient> plain = ingredients_of({});
  EXPECT_EQ(plain, ingredients_of({.shapes = {{"x", {2, 3}}}})) << "the shape that it has";
  EXPECT_EQ(plain,
            ingredients_of({.cache = {.swap = false}, .limits = {.tune_budget_seconds = 3}}));
  EXPECT_EQ(plain, ingredients_of({.run = {.fixed_shapes = true},
                                   .tune = {.in_process = true},
                                   .limits = {.most_shapes = 2}}));
  EXPECT_EQ(ingredients_of({.tune = {.optimize_for = "start"}}),
            ingredients_of({.tune = {.optimize_for = "1-runs"}}));
}

TEST(CacheIngredients, TheShapeOfAnInputThatNobodyReadsIsNone) {
  GraphBuilder builder(all_ops());
  builder.input("x", float_type(Shape{Dim::symbol("N")}))
      .input("unused", float_type(Shape{Dim::symbol("N'2")}))
      .node("0", "Relu", {"x"}, {"y"})
      .output("y");
  const Graph graph = builder.graph();
  const ModelStructure structure{.digest = "0123",
                                 .names = std::vector<std::string>(graph.values.size(), "v0")};
  const auto ingredients = [&](const std::map<std::string, std::vector<int64_t>>& shapes) {
    return bind_ingredients(graph, structure, {.shapes = shapes}, {"reference"}, 1);
  };
  EXPECT_EQ(ingredients({{"x", {2}}}), ingredients({{"x", {2}}, {"unused", {7}}}));
  EXPECT_NE(ingredients({{"x", {2}}}), ingredients({{"x", {3}}}));
}

}  // namespace
}  // namespace tessera
