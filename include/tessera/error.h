// Errors that end a request. Expected negative answers (not found, refused) are values, not
// exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera {

enum class ErrorKind {
  InvalidModel,     // the model file is invalid
  InvalidArgument,  // the caller (or the command line) passed something invalid
  Unsupported,      // valid, but this build does not support it
  OutOfMemory,      // more memory is needed than available
  DeviceFailed,     // a device failed, or a file could not be written or has changed
  Corrupt,          // a file that Tessera wrote is damaged
  Internal,         // a bug in Tessera: please report it
  Cancelled,        // the caller cancelled a run, or its time limit expired
  // Measuring is forbidden (CacheOptions::frozen), and no cache has what is needed.
  CacheMiss,
};

// "InvalidModel", "InvalidArgument", ...
std::string_view name(ErrorKind kind);

// An error with its kind, its location in the terms of the user (`node 'conv1' (Conv), input 'W'`),
// and a message that says what was expected and what was found. what() returns "<kind>: <where>:
// <message>".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string where, std::string message);

  ErrorKind kind() const { return kind_; }
  const std::string& where() const { return where_; }
  const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string where_;
  std::string message_;
};

}  // namespace tessera
