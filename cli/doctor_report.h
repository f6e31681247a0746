// Prints the findings of `tessera doctor`; doctor_findings.h makes them.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_findings.h"
#include "cli/json_output.h"
#include "cli/text_table.h"

namespace tessera::cli {

// The number of checks with a problem.
size_t finding_count(const std::vector<Check>& checks);

// All checks by area, then each finding with its remedy. Nothing is shortened: long text continues
// on the next line.
std::string doctor_text(const std::vector<Check>& checks, const TextStyle& style);

// The examination and the checks that find_faults() derived from it.
Json doctor_json(const Examination& examination, const std::vector<Check>& checks);

}  // namespace tessera::cli
