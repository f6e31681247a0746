// The table of options is complete, and says what is true.
#include "api/options/option_table.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string>

#include "api/describe/field_count.h"
#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera {
namespace {

size_t count_in(std::string_view group) {
  return static_cast<size_t>(
      std::count_if(bind_options().begin(), bind_options().end(),
                    [&](const BindOption& option) { return option.field.group == group; }));
}

TEST(OptionTable, HasEachField) {
  EXPECT_EQ(count_in(""), field_count<BindOptions>() - 4) << "four are groups";
  EXPECT_EQ(count_in("run"), field_count<RunOptions>());
  EXPECT_EQ(count_in("tune"), field_count<TuningOptions>());
  EXPECT_EQ(count_in("cache"), field_count<CacheOptions>());
  EXPECT_EQ(count_in("limits"), field_count<LimitOptions>());
  BindOptions options;
  std::set<const void*> addresses;
  for (const BindOption& option : bind_options()) {
    std::visit(
        [&](const auto& field) {
          EXPECT_TRUE(addresses.insert(&field.edit(options)).second) << option.name;
          EXPECT_EQ(&field.get(options), &field.edit(options)) << option.name;
        },
        option.field.typed);
  }
}

// A bind finds plans that were stored for other values of these. An option that changes plans and
// stands here makes binds use a plan of other options.
TEST(OptionTable, StoredPlansDependOnAllButThese) {
  std::vector<std::string_view> others;
  for (const BindOption& option : bind_options()) {
    if (option.ingredient.position == 0) others.push_back(option.name);
  }
  EXPECT_THAT(others,
              testing::UnorderedElementsAre(
                  "shape_ranges", "more_shapes", "max_bulk_steps", "fetches_step_outputs",
                  "fixed_shapes", "families", "most_shapes", "max_iterations", "optimize", "frozen",
                  "cache_dir", "cost_table", "candidate_timeout_seconds", "tune_budget_seconds",
                  "solve_budget_seconds", "in_process", "swap", "retune", "tune_all",
                  "tuning_inputs", "margin_search_seconds", "describes_candidates", "on_progress"));
}

TEST(OptionTable, HasEachNameOnce) {
  const std::string_view no_name;
  std::set<std::string_view> names;
  std::set<std::string_view> keywords = {no_name};
  std::set<std::string_view> flags = {no_name};
  std::set<int> positions = {0};
  for (const BindOption& option : bind_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(option.keyword.empty() || keywords.insert(option.keyword).second) << option.name;
    const Flag& flag = option.flag;
    EXPECT_TRUE(flag.name.empty() || flags.insert(flag.name).second) << option.name;
    EXPECT_TRUE(flag.negation.empty() || flags.insert(flag.negation).second) << option.name;
    EXPECT_EQ(flag.name.empty(), flag.help.empty()) << option.name;
    EXPECT_EQ(flag.heading.empty(), flag.commands == 0) << option.name;
    const int position = option.ingredient.position;
    EXPECT_TRUE(position == 0 || positions.insert(position).second) << option.name;
    EXPECT_EQ(position == 0, option.ingredient.name.empty()) << option.name;
    EXPECT_TRUE(option.help.ends_with('.')) << option.name << ": help is sentences";
  }
  EXPECT_EQ(*positions.rbegin(), static_cast<int>(positions.size()) - 1) << "without gaps";
}

TEST(OptionTable, DefaultsAreAsPythonWritesThem) {
  const auto default_of = [](std::string_view name) { return default_text(bind_option(name)); };
  EXPECT_EQ(default_of("shapes"), "None");
  EXPECT_EQ(default_of("fetch"), "()");
  EXPECT_EQ(default_of("threads"), "0");
  EXPECT_EQ(default_of("optimize"), "None");
  EXPECT_EQ(default_of("nan"), "'exact'");
  EXPECT_EQ(default_of("cache_dir"), "''");
  EXPECT_EQ(default_of("swap"), "True");
  EXPECT_EQ(default_of("candidate_timeout_seconds"), "10.0");
  EXPECT_EQ(default_of("tuning_inputs"), "{}");
  EXPECT_EQ(default_of("on_progress"), "None");
  EXPECT_EQ(path_of(bind_option("nan")), "run.nan");
  EXPECT_EQ(path_of(bind_option("threads")), "threads");
}

std::string mistake(const BindOptions& options) {
  return error_of(ErrorKind::InvalidArgument, [&] { check_options(options); });
}

TEST(OptionTable, ValuesThatCannotBeAreRefused) {
  const double no_number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(mistake({}), "");
  EXPECT_THAT(mistake({.run = {.max_bulk_steps = -1}}), HasSubstr("0 (no limit) or more"));
  EXPECT_THAT(mistake({.tune = {.optimize_for = "latenci"}}),
              HasSubstr("found 'latenci'; did you mean 'latency'?"));
  const struct {
    BindOptions options;
    const char* message;
  } rows[] = {
      {{.limits = {.memory_budget_bytes = -1}},
       "memory_budget_bytes: expected 0 (no limit) or more, found -1"},
      {{.limits = {.tune_budget_seconds = -2}},
       "tune_budget_seconds: expected 0 (no limit) or more, found -2.000000"},
      {{.limits = {.solve_budget_seconds = no_number}},
       "solve_budget_seconds: expected 0 (no limit) or more, found nan"},
      {{.limits = {.candidate_timeout_seconds = 0}},
       "candidate_timeout_seconds: expected more than 0, found 0.000000"},
      {{.limits = {.most_shapes = 0}}, "most_shapes: expected at least 1, found 0"},
  };
  for (const auto& row : rows) EXPECT_THAT(mistake(row.options), HasSubstr(row.message));
}

}  // namespace
}  // namespace tessera
