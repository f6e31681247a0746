// Internal invariants: TESSERA_CHECK(condition, "why this must hold"). A violated one is our bug
// (ErrorKind::Internal), never the user's mistake. User mistakes are thrown as Error with a kind of
// their own.
#pragma once

#include <string_view>

namespace tessera {

// Throws ErrorKind::Internal with the source location.
[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             std::string_view why);

}  // namespace tessera

#ifdef TESSERA_CHECKS
#define TESSERA_CHECK(condition, why) \
  ((condition) ? void() : ::tessera::fail_check(__FILE__, __LINE__, #condition, why))
#else
#define TESSERA_CHECK(condition, why) void(sizeof(!(condition)))
#endif
