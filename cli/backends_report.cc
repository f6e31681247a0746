#include "cli/backends_report.h"

#include "cli/text_table.h"

namespace tessera::cli {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string backends_text(const std::vector<BackendDescription>& backends) {
  TextTable table({{"backend", Align::Left, true},
                   {"version", Align::Left, true},
                   {"devices", Align::Left, true},
                   {"layouts", Align::Left, true},
                   {"usable"}});
  std::string reasons;
  for (const BackendDescription& backend : backends) {
    table.add_row({backend.name, backend.version, joined(backend.devices), joined(backend.layouts),
                   backend.is_usable ? "yes" : "no"});
    if (backend.is_usable) continue;
    const std::string file = backend.file.empty() ? "" : " (" + backend.file.string() + ")";
    reasons += "\n" + wrapped(backend.name + file + " is not usable:");
    reasons += wrapped(backend.reason, "  ");
  }
  return table.text() + reasons;
}

Json backends_json(const std::vector<BackendDescription>& backends) {
  Json list = Json::array();
  for (const BackendDescription& backend : backends) {
    list.push_back({{"name", backend.name},
                    {"version", backend.version},
                    {"devices", backend.devices},
                    {"layouts", backend.layouts},
                    {"aliases", backend.aliases},
                    {"file", backend.file.string()},
                    {"is_usable", backend.is_usable},
                    {"reason", backend.reason},
                    {"op_count", backend.op_count}});
  }
  return {{"backends", std::move(list)}};
}

}  // namespace tessera::cli
