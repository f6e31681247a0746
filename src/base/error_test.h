// Support for tests of errors.
#pragma once

#include <string>

#include "tessera/error.h"

namespace tessera {

// what() of the Error that `call` throws; "" if it throws none.
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
