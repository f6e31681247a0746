// Runs work that may crash, hang or end the process, such as opening plug-ins of others, in a
// process of its own. base/process/child_process.h starts other programs.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace tessera::cli {

// Enough to open all plug-ins on a slow machine.
inline constexpr std::chrono::seconds kOpeningTime{20};

// Calls `work` in a copy of this process, in which its output goes nowhere. Returns how that
// failed, such as "ended by signal 11 (segmentation fault)" or "did not return within 20 s"; "" if
// `work` returned or threw, or if the copy cannot be made. Call it while this process has one
// thread only.
std::string explain_failed_trial(const std::function<void()>& work, std::chrono::seconds limit);

}  // namespace tessera::cli
