// The reports of `tessera backends` and `tessera --version`: which backends there are, which of
// them are usable, and their versions.
#pragma once

#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// One line for each backend, then the full reason for each backend that is not usable.
std::string backends_text(const std::vector<BackendDescription>& backends, const TextStyle& style);

Json backends_json(const std::vector<BackendDescription>& backends);

// The report of `tessera --version` (version_report.cc): the version of Tessera and the backends of
// this machine, unless a plug-in ends or blocks the process that opens it.
struct VersionReport {
  std::string version;
  std::vector<BackendDescription> backends;
  std::string plugins_fault;  // why they are not listed; "" if they are
};

// Opens all plug-ins, in another process first. Call it while this process has one thread only.
VersionReport examine_versions();

// A line "tessera VERSION", then the backends: usable ones with the version of their library, then
// the others with their status.
std::string version_text(const VersionReport& report, const TextStyle& style);

Json version_json(const VersionReport& report);

}  // namespace tessera::cli
