// `tessera backends`: what can run models on this machine.
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

std::string devices_text(const BackendDescription& backend) {
  std::string text;
  for (const std::string& device : backend.devices) text += (text.empty() ? "" : ", ") + device;
  return text;
}

std::string backends_text(const std::vector<BackendDescription>& backends) {
  TextTable table(
      {{"backend"}, {"version"}, {"devices", Align::Left, true}, {"ops", Align::Right}});
  for (const BackendDescription& backend : backends) {
    table.add_row(
        {backend.name, backend.version, devices_text(backend), std::to_string(backend.op_count)});
  }
  return table.text();
}

Json backends_json(const std::vector<BackendDescription>& backends) {
  Json list = Json::array();
  for (const BackendDescription& backend : backends) {
    list.push_back({{"name", backend.name},
                    {"version", backend.version},
                    {"devices", backend.devices},
                    {"op_count", backend.op_count}});
  }
  return {{"backends", std::move(list)}};
}

}  // namespace

Command make_backends_command(CLI::App& command) {
  const auto is_json = std::make_shared<bool>(false);
  command.add_flag("--json", *is_json, "print JSON");
  command.footer("Example:\n  tessera backends --json");
  return [is_json]() -> CommandResult {
    const std::vector<BackendDescription> list = backends();
    return {kFine, *is_json ? json_text(backends_json(list)) : backends_text(list)};
  };
}

}  // namespace tessera::cli
