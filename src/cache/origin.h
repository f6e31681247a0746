// What bytes may do by whose word they are: the one place that decides it.
#pragma once

#include <string>

#include "cache/cache_file.h"

namespace tessera::cache {

// Whether what it says is right counts as found out here: a plan runs, and a kernel that was right
// there need not be judged again. A stranger's plan is a proposal, and each kernel in it is judged
// before its results count; what he refuses is refused all the same.
constexpr bool may_vouch_for_results(Origin origin) { return origin != Origin::Stranger; }

// Whether its bytes may be run, mapped as weights, or stand for a model that was not read: packs,
// compiled kernels, indices of models.
constexpr bool may_be_taken_as_they_are(Origin origin) { return origin != Origin::Stranger; }

// For people.
std::string origin_text(Origin origin);

}  // namespace tessera::cache
