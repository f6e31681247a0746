// The report of `tessera backends`: which backends there are, and which are usable.
#pragma once

#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// One line for each backend, then the full reason for each backend that is not usable.
std::string backends_text(const std::vector<BackendDescription>& backends, const TextStyle& style);

Json backends_json(const std::vector<BackendDescription>& backends);

}  // namespace tessera::cli
