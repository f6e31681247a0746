#include "cache/origin.h"

namespace tessera::cache {

std::string origin_text(Origin origin) {
  switch (origin) {
    case Origin::Local:
      return "found here";
    case Origin::Signed:
      return "found by this user";
    case Origin::Untrusted:
      return "found by somebody else";
  }
  return {};
}

}  // namespace tessera::cache
