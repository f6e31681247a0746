#include "api/bind/measuring_notice.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"

namespace tessera {
namespace {

std::string kept_in(const TemporaryFolder& folder) {
  return "kept in '" + folder.path().lexically_normal().string() + "'";
}

TEST(MeasuringNotice, SaysHowLongWhereAndHowToSwitchItOff) {
  const TemporaryFolder folder;
  const std::string open = measuring_notice({.seconds = 19.7}, {folder.path()});
  EXPECT_THAT(open, HasSubstr("which kernels are the fastest: about 20 s, gain unknown"));
  EXPECT_THAT(open, HasSubstr(kept_in(folder)));
  EXPECT_THAT(open, HasSubstr("optimize=False, --no-optimize or TESSERA_OPTIMIZE=0"));
  const TuningQuote quote{.seconds = 15, .gain_low = 0.15, .gain_high = 0.25, .runs = 2000};
  EXPECT_THAT(
      measuring_notice(quote, {folder.path()}),
      HasSubstr("about 15 s, likely gain 15 to 25 %, pays back after 2,000 runs; the plan"));
}

TEST(MeasuringNotice, NamesTheFolderThatWillBeWrittenTo) {
  const TemporaryFolder folder;
  EXPECT_THAT(measuring_notice({}, {"/proc/1/none", folder.path()}), HasSubstr(kept_in(folder)));
  EXPECT_THAT(measuring_notice({}, {folder.path() / "not yet"}), HasSubstr("not yet'"));
  EXPECT_THAT(measuring_notice({}, {"."}), Not(HasSubstr("'.'"))) << "a whole path";
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
  const TuneProgress starting{.phase = BindPhase::Starting, .quote = TuningQuote{.seconds = 30}};
  report({.phase = BindPhase::Starting, .quote = TuningQuote{.seconds = 0.1}});
  if (!heard.empty()) return "a notice of what is soon over";
  if (!report(starting)) return "the answer is lost";
  if (heard.size() != 1) return "no notice";
  if (report(starting)) return "the answer is lost";
  const ProgressCallback other = with_measuring_notice({}, {"elsewhere"}, log);
  if (other && !other(starting)) return "stopped by nobody";
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
