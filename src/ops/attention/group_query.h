// What the rule (group_query_attention.cc) and the kernel (group_query_kernel.cc) of
// GroupQueryAttention share.
#pragma once

#include <cstddef>

#include "ops/op.h"

namespace tessera::ops::group_query {

// Positions of inputs.
inline constexpr size_t kKey = 1;
inline constexpr size_t kValue = 2;
inline constexpr size_t kPastKey = 3;
inline constexpr size_t kPastValue = 4;
inline constexpr size_t kLengths = 5;  // of each sequence, without the last position
inline constexpr size_t kTotalLength = 6;
inline constexpr size_t kCosines = 7;
inline constexpr size_t kSines = 8;
inline constexpr size_t kPositions = 9;
inline constexpr size_t kScoreBias = 10;
inline constexpr size_t kSink = 11;
inline constexpr size_t kKeyScale = 12;
inline constexpr size_t kValueScale = 13;
inline constexpr size_t kQueryNorm = 14;
inline constexpr size_t kKeyNorm = 15;

// The reference kernel.
void run(const KernelCall& call);

}  // namespace tessera::ops::group_query
