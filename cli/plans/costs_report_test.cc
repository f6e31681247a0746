#include "cli/plans/costs_report.h"

#include <sstream>

#include "base/matchers_test.h"
#include "cli/output/text_table.h"

namespace tessera::cli {
namespace {

CandidateDescription candidate(const std::string& node, const std::string& backend,
                               double seconds) {
  CandidateDescription made{.nodes = {node}, .op = "Relu", .backend = backend, .threads = 2};
  made.inputs = {{.value = "x", .type = "float32 8", .layout = "nhwc"}};
  made.outputs = {{.value = "y", .type = "float32 8", .layout = "nhwc"}};
  made.verdict = Verdict::Fine;
  made.time = MeasuredTime{seconds, 0.9 * seconds, 1.1 * seconds, 9};
  made.price_seconds = seconds;
  made.tolerance = 1e-4;
  return made;
}

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, character_count(line));
  }
  return longest;
}

TEST(CostsReport, ShowsTheCheapestFirstAndRefusedOnesLast) {
  std::vector<CandidateDescription> all = {candidate("a", "slow", 2e-3), candidate("a", "wrong", 0),
                                           candidate("a", "fast", 1e-3)};
  all[1].verdict = Verdict::Refused;
  all[1].refusal = "numbers: element 3: expected 1, found 2";
  all[1].time.reset();
  all[2].is_chosen = true;
  const std::string text = candidates_text(all, false, {});
  EXPECT_LT(text.find("fast"), text.find("slow"));
  EXPECT_LT(text.find("slow"), text.find("wrong"));
  EXPECT_THAT(text, HasSubstr("chosen"));
  EXPECT_THAT(text, HasSubstr("expected 1, found 2"));
  EXPECT_THAT(text, HasSubstr("1.000 ms \xc2\xb1"
                              "10.0 %"));
  EXPECT_THAT(refused_text(all, {}), HasSubstr("refused wrong for Relu: numbers"));
}

TEST(CostsReport, SaysWhichGroupsThePlanPassesOver) {
  std::vector<CandidateDescription> all = {candidate("a", "fast", 1e-3),
                                           candidate("b", "slow", 2e-3)};
  EXPECT_THAT(candidates_text(all, false, {}), HasSubstr("Relu: b\n"));  // there is no plan
  all[0].is_chosen = true;
  const std::string text = candidates_text(all, false, {});
  EXPECT_THAT(text, HasSubstr("Relu: a\n"));
  EXPECT_THAT(text, HasSubstr("Relu (not in the plan): b\n"));
}

TEST(CostsReport, ShowsEqualGroupsOnce) {
  const std::string text = candidates_text(
      {candidate("a", "fast", 1e-3), candidate("b", "fast", 1e-3), candidate("c", "fast", 2e-3)},
      false, {});
  EXPECT_THAT(text, HasSubstr("Relu: a; b\n"));
  EXPECT_THAT(text, HasSubstr("Relu: c\n"));
}

TEST(CostsReport, LeavesOutWhatWasNotMeasuredUnlessAsked) {
  CandidateDescription unknown = candidate("a", "unknown", 1);
  unknown.verdict = Verdict::NotMeasured;
  unknown.time.reset();
  EXPECT_EQ(candidates_text({unknown}, false, {}), "");
  EXPECT_THAT(candidates_text({unknown}, true, {}), HasSubstr("not measured"));
  EXPECT_EQ(candidates_of({unknown}, {"b"}).size(), 0U);
  EXPECT_EQ(candidates_of({unknown}, {"a"}).size(), 1U);
}

TEST(CostsReport, FitsTheTerminal) {
  CandidateDescription wide = candidate(std::string(150, 'n'), "backend", 1e-3);
  wide.algorithm = std::string(90, 'a');
  wide.inputs[0].layout = std::string(90, 'l');
  wide.verdict = Verdict::Refused;
  wide.refusal = std::string(300, 'r') + " " + std::string(30, 's');
  EXPECT_LE(longest_line(candidates_text({wide}, true, {})), 330U);
  wide.refusal = "why";
  EXPECT_LE(longest_line(candidates_text({wide}, true, {})), kTextColumns);
  const ConversionDescription conversion{.backend = "mylib",
                                         .from = std::string(90, 'f'),
                                         .to = "nhwc",
                                         .type = "float32",
                                         .bytes = 4096,
                                         .time = {1e-6, 1e-6, 2e-6, 9}};
  const std::string text = conversions_text({conversion}, {});
  EXPECT_LE(longest_line(text), kTextColumns);
  EXPECT_THAT(text, HasSubstr("mylib"));
  EXPECT_EQ(conversions_text({}, {}), "");
}

TEST(CostsReport, TellsWhatWasTuned) {
  TuningDescription tuning{.measured = 7, .known = 3, .refused = 1, .is_stopped = true};
  tuning.notes = {"something odd"};
  const std::string text = tuning_text(tuning, {.columns = 160});
  EXPECT_THAT(
      text,
      HasSubstr(
          "measured 7 kernels and conversions, of which 1 refused; 3 more were known; it took 0.0 "
          "\xc2\xb5s"));
  EXPECT_THAT(text, HasSubstr("stopped early"));
  EXPECT_THAT(text, HasSubstr("note: something odd"));
}

}  // namespace
}  // namespace tessera::cli
