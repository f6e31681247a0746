// Decides what stored bytes may be used for, depending on who vouches for them. No other file
// decides that.
#pragma once

#include <string>

#include "cache/cache_file.h"

namespace tessera::cache {

// Whether its claims of correctness are trusted: a plan runs, and a kernel that was found correct
// needs no new check. An untrusted plan (Origin::Stranger) is only a proposal, and each of its
// kernels is checked before its results count; its refusals are respected anyway.
constexpr bool may_vouch_for_results(Origin origin) { return origin != Origin::Stranger; }

// Whether its bytes may be executed, mapped as weights, or replace reading a model: packs, compiled
// kernels, indices of models.
constexpr bool may_be_taken_as_they_are(Origin origin) { return origin != Origin::Stranger; }

// A description for people.
std::string origin_text(Origin origin);

}  // namespace tessera::cache
