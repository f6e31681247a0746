#include "cli/output/quantities.h"

#include <vector>

#include "cli/output/span.h"

namespace tessera::cli {
namespace {

std::string scaled_text(double number, double step, const std::vector<const char*>& units) {
  size_t unit = 0;
  while (number >= step && unit + 1 < units.size()) {
    number /= step;
    ++unit;
  }
  const int decimals = unit == 0 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
  return decimal_text(number, decimals) + units[unit];
}

// Four significant digits, as far as the unit allows.
std::string four_digits(double number) {
  return decimal_text(number, number < 9.9995 ? 3 : number < 99.995 ? 2 : 1);
}

}  // namespace

std::string quantity_text(double number) {
  return scaled_text(number, 1000, {"", " k", " M", " G", " T", " P", " E"});
}

std::string bytes_text(int64_t bytes) {
  return scaled_text(static_cast<double>(bytes), 1024,
                     {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"});
}

std::string time_text(double seconds) {
  // A number that rounds to 1000 of a unit is written in the next larger unit.
  if (seconds < 999.95e-6) return decimal_text(seconds * 1e6, 1) + " \xc2\xb5s";
  if (seconds < 0.99995) return four_digits(seconds * 1e3) + " ms";
  return four_digits(seconds) + " s";
}

std::string time_text(double seconds, double low, double high) {
  std::string text = time_text(seconds);
  if (seconds <= 0 || (low == 0 && high == 0)) return text;
  const double percent = 100 * (high - low) / 2 / seconds;
  // A larger percentage would carry no information.
  if (percent > 50) return text + " \xc2\xb1>50 %";
  return text + " \xc2\xb1" + decimal_text(percent, percent < 10 ? 1 : 0) + " %";
}

std::string time_text(const MeasuredTime& time) {
  return time_text(time.seconds, time.low, time.high);
}

std::string count_text(int64_t count, const std::string& noun, const std::string& plural) {
  const std::string& word = count == 1 || plural.empty() ? noun : plural;
  return std::to_string(count) + " " + word + (count != 1 && plural.empty() ? "s" : "");
}

std::string us_text(double time_us) { return time_text(time_us * 1e-6); }

}  // namespace tessera::cli
