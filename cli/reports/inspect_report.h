// The report of `tessera inspect` about a model.
#pragma once

#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/inspect.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct InspectParts {
  bool has_passes = false;   // whether to show each pass's changes and time
  bool has_weights = false;  // whether to list each weight, not only number and size
  bool is_loaded = true;     // if not, nothing is known of weights and work
};

std::string inspect_text(const ModelDescription& model, const InspectParts& parts,
                         const TextStyle& style);
// A table; "" if nothing is missing.
std::string missing_text(const std::vector<MissingPart>& missing, const TextStyle& style);
Json inspect_json(const ModelDescription& model, const InspectParts& parts);

}  // namespace tessera::cli
