#include "cli/plans/diff_report.h"

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

PlanPort port(const std::string& value, const std::string& layout,
              const std::string& type = "float32 1x8") {
  return {.value = value, .type = type, .layout = layout, .device = "cpu"};
}

// A kernel whose values are called after its first and last node.
PlanStep kernel(const std::vector<std::string>& nodes, const std::string& backend,
                const std::string& layout = "nhwc") {
  return {.name = nodes.back(),
          .op = nodes.size() > 1 ? "Conv+Relu" : "Conv",
          .backend = backend,
          .algorithm = "fast",
          .nodes = nodes,
          .inputs = {port("in_" + nodes.front(), layout)},
          .outputs = {port("out_" + nodes.back(), layout)}};
}

PlanStep conversion(const std::string& value, const std::string& from, const std::string& to) {
  return {.name = value,
          .op = "convert",
          .backend = "mylib",
          .inputs = {port(value, from)},
          .outputs = {port(value, to)}};
}

ExplainReport report_of(const std::vector<PlanStep>& steps, const std::vector<double>& times) {
  ExplainReport report;
  report.threads = 2;
  report.plan.steps = steps;
  report.step_us = times;
  return report;
}

// The kinds of all changes, in their order.
std::vector<std::vector<std::string>> kinds_between(const std::vector<PlanStep>& first,
                                                    const std::vector<PlanStep>& second) {
  const PlanDifference difference =
      difference_of(report_of(first, std::vector<double>(first.size(), 1)),
                    report_of(second, std::vector<double>(second.size(), 1)));
  std::vector<std::vector<std::string>> kinds;
  for (const StepChange& change : difference.changes) kinds.push_back(change.kinds);
  return kinds;
}

TEST(PlanDifference, EqualStepsAreEqualWhateverTheirTimes) {
  const std::vector<PlanStep> steps = {conversion("x", "row_major", "nhwc"),
                                       kernel({"a", "b"}, "mylib"), kernel({"c"}, "mylib")};
  const PlanDifference difference =
      difference_of(report_of(steps, {1, 2, 3}), report_of(steps, {1, 5, 7}));
  EXPECT_TRUE(difference.is_equal());
  EXPECT_EQ(difference.unchanged_steps, 3);
  EXPECT_EQ(difference.first_unchanged_us, 6);
  EXPECT_EQ(difference.second_unchanged_us, 13);
  EXPECT_EQ(difference.first_us, 6);
  EXPECT_EQ(difference.second_us, 13);
}

TEST(PlanDifference, EachKindOfChangeIsNamed) {
  PlanStep tiled = kernel({"a"}, "mylib");
  tiled.algorithm = "tiled";
  PlanStep wide = kernel({"a"}, "mylib");
  wide.outputs[0].type = "float32 8x8";
  PlanStep gemm = kernel({"a"}, "mylib");
  gemm.op = "Gemm";
  PlanStep threaded = kernel({"a"}, "mylib");
  threaded.threads = 2;
  PlanStep on_device = kernel({"a"}, "mylib");
  on_device.outputs[0].device = "mylib:1";
  struct Case {
    const char* what;
    PlanStep other;
    std::vector<std::string> kinds;
  };
  const Case cases[] = {
      {"backend, and so algorithm", kernel({"a"}, "other"), {"backend"}},
      {"algorithm", tiled, {"algorithm"}},
      {"layout", kernel({"a"}, "mylib", "nchw16c"), {"layout"}},
      {"device", on_device, {"layout"}},
      {"shape", wide, {"shape"}},
      {"op", gemm, {"op"}},
      {"threads", threaded, {"threads"}},
      {"all at once", kernel({"a"}, "other", "nchw16c"), {"backend", "layout"}},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(kinds_between({kernel({"a"}, "mylib")}, {each.other}), ElementsAre(each.kinds))
        << each.what;
  }
}

TEST(PlanDifference, TheFormatOfAConstantIsPartOfTheAlgorithm) {
  PlanStep packed = kernel({"a"}, "mylib");
  packed.inputs.push_back(port("w", "row_major"));
  packed.inputs[1].is_constant = true;
  PlanStep other = packed;
  other.inputs[1].layout = "mylib:tiled";
  EXPECT_THAT(kinds_between({packed}, {other}), IsEmpty());
}

TEST(PlanDifference, ThreadsOfStepsAreNotComparedIfThePlansHaveOthers) {
  PlanStep threaded = kernel({"a"}, "mylib");
  threaded.threads = 2;
  ExplainReport one = report_of({kernel({"a"}, "mylib")}, {1});
  one.threads = 1;
  const PlanDifference difference = difference_of(one, report_of({threaded}, {1}));
  EXPECT_TRUE(difference.is_equal());
  ASSERT_EQ(difference.settings.size(), 1);
  EXPECT_EQ(difference.settings[0].setting, "threads");
  EXPECT_EQ(difference.settings[0].first, "1");
  EXPECT_EQ(difference.settings[0].second, "2");
}

TEST(PlanDifference, StepsThatShareNodesAreOneChange) {
  // a+b, c against a, b+c: the nodes connect all four.
  const PlanDifference difference = difference_of(
      report_of({kernel({"a", "b"}, "mylib"), kernel({"c"}, "mylib"), kernel({"d"}, "mylib")},
                {4, 5, 6}),
      report_of({kernel({"a"}, "mylib"), kernel({"b", "c"}, "other"), kernel({"d"}, "mylib")},
                {1, 2, 3}));
  ASSERT_EQ(difference.changes.size(), 1);
  const StepChange& change = difference.changes[0];
  EXPECT_THAT(change.kinds, ElementsAre("fusion", "backend"));
  EXPECT_THAT(change.first_steps, ElementsAre(0, 1));
  EXPECT_THAT(change.second_steps, ElementsAre(0, 1));
  EXPECT_EQ(change.first_us, 9);
  EXPECT_EQ(change.second_us, 3);
  EXPECT_EQ(difference.unchanged_steps, 1);
}

TEST(PlanDifference, OrderOfStepsAndOfNodesInAGroupIsNoChange) {
  EXPECT_THAT(kinds_between({kernel({"a"}, "mylib"), kernel({"b"}, "mylib")},
                            {kernel({"b"}, "mylib"), kernel({"a"}, "mylib")}),
              IsEmpty());
  PlanStep turned = kernel({"a", "b"}, "mylib");
  turned.nodes = {"b", "a"};
  EXPECT_THAT(kinds_between({kernel({"a", "b"}, "mylib")}, {turned}), IsEmpty());
}

TEST(PlanDifference, ConversionsAreAddedRemovedAndChanged) {
  const PlanStep blocked = conversion("x", "row_major", "nchw16c");
  EXPECT_THAT(kinds_between({}, {blocked}), ElementsAre(ElementsAre("added")));
  EXPECT_THAT(kinds_between({blocked}, {}), ElementsAre(ElementsAre("removed")));
  EXPECT_THAT(kinds_between({blocked}, {conversion("x", "row_major", "nhwc")}),
              ElementsAre(ElementsAre("layout")));
  const PlanStep back = conversion("x", "nchw16c", "row_major");
  EXPECT_THAT(kinds_between({blocked}, {blocked, back}), ElementsAre(ElementsAre("added")));
  EXPECT_THAT(kinds_between({blocked, back}, {blocked}), ElementsAre(ElementsAre("removed")));
  // A value and a node may have the same name.
  EXPECT_THAT(kinds_between({blocked, kernel({"x"}, "mylib")}, {kernel({"x"}, "mylib")}),
              ElementsAre(ElementsAre("removed")));
}

TEST(PlanDifference, NodesWithOneNameDoNotDisturbEachOther) {
  const std::vector<PlanStep> twins = {kernel({"a"}, "mylib"), kernel({"a"}, "other")};
  EXPECT_THAT(kinds_between(twins, twins), IsEmpty());
  EXPECT_THAT(kinds_between(twins, {twins[0], twins[0]}), ElementsAre(ElementsAre("backend")));
  EXPECT_THAT(kinds_between(twins, {twins[0]}), ElementsAre(ElementsAre("fusion", "backend")));
}

TEST(PlanDifference, TheLargestDifferenceOfTimesIsFirst) {
  const std::vector<PlanStep> first = {kernel({"a"}, "mylib"), kernel({"b"}, "mylib"),
                                       kernel({"c"}, "mylib")};
  const std::vector<PlanStep> second = {kernel({"a"}, "other"), kernel({"b"}, "other"),
                                        kernel({"c"}, "other")};
  const PlanDifference difference =
      difference_of(report_of(first, {10, 20, 30}), report_of(second, {12, 10, 35}));
  ASSERT_EQ(difference.changes.size(), 3);
  EXPECT_THAT(difference.changes[0].first_steps, ElementsAre(1));
  EXPECT_THAT(difference.changes[1].first_steps, ElementsAre(2));
  EXPECT_THAT(difference.changes[2].first_steps, ElementsAre(0));
}

TEST(PlanDifference, VersionsThatBothKnowAreCompared) {
  ExplainReport first = report_of({}, {});
  first.version = "0.1.0";
  first.processor = "one";
  first.libraries = {{"mylib", "1.0"}, {"old", "1.0"}, {"same", "3"}};
  ExplainReport second = report_of({}, {});
  second.processor = "another";
  second.libraries = {{"mylib", "1.1"}, {"new", "2.0"}, {"same", "3"}};
  std::vector<std::string> settings;
  for (const SettingChange& change : difference_of(first, second).settings) {
    settings.push_back(change.setting + ": " + change.first + " -> " + change.second);
  }
  EXPECT_THAT(settings, ElementsAre("processor: one -> another", "mylib: 1.0 -> 1.1"));
}

}  // namespace
}  // namespace tessera::cli
