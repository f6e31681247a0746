#include "cli/reports/backends_report.h"

#include <gmock/gmock.h>

namespace tessera::cli {
namespace {

VersionReport some_report() {
  return {.version = "1.2.3",
          .backends = {{.name = "fast", .version = "3.2", .is_usable = true},
                       {.name = "absent", .status = BackendStatus::LibraryMissing},
                       {.name = "slow", .version = "1.2.3", .is_usable = true}}};
}

TEST(VersionReport, NamesBackendsWithTheirVersions) {
  EXPECT_EQ(version_text(some_report(), {}),
            "tessera 1.2.3\n"
            "backends: fast 3.2, slow 1.2.3\n"
            "cannot be used: absent (library missing)\n");
  VersionReport all = some_report();
  std::erase_if(all.backends, [](const BackendDescription& one) { return !one.is_usable; });
  EXPECT_EQ(version_text(all, {}), "tessera 1.2.3\nbackends: fast 3.2, slow 1.2.3\n");
}

TEST(VersionReport, SaysWhyBackendsAreNotListed) {
  const VersionReport report{.version = "1.2.3", .plugins_fault = "ended by signal 11"};
  EXPECT_EQ(version_text(report, {}),
            "tessera 1.2.3\nthe backends are not listed: the process that opened them ended by "
            "signal 11; 'tessera doctor' names\nthe plug-in\n");
  EXPECT_EQ(version_json(report), Json({{"version", "1.2.3"}, {"backends", nullptr}}));
}

TEST(VersionReport, JsonHasEveryBackend) {
  const Json json = version_json(some_report());
  EXPECT_EQ(json["version"], "1.2.3");
  ASSERT_EQ(json["backends"].size(), 3U);
  EXPECT_EQ(json["backends"][0]["backend"], "fast");
  EXPECT_EQ(json["backends"][0]["version"], "3.2");
  EXPECT_EQ(json["backends"][1]["is_usable"], false);
}

}  // namespace
}  // namespace tessera::cli
