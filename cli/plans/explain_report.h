// The report of `tessera explain`: which backend computes each step, how fast, and what was
// refused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct ExplainReport {
  std::string model;
  std::string version;                           // of Tessera
  std::string processor;                         // its model and instruction set
  std::map<std::string, std::string> libraries;  // of the backends that compute steps: versions
  int threads = 0;
  PlanDescription plan;
  double margin_seconds = 0;    // how long margins of candidates were searched for
  int64_t runs = 0;             // at least one
  double run_us = 0;            // the median of all runs
  std::vector<double> step_us;  // of each step of the plan: the median of all runs
  // Of a step of a nested graph in a run of the model: how often it ran, and the median of its time
  // in all. May be shorter than the list of these steps; zeros if it did not run.
  struct NestedTime {
    int64_t runs = 0;
    double time_us = 0;
  };
  std::vector<NestedTime> nested_times;
};

// The steps that cover the node `name`, or compute or convert the value `name`. If there are none
// and `name` ends in '*', the steps that cover nodes whose names begin with the text before the
// '*'. Throws InvalidArgument, listing some nodes, if there is no such step.
std::vector<size_t> find_steps(const PlanDescription& plan, const std::string& name);

// The time of PlanDescription::nested_steps[step]; zeros if it is not known.
ExplainReport::NestedTime nested_time(const ExplainReport& report, size_t step);

// The names of the nodes that `steps` cover.
std::vector<std::string> nodes_of(const PlanDescription& plan, const std::vector<size_t>& steps);

// All steps, conversions, totals and refusals by reason.
std::string explain_text(const ExplainReport& report, const TextStyle& style);

// Everything about `steps`, which are indices: ports, memory, every refusal in full.
std::string explain_steps_text(const ExplainReport& report, const std::vector<size_t>& steps,
                               const TextStyle& style);

// The costs of the candidates for the nodes of `steps`, and of conversions; if costs are unknown, a
// line that says how to measure them.
std::string explain_costs_text(const ExplainReport& report, const std::vector<size_t>& steps,
                               const TextStyle& style);

// The whole report, restricted to `steps` and to the candidates for their nodes.
Json explain_json(const ExplainReport& report, const std::vector<size_t>& steps);

// Reads the text of explain_json(), as far as `tessera diff` compares it: run and steps, their
// times, and the settings of the measurement. Texts that earlier versions did not write stay "".
// `file` is named in errors. Throws InvalidArgument for anything that is not such a text.
ExplainReport read_explain_json(const std::string& text, const std::string& file);

// The table of fused groups: for each kernel of `plan` that computes two or more nodes, what it
// reads, writes and takes beside its nodes one by one. Equal groups share a row, those that take
// longest together come first. "" if there are none. `step_us` has one measured time for each step.
std::string fused_groups_text(const PlanDescription& plan, const std::vector<double>& step_us,
                              const TextStyle& style);

// The notes that `tessera explain --onnx` writes at the nodes of a model (plan_notes.cc). For each
// node name, notes about the step that computes the node: "tessera.step", ".op" (of the whole
// group), ".backend", ".algorithm", ".threads", ".milliseconds" (of the whole step),
// ".predicted_milliseconds" if costs are known, ".input_layouts", ".output_layouts". Conversions
// are not nodes of the model: ".conversions" lists the conversions of the step's inputs, and those
// of its results that only the caller reads.
std::map<std::string, std::map<std::string, std::string>> plan_notes(const ExplainReport& report);

// Renders the plan as a web page: one HTML file that loads no other file (plan_page.cc). Returns
// HTML: measured and predicted times, the comparison of whole plans, the steps as a bar, a graph
// and a table, and their candidates. The data is explain_json() of all steps. The page itself is
// made of plan_page.html, plan_page.css, plan_page.js and plan_graph.js.
std::string plan_page(const ExplainReport& report);

// plan_page.html with styles and scripts, and a marker for the JSON. The build generates it.
extern const char* const kPlanPage;

}  // namespace tessera::cli
