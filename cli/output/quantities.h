// Formats numbers with their units, the same way in all output: "17 B", "1.50 MiB", "12.3 µs",
// "2.624 ms ±1.2 %", "1 step".
#pragma once

#include <cstdint>
#include <string>

#include "tessera/descriptions.h"

namespace tessera::cli {

// "1.50 G", "320 k", "17"; k is 1000.
std::string quantity_text(double number);

// "1.50 MiB", "17 B"; KiB is 1024 B.
std::string bytes_text(int64_t bytes);

// Microseconds below a millisecond, then milliseconds, then seconds: "12.3 µs", "2.624 ms",
// "31.90 ms", "19.50 s".
std::string time_text(double seconds);

// A time and the half-width of its 95 % interval: "2.624 ms ±1.2 %". The interval is omitted if
// `low` and `high` are 0.
std::string time_text(double seconds, double low, double high);
std::string time_text(const MeasuredTime& time);

// Same as time_text(), for microseconds, the unit of times in --json.
std::string us_text(double time_us);

// "1 step", "2 steps"; `plural` is needed if the plural is not `noun` and an s.
std::string count_text(int64_t count, const std::string& noun, const std::string& plural = "");

}  // namespace tessera::cli
