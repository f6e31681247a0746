// The report of `tessera explain`: which backend computes each step, how fast, and what was
// refused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/text_table.h"
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
};

// The steps that cover the node `name`, or compute or convert the value `name`. If there are none
// and `name` ends in '*', the steps that cover nodes whose names begin with the text before the
// '*'. Throws InvalidArgument, listing some nodes, if there is no such step.
std::vector<size_t> find_steps(const PlanDescription& plan, const std::string& name);

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

}  // namespace tessera::cli
