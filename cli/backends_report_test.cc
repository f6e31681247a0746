#include "cli/backends_report.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/text_table.h"

namespace tessera::cli {
namespace {

using testing::HasSubstr;

std::vector<BackendDescription> some_backends() {
  return {{.name = "fast",
           .version = "3.2",
           .devices = {"cpu"},
           .layouts = {"nhwc", "nchw16c"},
           .file = "/opt/libfast.so",
           .is_usable = true},
          {.name = "broken",
           .file = "/opt/libbroken.so",
           .reason = "libdevice.so.1 is missing: " + std::string(90, 'r') + " install it\x1b"},
          {.name = "absent", .reason = "not built: install absent-dev"}};
}

TEST(BackendsReport, ReasonsAreToldInFull) {
  const std::string text = backends_text(some_backends());
  EXPECT_THAT(text, HasSubstr("backend  version  devices  layouts        usable\n"
                              "fast     3.2      cpu      nhwc, nchw16c  yes\n"
                              "broken                                    no\n"));
  EXPECT_THAT(text, HasSubstr("\nbroken (/opt/libbroken.so) is not usable:\n"
                              "  libdevice.so.1 is missing:\n"));
  EXPECT_THAT(text, HasSubstr(" install\n  it\\x1b\n"));
  EXPECT_THAT(text, HasSubstr("\nabsent is not usable:\n  not built: install absent-dev\n"));
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
  EXPECT_EQ(json[2]["reason"], "not built: install absent-dev");
  EXPECT_EQ(json[2]["file"], "");
}

}  // namespace
}  // namespace tessera::cli
