// What `tessera backends` lists.
#pragma once

#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// A line for each, then in full why those that are not usable are not.
std::string backends_text(const std::vector<BackendDescription>& backends, const TextStyle& style);

Json backends_json(const std::vector<BackendDescription>& backends);

}  // namespace tessera::cli
