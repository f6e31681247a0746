#include "cli/reports/backends_report.h"

#include <chrono>

#include "cli/process/trial_process.h"

namespace tessera::cli {

VersionReport examine_versions() {
  VersionReport report{.version = version()};
  report.plugins_fault =
      explain_failed_trial([] { static_cast<void>(Backends().describe()); }, kOpeningTime);
  if (report.plugins_fault.empty()) report.backends = Backends().describe();
  return report;
}

std::string version_text(const VersionReport& report, const TextStyle& style) {
  const std::string text = "tessera " + report.version + "\n";
  if (!report.plugins_fault.empty()) {
    return text + wrapped("the backends are not listed: the process that opened them " +
                              report.plugins_fault + "; 'tessera doctor' names the plug-in",
                          style);
  }
  std::string usable;
  std::string others;
  for (const BackendDescription& backend : report.backends) {
    std::string& list = backend.is_usable ? usable : others;
    list += (list.empty() ? "" : ", ") + backend.name + " " +
            (backend.is_usable ? backend.version : "(" + std::string(name(backend.status)) + ")");
  }
  return text + wrapped("backends: " + usable, style) +
         (others.empty() ? "" : wrapped("cannot be used: " + others, style));
}

Json version_json(const VersionReport& report) {
  Json json = {{"version", report.version}, {"backends", nullptr}};
  if (report.plugins_fault.empty()) json["backends"] = backends_json(report.backends)["backends"];
  return json;
}

}  // namespace tessera::cli
