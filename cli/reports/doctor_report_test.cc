#include "cli/reports/doctor_findings.h"

#include <sstream>

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

std::vector<Check> some_checks() {
  return {{.area = "worker", .subject = "tessera-worker", .found = "answers"},
          {.area = "processor",
           .subject = "usable cores",
           .found = "1 of 4",
           .problem = "one core is usable",
           .remedy = "start it without taskset"},
          {.area = "processor", .subject = "model", .found = "a processor"},
          {.area = "caches",
           .subject = "first folder",
           .found = "/" + std::string(200, 'f') + "\x1b",
           .problem = "it is full " + std::string(90, 'p') + " of them",
           .remedy = "free space"}};
}

TEST(DoctorReport, FindingsAreNumberedInTheTable) {
  const std::string text = doctor_text(some_checks(), {});
  EXPECT_THAT(text, StartsWith("worker\n"
                               "     tessera-worker         answers\n"
                               "processor\n"
                               "  1. usable cores           1 of 4\n"
                               "     model                  a processor\n"
                               "caches\n"
                               "  2. first folder           /f"));
  EXPECT_THAT(text, HasSubstr("\n2 findings:\n\n1. processor, usable cores: one core is usable.\n"
                              "   What to do: start it without taskset.\n\n2. caches, "));
}

TEST(DoctorReport, FitsTheTerminalAndIsWholeInAPipe) {
  std::vector<Check> checks = some_checks();
  checks.push_back({.area = "environment", .subject = "TESSERA_" + std::string(200, 'X')});
  // Findings whose numbers have four digits.
  checks.resize(1200, {.area = "backends",
                       .subject = "one",
                       .found = "text",
                       .problem = "of no use",
                       .remedy = "nothing"});
  for (const size_t columns : {kMinColumns, kTextColumns, kMaxColumns}) {
    std::istringstream lines(doctor_text(checks, terminal_style(columns)));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(character_count(line), columns) << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos);
    }
  }
  EXPECT_THAT(doctor_text(checks, kPipeStyle), HasSubstr(std::string(200, 'f') + "\\x1b"));
  EXPECT_THAT(doctor_text(checks, kPipeStyle), HasSubstr("TESSERA_" + std::string(200, 'X')));
}

TEST(DoctorReport, WithoutFindingsItSaysSo) {
  const std::vector<Check> checks = {some_checks()[0]};
  EXPECT_THAT(doctor_text(checks, {}),
              HasSubstr("\n\nNothing was found that makes models slow.\n"));
  EXPECT_EQ(finding_count(checks), 0U);
  EXPECT_EQ(finding_count(some_checks()), 2U);
}

TEST(DoctorReport, JsonHasFindingsAndWhatWasExamined) {
  const Examination examination = {
      .backends = {{.name = "fast", .is_usable = true, .status = BackendStatus::Usable}},
      .worker = {.reason = "it did not answer"},
      .environment = {{.name = "TESSERA_OPTIMISE", .value = "0"}},
      .cache_folders = {{.tier = CacheTier::User,
                         .named_by = "HOME",
                         .folder = "/caches",
                         .exists = true,
                         .untrusted = "others may write to it",
                         .owner = 1000,
                         .mode = 0777,
                         .kept = {.folder = "/caches",
                                  .kinds = {{.kind = "packs", .files = 2, .bytes = 100}}},
                         .plans = 3}},
      .machine = {.cores = 4, .quota = {.is_known = true, .value = 1.5}}};
  const Json json = doctor_json(examination, some_checks());
  EXPECT_EQ(json["is_fine"], false);
  ASSERT_EQ(json["findings"].size(), 2U);
  EXPECT_EQ(json["findings"][0], Json({{"area", "processor"},
                                       {"where", "usable cores"},
                                       {"message", "one core is usable"},
                                       {"remedy", "start it without taskset"}}));
  EXPECT_EQ(json["backends"][0]["backend"], "fast");
  EXPECT_EQ(json["worker"]["is_answering"], false);
  EXPECT_TRUE(json["worker"]["answer_us"].is_null());
  EXPECT_EQ(json["environment"][0]["is_read"], false);
  const Json& folder = json["cache_folders"][0];
  EXPECT_EQ(folder["file_count"], 2);
  EXPECT_EQ(folder["mode"], "0777");
  EXPECT_EQ(folder["is_writable"], true);
  EXPECT_EQ(folder["is_trusted"], false);
  EXPECT_EQ(folder["reason"], "others may write to it");
  EXPECT_TRUE(folder["free_bytes"].is_null());
  EXPECT_EQ(json["processor_state"]["quota"], 1.5);
  EXPECT_TRUE(json["processor_state"]["usable_core_count"].is_null());
  EXPECT_TRUE(json["memory_state"]["available_bytes"].is_null());
  EXPECT_EQ(doctor_json({}, {})["is_fine"], true);
}

}  // namespace
}  // namespace tessera::cli
