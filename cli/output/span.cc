#include "cli/output/span.h"

#include <array>
#include <cstdio>

namespace tessera::cli {

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

std::string decimal_text(double number, int decimals) {
  std::array<char, 340> text{};  // large enough for the largest double
  std::snprintf(text.data(), text.size(), "%.*f", decimals, number);
  return text.data();
}

}  // namespace tessera::cli
