// The boundary of the C interface, which every function uses: turns exceptions into failures, and
// reads and writes structs of callers that know another version of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "tessera/error.h"
#include "tessera/tessera_c.h"

namespace tessera::capi {

// The bytes of a struct in version 1 of the header. If a member is added to one of them, this gets
// a specialisation with the offset of the first new member.
template <class Struct>
inline constexpr size_t kFirstBytes = sizeof(Struct);

// No struct becomes larger, so a larger struct_size is an uninitialised number.
inline constexpr size_t kMaxStructBytes = size_t{1} << 16;

// Writes into `failure`, which may be null, and returns the code for `kind`. Nothing is written if
// struct_size is too small for the struct.
int32_t report(tessera_failure* failure, ErrorKind kind, std::string_view where,
               std::string_view message) noexcept;

// Calls `body`; returns TESSERA_OK, or reports what it throws.
template <class Body>
int32_t guarded(tessera_failure* failure, const Body& body) noexcept {
  try {
    body();
    return TESSERA_OK;
  } catch (const Error& error) {
    return report(failure, error.kind(), error.where(), error.message());
  } catch (const std::bad_alloc&) {
    return report(failure, ErrorKind::OutOfMemory, "", "there is not enough memory");
  } catch (const std::exception& error) {
    return report(failure, ErrorKind::Internal, "", error.what());
  } catch (...) {
    return report(failure, ErrorKind::Internal, "",
                  "something that is no std::exception was thrown");
  }
}

[[noreturn]] void refuse_argument(std::string_view argument, const std::string& message);

// Returns `pointer`. Throws InvalidArgument if it is null. `expected`: "a model".
template <class Pointee>
Pointee* needed(Pointee* pointer, std::string_view argument, const char* expected) {
  if (pointer == nullptr)
    refuse_argument(argument, std::string("expected ") + expected + ", found NULL");
  return pointer;
}

// Throws InvalidArgument if `given` is null or if its struct_size is impossible; `first_bytes` is
// the size of the first version of the struct.
void check_struct(const size_t* given, std::string_view argument, size_t first_bytes);

// Throws InvalidArgument if one of the `size` bytes of unknown members is not zero.
void check_unknown_members(const void* bytes, size_t size, std::string_view argument);

// Returns the members that the caller knows; all other members are zero. Throws InvalidArgument as
// check_struct() does.
template <class Struct>
Struct read_struct(const Struct* given, std::string_view argument) {
  check_struct(given == nullptr ? nullptr : &given->struct_size, argument, kFirstBytes<Struct>);
  const size_t known = std::min(given->struct_size, sizeof(Struct));
  check_unknown_members(reinterpret_cast<const char*>(given) + known, given->struct_size - known,
                        argument);
  Struct copy = {};
  std::memcpy(&copy, given, known);
  return copy;
}

// Writes the members of `value` that the caller knows. Throws InvalidArgument.
template <class Struct>
void write_struct(Struct* given, Struct value, std::string_view argument) {
  check_struct(given == nullptr ? nullptr : &given->struct_size, argument, kFirstBytes<Struct>);
  value.struct_size = given->struct_size;
  std::memcpy(given, &value, std::min(given->struct_size, sizeof(Struct)));
}

}  // namespace tessera::capi
