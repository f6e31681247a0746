// Time limits of requests to the worker process, and their text in messages.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/process/message_channel.h"

namespace tessera::tuning {

// `seconds` from now; at most some thirty years, so that it fits the clock.
inline Deadline deadline_in(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::microseconds(static_cast<int64_t>(std::min(seconds, 1e9) * 1e6));
}

// "2.5 s"
inline std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace tessera::tuning
