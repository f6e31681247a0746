#include "cli/reports/doctor_findings.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "cli/output/quantities.h"
#include "cli/reports/cache_report.h"

namespace tessera::cli {
namespace {

Json findings_json(const std::vector<Check>& checks) {
  Json findings = Json::array();
  for (const Check& check : checks) {
    if (check.problem.empty()) continue;
    findings.push_back({{"area", check.area},
                        {"where", check.subject},
                        {"message", check.problem},
                        {"remedy", check.remedy}});
  }
  return findings;
}

Json json_of(const ExaminedWorker& worker) {
  return {{"file", worker.file.string()},
          {"is_answering", worker.reason.empty()},
          {"answer_us", microseconds_json(worker.seconds)},
          {"reason", worker.reason}};
}

Json json_of(const EnvironmentVariable& variable) {
  return {{"variable", variable.name},
          {"text", variable.value},
          {"is_read", !variable.meaning.empty()},
          {"meaning", variable.meaning}};
}

// The first that is not empty, or "".
std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return {};
}

Json json_of(const ExaminedCacheFolder& folder) {
  Json json = cache_stats_json({folder.kept})["folders"][0];
  json.update({{"tier", folder.tier == CacheTier::First ? "first" : "user"},
               {"named_by", folder.named_by},
               {"is_there", folder.exists},
               {"is_writable", folder.unwritable.empty()},
               {"is_trusted", folder.untrusted.empty()},
               {"reason", first_of({folder.unwritable, folder.untrusted, folder.key_fault})},
               {"owner", optional_json(folder.owner)},
               {"mode", folder.mode ? octal_text(*folder.mode) : ""},
               {"free_bytes", optional_json(folder.free_bytes)},
               {"plan_count", folder.plans},
               {"other_version_count", folder.other_caches}});
  return json;
}

Json processor_json(const MachineState& machine) {
  return {{"processor", machine.processor},
          {"instruction_sets", machine.instruction_sets},
          {"core_count", optional_json(machine.cores)},
          {"usable_core_count", optional_json(machine.usable_cores)},
          {"quota", optional_json(machine.quota.value)},
          {"governors", machine.governors},
          {"frequency_driver", machine.frequency_driver},
          {"busy_by_others", optional_json(machine.busy_by_others)},
          {"huge_pages", machine.huge_pages},
          {"is_flushing_denormals",
           machine.flushes_denormals ? Json(*machine.flushes_denormals) : Json(nullptr)}};
}

Json memory_json(const MachineState& machine) {
  return {{"machine_bytes", optional_json(machine.machine_bytes)},
          {"available_bytes", optional_json(machine.available_bytes)},
          {"group_bytes", optional_json(machine.group_bytes.value)},
          {"open_file_count", optional_json(machine.open_files.value)},
          {"address_space_bytes", optional_json(machine.address_space_bytes.value)},
          {"locked_bytes", optional_json(machine.locked_bytes.value)}};
}

// The columns for the number of a finding and for what was examined.
constexpr size_t kMarkColumns = 5;
constexpr size_t kDoctorLabelColumns = kMarkColumns + 23;

// "  1. usable cores           1 of 4": the text on the right takes as many lines as it needs.
std::string row_text(const std::string& mark, const Check& check, const TextStyle& style) {
  std::string label = std::string(kMarkColumns - 1 - std::min(mark.size(), kMarkColumns - 1), ' ') +
                      mark + " " + printable(check.subject);
  if (character_count(label) < kDoctorLabelColumns) {
    return labelled(label, check.found, kDoctorLabelColumns, style);
  }
  // A name that anybody may have chosen, such as that of a file, takes a line of its own.
  return fitted(label, style) + "\n" +
         wrapped(check.found, style, std::string(kDoctorLabelColumns, ' '));
}

template <class Part>
Json list_json(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts) list.push_back(json_of(part));
  return list;
}

}  // namespace

size_t finding_count(const std::vector<Check>& checks) {
  return static_cast<size_t>(
      std::ranges::count_if(checks, [](const Check& check) { return !check.problem.empty(); }));
}

std::string doctor_text(const std::vector<Check>& checks, const TextStyle& style) {
  std::string table;
  std::string findings;
  std::string area;
  int64_t number = 0;
  for (const Check& check : checks) {
    if (std::exchange(area, check.area) != check.area) table += area + "\n";
    const bool is_fine = check.problem.empty();
    const std::string mark = is_fine ? "" : std::to_string(++number) + ".";
    table += row_text(mark, check, style);
    if (is_fine) continue;
    findings +=
        "\n" +
        wrapped(mark + " " + check.area + ", " + check.subject + ": " + check.problem + ".", style);
    findings += wrapped("What to do: " + check.remedy + ".", style, "   ");
  }
  const std::string summary = number == 0 ? "Nothing was found that makes models slow.\n"
                                          : count_text(number, "finding") + ":\n";
  return table + "\n" + summary + findings;
}

Json doctor_json(const Examination& examination, const std::vector<Check>& checks) {
  return {{"is_fine", finding_count(checks) == 0},
          {"findings", findings_json(checks)},
          {"backends", field_json(examination.backends, "backends")},
          {"worker", json_of(examination.worker)},
          {"environment", list_json(examination.environment)},
          {"cache_folders", list_json(examination.cache_folders)},
          {"held_caches", field_json(examination.held_caches, "held_caches")},
          {"processor_state", processor_json(examination.machine)},
          {"memory_state", memory_json(examination.machine)}};
}

}  // namespace tessera::cli
