#include "cli/plans/explain_report.h"

#include <algorithm>

#include "cli/output/span.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

std::string step_ms_text(double time_us) { return decimal_text(time_us / 1000, 4); }

// "x row_major, h nchw16c": ports that are no constants, with their layouts.
std::string ports_text(const std::vector<PlanPort>& ports) {
  std::string text;
  for (const PlanPort& port : ports) {
    if (port.is_constant) continue;
    text += (text.empty() ? "" : ", ") + port.value + " " + port.layout;
  }
  return text;
}

bool has_port(const std::vector<PlanPort>& ports, const PlanPort& wanted) {
  return std::any_of(ports.begin(), ports.end(), [&](const PlanPort& port) {
    return port.value == wanted.value && port.layout == wanted.layout;
  });
}

std::string conversion_text(const PlanStep& step, size_t index, double time_us) {
  return "step " + std::to_string(index) + ": " + step.name + " " + layouts_text(step) + ", " +
         step_ms_text(time_us) + " ms";
}

// The steps whose nodes get the note about the conversion made by step `index`: the steps that read
// its result, or, if only the caller reads it, the step that computes the converted value.
std::vector<size_t> tellers(const PlanDescription& plan, size_t index) {
  const PlanStep& conversion = plan.steps[index];
  std::vector<size_t> readers;
  for (size_t later = index + 1; later < plan.steps.size(); ++later) {
    const PlanStep& step = plan.steps[later];
    if (!step.nodes.empty() && has_port(step.inputs, conversion.outputs[0])) {
      readers.push_back(later);
    }
  }
  if (!readers.empty()) return readers;
  for (size_t before = index; before-- > 0;) {
    const PlanStep& step = plan.steps[before];
    if (!step.nodes.empty() && has_port(step.outputs, conversion.inputs[0])) return {before};
  }
  return {};
}

}  // namespace

std::map<std::string, std::map<std::string, std::string>> plan_notes(const ExplainReport& report) {
  const std::vector<PlanStep>& steps = report.plan.steps;
  std::vector<std::string> conversions(steps.size());
  for (size_t index = 0; index < steps.size(); ++index) {
    if (!is_conversion(steps[index])) continue;
    for (const size_t teller : tellers(report.plan, index)) {
      conversions[teller] += (conversions[teller].empty() ? "" : "; ") +
                             conversion_text(steps[index], index, report.step_us[index]);
    }
  }
  std::map<std::string, std::map<std::string, std::string>> notes;
  for (size_t index = 0; index < steps.size(); ++index) {
    const PlanStep& step = steps[index];
    for (const std::string& node : step.nodes) {
      std::map<std::string, std::string>& note = notes[node];
      note = {{"tessera.step", std::to_string(index)},
              {"tessera.op", step.op},
              {"tessera.backend", step.backend},
              {"tessera.algorithm", step.algorithm},
              {"tessera.threads", std::to_string(step.threads)},
              {"tessera.milliseconds", step_ms_text(report.step_us[index])},
              {"tessera.input_layouts", ports_text(step.inputs)},
              {"tessera.output_layouts", ports_text(step.outputs)}};
      if (step.predicted_seconds) {
        note["tessera.predicted_milliseconds"] = step_ms_text(*step.predicted_seconds * 1e6);
      }
      if (!conversions[index].empty()) note["tessera.conversions"] = conversions[index];
    }
  }
  return notes;
}

}  // namespace tessera::cli
