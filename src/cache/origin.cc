#include "cache/origin.h"

namespace tessera::cache {

std::string origin_text(Origin origin) {
  switch (origin) {
    case Origin::Here:
      return "found here";
    case Origin::Vouched:
      return "found by this user";
    case Origin::Stranger:
      return "found by somebody else";
  }
  return {};
}

}  // namespace tessera::cache
