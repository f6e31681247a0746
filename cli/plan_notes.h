// What `tessera explain --onnx` writes at the nodes of a model.
#pragma once

#include <map>
#include <string>

#include "cli/explain_report.h"

namespace tessera::cli {

// By the name of a node, what is told of the step that computes it: "tessera.step", ".op" (of the
// whole group), ".backend", ".algorithm", ".threads", ".milliseconds" (of the whole step),
// ".predicted_milliseconds" where costs are known, ".input_layouts", ".output_layouts". Conversions
// are no nodes of the model: ".conversions" has those for what the step reads, and those of its
// results that are made for no step but the caller.
std::map<std::string, std::map<std::string, std::string>> plan_notes(const ExplainReport& report);

}  // namespace tessera::cli
