// Decides what stored bytes may be used for, depending on who vouches for them. No other file
// decides that.
#pragma once

#include <string>

#include "cache/cache_file.h"

namespace tessera::cache {

// Whether its claims of correctness are trusted: a plan runs, and a kernel that was found correct
// needs no new check. An untrusted plan (Origin::Untrusted) is only a proposal, and each of its
// kernels is checked before its results count; its refusals are respected anyway.
constexpr bool trusts_results(Origin origin) { return origin != Origin::Untrusted; }

// Whether its bytes may be executed, mapped as weights, or replace reading a model: packs, compiled
// kernels, indices of models.
constexpr bool trusts_bytes(Origin origin) { return origin != Origin::Untrusted; }

// A description for people.
std::string origin_text(Origin origin);

}  // namespace tessera::cache
