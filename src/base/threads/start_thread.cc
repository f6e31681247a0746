#include "base/threads/start_thread.h"

#include <system_error>
#include <utility>

namespace tessera {

Error refused_thread(const std::string& reason) {
  return {ErrorKind::OutOfMemory, "option 'threads'",
          "expected the system to start another thread, found that it refuses (" + reason +
              "); allow this user or container more processes and threads (ulimit -u) and memory "
              "(ulimit -v, -d), or ask for fewer threads"};
}

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw refused_thread(error.code().message());
  }
}

}  // namespace tessera
