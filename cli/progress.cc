#include "cli/progress.h"

#include <unistd.h>

namespace tessera::cli {
namespace {

constexpr std::chrono::milliseconds kDelay{1000};
constexpr std::chrono::milliseconds kInterval{100};
// To the line's start, and all behind it away: ECMA-48, EL.
constexpr const char* kWipe = "\r\x1b[K";

}  // namespace

Progress::Progress(std::FILE* stream)
    : stream_(stream), is_terminal_(isatty(fileno(stream)) == 1), next_(Clock::now() + kDelay) {}

Progress::~Progress() {
  if (!is_shown_) return;
  std::fputs(kWipe, stream_);
  std::fflush(stream_);
}

void Progress::show(const std::string& text) {
  if (!is_terminal_ || Clock::now() < next_) return;
  std::fprintf(stream_, "%s%s", kWipe, text.c_str());
  std::fflush(stream_);
  is_shown_ = true;
  next_ = Clock::now() + kInterval;
}

}  // namespace tessera::cli
