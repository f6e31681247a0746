#include "base/errors/check.h"

#include <cstring>
#include <string>

#include "tessera/error.h"

namespace tessera {

void fail_check(const char* file, int line, const char* condition, std::string_view why) {
  const char* slash = std::strrchr(file, '/');
  const std::string location =
      std::string(slash != nullptr ? slash + 1 : file) + ":" + std::to_string(line);
  throw Error(ErrorKind::Internal, location,
              std::string(why) + " (" + condition + " does not hold). This is a bug in Tessera");
}

}  // namespace tessera
