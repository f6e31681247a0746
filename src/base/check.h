// A promise of our own: TESSERA_CHECK(condition, "why this must hold").
// A broken one is our bug (ErrorKind::Internal) and never the user's mistake; user mistakes are
// thrown as Error with a kind of their own.
#pragma once

#include <string_view>

namespace tessera {

// Throws ErrorKind::Internal with the place in the source.
[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             std::string_view why);

}  // namespace tessera

#ifdef TESSERA_CHECKS
#define TESSERA_CHECK(condition, why) \
  ((condition) ? void() : ::tessera::fail_check(__FILE__, __LINE__, #condition, why))
#else
#define TESSERA_CHECK(condition, why) void(sizeof(!(condition)))
#endif
