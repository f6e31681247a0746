// Runs property tests once for each instruction set that Highway finds on this processor.
#pragma once

#include <cstdint>

#include "candidate_check.h"

namespace tessera {

// Like check_cases() with backend "native": `cases` in total, divided among the instruction sets.
Totals check_each_target(uint64_t seed, int cases, const MakeCase& make,
                         const Tolerance& tolerance = {});

}  // namespace tessera
