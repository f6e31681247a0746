#include "api/measuring_notice.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cache/temporary_folder_test.h"

namespace tessera {
namespace {

using testing::HasSubstr;

std::string kept_in(const cache::TemporaryFolder& folder) {
  return "kept in '" + folder.path().lexically_normal().string() + "'";
}

TEST(MeasuringNotice, SaysHowLongWhereAndHowToSwitchItOff) {
  const cache::TemporaryFolder folder;
  const std::string open = measuring_notice({}, {folder.path()});
  EXPECT_THAT(open, HasSubstr("takes seconds to a minute, longer for large models;"));
  EXPECT_THAT(open, HasSubstr(kept_in(folder)));
  EXPECT_THAT(open, HasSubstr("optimize=False, --no-optimize or TESSERA_OPTIMIZE=0"));
  EXPECT_THAT(measuring_notice(19.7, {folder.path()}), HasSubstr("takes at most 20 s;"));
}

TEST(MeasuringNotice, NamesTheFolderThatWillBeWrittenTo) {
  const cache::TemporaryFolder folder;
  EXPECT_THAT(measuring_notice({}, {"/proc/1/none", folder.path()}), HasSubstr(kept_in(folder)));
  EXPECT_THAT(measuring_notice({}, {folder.path() / "not yet"}), HasSubstr("not yet'"));
  EXPECT_THAT(measuring_notice({}, {"."}), testing::Not(HasSubstr("'.'"))) << "a whole path";
  EXPECT_THAT(measuring_notice({}, {"/proc/1/none"}), HasSubstr("the plan cannot be kept"));
}

// Describes an error in the notices that a process gets when it measures, or returns "".
std::string explain_wrong_notices() {
  std::vector<std::string> heard;
  const Log log([&](const std::string& message) { heard.push_back(message); });
  int call_count = 0;
  const ProgressCallback count = [&](const TuneProgress&) { return ++call_count < 4; };
  const ProgressCallback report = with_measuring_notice(count, {"."}, log);
  report({.phase = BindPhase::Preparing});
  report({.phase = BindPhase::Starting, .seconds_allowed = 0.1});
  if (!heard.empty()) return "a notice of what is soon over";
  if (!report({.phase = BindPhase::Starting, .seconds_allowed = 30})) return "the answer is lost";
  if (heard.size() != 1) return "no notice";
  if (report({.phase = BindPhase::Starting})) return "the answer is lost";
  const ProgressCallback other = with_measuring_notice({}, {"elsewhere"}, log);
  if (other && !other({.phase = BindPhase::Starting})) return "stopped by nobody";
  return heard.size() == 1 && call_count == 4 ? "" : "a second notice";
}

TEST(MeasuringNotice, IsGivenOnceInAProcess) {
  // A separate process, in which nothing was measured yet.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const std::string wrong = explain_wrong_notices();
        std::fputs(wrong.c_str(), stderr);
        std::exit(wrong.empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
