// Runs property tests once for each instruction set that Highway finds on this processor, with and
// without dot products of bytes.
#pragma once

#include <cstdint>
#include <functional>

#include "candidate_check.h"

namespace tessera {

// Like check_cases() with backend "native": `cases` in total, divided among the instruction sets.
Totals check_each_target(uint64_t seed, int cases, const MakeCase& make,
                         const Tolerance& tolerance = {});

// Calls check() once while the plug-in uses each of these instruction sets.
void for_each_target(const std::function<void()>& check);

}  // namespace tessera
