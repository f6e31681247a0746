// Errors that end a request. Everyday answers (not found, refused) are values, never exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera {

enum class ErrorKind {
  InvalidModel,     // the model file says something that cannot be
  InvalidArgument,  // the caller (or the command line) asked for something that cannot be
  Unsupported,      // legal, but not something this build can do
  OutOfMemory,      // more memory is needed than there is
  DeviceFailed,     // a device failed, or a file that had to be written or to stay as it was
  Corrupt,          // bytes that Tessera itself once wrote are damaged
  Internal,         // a broken promise of Tessera's own: a bug, please report it
  Cancelled,        // the caller ended a run, or its time was up
  CacheMiss,  // nothing may be measured (BindOptions::frozen), and no cache has what is needed
};

// "InvalidModel", "InvalidArgument", ...
std::string_view name(ErrorKind kind);

// An error with its kind, a place that the user can find (`node 'conv1' (Conv), input 'W'`) and a
// message that says what was expected and what was found. what() is "<kind>: <where>: <message>".
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
