// Messages between two processes, one of which may be broken or hostile: receiving gives a whole
// message or a value that says what went wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_handle.h"

namespace tessera {

using Deadline = std::chrono::steady_clock::time_point;

struct Message {
  uint32_t kind = 0;
  std::string payload;
  std::vector<FileHandle> files;  // at most MessageChannel::kMaxFiles
};

// The result of sending, receiving or waiting. After anything but Done the channel must not be used
// any more, except after Late from wait().
enum class Delivery : uint8_t {
  Done,
  Late,     // the deadline passed
  Closed,   // the other end is closed
  Damaged,  // not a message, or longer than allowed
};

// One end of a stream socket. A frame, in native byte order:
//   magic u32 | kind u32 | length u64 | number u32 | 0 u32 | XXH3 of payload, seeded with
//   kind and number u64 | payload
// `number` counts the frames of a direction from 0. Descriptors travel with the first byte.
class MessageChannel {
 public:
  static constexpr size_t kMaxFiles = 4;

  MessageChannel() = default;
  // Payloads longer than `max_bytes` are rejected. If `takes_files` is false, descriptors from the
  // other side are closed unseen.
  MessageChannel(FileHandle socket, int64_t max_bytes, bool takes_files);

  // Two connected sockets with close-on-exec set. Throws DeviceFailed.
  static std::pair<FileHandle, FileHandle> make_sockets();

  Delivery send(const Message& message, Deadline deadline);
  // Waits until something can be received or the other end is closed; reads nothing.
  Delivery wait(Deadline deadline) const;
  Delivery receive(Message& message, Deadline deadline);

 private:
  Delivery write_bytes(const char* bytes, size_t size, Deadline deadline,
                       const std::vector<FileHandle>& files);
  Delivery read_bytes(char* bytes, size_t size, Deadline deadline, std::vector<FileHandle>* files);

  FileHandle socket_;
  int64_t max_bytes_ = 0;
  bool takes_files_ = false;
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
};

}  // namespace tessera
