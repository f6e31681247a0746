// What tests of refusals share.
#pragma once

#include <string>

#include "tessera/error.h"

namespace tessera {

// what() of the Error that `call` throws; "" where it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tessera
