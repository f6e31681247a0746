#include "cli/reports/backends_report.h"

#include "cli/output/text_table.h"

namespace tessera::cli {

std::string backends_text(const std::vector<BackendDescription>& backends, const TextStyle& style) {
  TextTable table({{"backend", Align::Left, true},
                   {"version", Align::Left, true},
                   {"devices", Align::Left, true},
                   {"layouts", Align::Left, true},
                   {"status"}});
  std::string reasons;
  for (const BackendDescription& backend : backends) {
    // row_major is part of every backend, so no plug-in declares it.
    std::vector<std::string> layouts = backend.layouts;
    if (backend.is_usable) layouts.insert(layouts.begin(), "row_major");
    table.add_row({backend.name, backend.version, joined(backend.devices), joined(layouts),
                   name(backend.status)});
    if (backend.is_usable) continue;
    const bool is_there = backend.status == BackendStatus::Refused && !backend.file.empty();
    const std::string file = is_there ? " (" + backend.file.string() + ")" : "";
    reasons += "\n" + wrapped(backend.name + file + ", " + name(backend.status) + ":", style);
    reasons += wrapped(backend.reason, style, "  ");
    if (!backend.remedy.empty()) reasons += wrapped("What to do: " + backend.remedy, style, "  ");
  }
  return table.text(style) + reasons;
}

Json backends_json(const std::vector<BackendDescription>& backends) {
  return {{"backends", field_json(backends, "backends")}};
}

}  // namespace tessera::cli
