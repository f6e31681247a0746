// Support for tests of errors.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tessera/error.h"

namespace tessera {

// The Error that `call` throws, if it throws one.
template <class Call>
std::optional<Error> thrown_by(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Its kind.
template <class Call>
std::optional<ErrorKind> kind_of_error(const Call& call) {
  const std::optional<Error> error = thrown_by(call);
  return error ? std::optional(error->kind()) : std::nullopt;
}

// Its what(); "" if `call` throws none.
template <class Call>
std::string error_of(const Call& call) {
  const std::optional<Error> error = thrown_by(call);
  return error ? error->what() : "";
}

// The same for an Error of `kind`; another kind fails the test.
template <class Call>
std::string error_of(ErrorKind kind, const Call& call) {
  const std::optional<Error> error = thrown_by(call);
  if (!error) return "";
  EXPECT_EQ(error->kind(), kind) << error->what();
  return error->what();
}

}  // namespace tessera
