#include "cli/reports/backends_report.h"

#include <sstream>

#include "base/matchers_test.h"
#include "cli/output/text_table.h"

namespace tessera::cli {
namespace {

std::vector<BackendDescription> some_backends() {
  return {{.name = "fast",
           .version = "3.2",
           .devices = {"cpu"},
           .layouts = {"nhwc", "nchw16c"},
           .file = "/opt/libfast.so",
           .is_usable = true,
           .status = BackendStatus::Usable},
          {.name = "broken",
           .file = "/opt/libbroken.so",
           .status = BackendStatus::Refused,
           .reason = "libdevice.so.1 is missing: " + std::string(90, 'r') + " install it\x1b"},
          {.name = "absent",
           .status = BackendStatus::LibraryMissing,
           .reason = "absent was not found",
           .remedy = "install absent-dev"}};
}

TEST(BackendsReport, ReasonsAreToldInFull) {
  const std::string text = backends_text(some_backends(), {});
  EXPECT_THAT(text,
              HasSubstr("backend  version  devices  layouts                   status\n"
                        "fast     3.2      cpu      row_major, nhwc, nchw16c  usable\n"
                        "broken                                               refused\n"
                        "absent                                               library missing\n"));
  EXPECT_THAT(text, HasSubstr("\nbroken (/opt/libbroken.so), refused:\n"
                              "  libdevice.so.1 is missing:\n"));
  EXPECT_THAT(text, HasSubstr(" install\n  it\\x1b\n"));
  EXPECT_THAT(text, HasSubstr("\nabsent, library missing:\n  absent was not found\n"
                              "  What to do: install absent-dev\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(character_count(line), kTextColumns) << line;
  }
}

TEST(BackendsReport, JsonHasEverything) {
  const Json json = backends_json(some_backends())["backends"];
  EXPECT_EQ(json[0]["is_usable"], true);
  EXPECT_EQ(json[0]["layouts"], Json({"nhwc", "nchw16c"}));
  EXPECT_EQ(json[0]["file"], "/opt/libfast.so");
  EXPECT_EQ(json[1]["status"], "refused");
  EXPECT_EQ(json[2]["status"], "library_missing");
  EXPECT_EQ(json[2]["reason"], "absent was not found");
  EXPECT_EQ(json[2]["remedy"], "install absent-dev");
  EXPECT_EQ(json[2]["file"], "");
}

}  // namespace
}  // namespace tessera::cli
