// Ops that only move, repeat or compare elements, on strings.
#pragma once

#include "ops/op.h"

namespace tessera::ops {

// Sets the outputs of `call`, whose node has inputs of strings: the reference kernel runs on int64,
// the rank of each string among all different strings of the inputs. Equal strings have equal
// ranks, and the empty one has rank 0, so elements that a kernel fills with zeros are empty.
// The op must have a reference kernel that takes int64 in the place of strings.
void run_on_ranks(const Op& op, const ValueCall& call);

}  // namespace tessera::ops
