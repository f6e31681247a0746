// Starting threads, which the system may refuse.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "tessera/error.h"

namespace tessera {

// Runs `work` in a new thread. Throws OutOfMemory if the system starts no further thread, because
// of a limit or because it lacks memory.
std::thread start_thread(std::function<void()> work);

// The error for a thread that the system does not start; `reason` is the system's.
Error refused_thread(const std::string& reason);

}  // namespace tessera
