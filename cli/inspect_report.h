// What `tessera inspect` shows of a model.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct InspectParts {
  bool has_passes = false;   // what each pass changed, and how long it took
  bool has_weights = false;  // each of them, not only their number and size
};

std::string inspect_text(const ModelDescription& model, const InspectParts& parts,
                         const TextStyle& style);
Json inspect_json(const ModelDescription& model, const InspectParts& parts);

}  // namespace tessera::cli
