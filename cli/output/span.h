// Measures and formats time intervals.
#pragma once

#include <chrono>
#include <string>

namespace tessera::cli {

using Clock = std::chrono::steady_clock;

// A time interval; `start` counts from the start of the command.
struct Span {
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds duration{};
};

// Calls `stage`, returns its result, and sets `span` to the time that the call took, counted from
// `origin`.
template <class Stage>
auto timed(Clock::time_point origin, Span& span, const Stage& stage) {
  const Clock::time_point start = Clock::now();
  auto result = stage();
  span = {start - origin, Clock::now() - start};
  return result;
}

double milliseconds(std::chrono::nanoseconds time);
double microseconds(std::chrono::nanoseconds time);

// The number with a fixed number of decimals, for example "12.35" for two.
std::string decimal_text(double number, int decimals);

}  // namespace tessera::cli
