// The report of `tessera bundle` and `tessera inspect` about a bundle.
#pragma once

#include <string>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

std::string bundle_text(const BundleDescription& bundle, const TextStyle& style);
Json bundle_json(const BundleDescription& bundle);

}  // namespace tessera::cli
