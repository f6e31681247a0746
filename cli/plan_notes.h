// The notes that `tessera explain --onnx` writes at the nodes of a model.
#pragma once

#include <map>
#include <string>

#include "cli/explain_report.h"

namespace tessera::cli {

// For each node name, notes about the step that computes the node: "tessera.step", ".op" (of the
// whole group), ".backend", ".algorithm", ".threads", ".milliseconds" (of the whole step),
// ".predicted_milliseconds" if costs are known, ".input_layouts", ".output_layouts". Conversions
// are not nodes of the model: ".conversions" lists the conversions of the step's inputs, and those
// of its results that only the caller reads.
std::map<std::string, std::map<std::string, std::string>> plan_notes(const ExplainReport& report);

}  // namespace tessera::cli
