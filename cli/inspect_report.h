// The report of `tessera inspect` about a model.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct InspectParts {
  bool has_passes = false;   // whether to show each pass's changes and time
  bool has_weights = false;  // whether to list each weight, not only number and size
};

std::string inspect_text(const ModelDescription& model, const InspectParts& parts,
                         const TextStyle& style);
Json inspect_json(const ModelDescription& model, const InspectParts& parts);

}  // namespace tessera::cli
