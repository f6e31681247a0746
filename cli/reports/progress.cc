#include "cli/reports/progress.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <system_error>
#include <utility>

#include "cli/output/quantities.h"
#include "cli/output/text_table.h"
#include "cli/plans/placement_report.h"

namespace tessera::cli {
namespace {

constexpr std::chrono::milliseconds kDelay{1000};
constexpr std::chrono::milliseconds kInterval{100};
constexpr std::chrono::milliseconds kBeat{250};
// Moves to the start of the line and erases the rest of the line: ECMA-48, EL.
constexpr const char* kErase = "\r\x1b[K";
constexpr size_t kDefaultColumns = 80;
constexpr size_t kMinTextColumns = 2;

// The newest Progress, which is the only one that draws.
std::mutex newest_mutex;
Progress* newest = nullptr;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// One column less than the terminal has, because some terminals wrap in the last column.
size_t columns_of(std::FILE* stream) {
  winsize size = {};
  const bool is_known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return std::max(is_known ? size.ws_col : kDefaultColumns, kMinTextColumns) - 1;
}

// Characters outside of ASCII may occupy two columns, or none.
std::string one_column_each(std::string_view text) {
  std::string ascii;
  for (const char letter : printable(text)) {
    const auto byte = static_cast<uint8_t>(letter);
    if (byte < 0x80) {
      ascii += letter;
    } else if (byte >= 0xc0) {
      ascii += '?';
    }
  }
  return ascii;
}

std::string whole_seconds(double seconds) { return std::to_string(std::lround(seconds)) + " s"; }

// Begins with a comma; "" below one second.
std::string elapsed_text(double seconds) {
  return seconds < 1 ? "" : ", " + std::to_string(static_cast<int64_t>(seconds)) + " s so far";
}

std::string progress_time_text(const TuneProgress& progress, double since_report, double in_phase) {
  // Remaining times below a second are not shown, because the work may take longer.
  const auto left_of = [&](const std::optional<double>& seconds) -> std::optional<double> {
    if (!seconds || std::lround(*seconds - since_report) < 1) return std::nullopt;
    return *seconds - since_report;
  };
  const std::optional<double> left = left_of(progress.seconds_left);
  const std::optional<double> allowed = left_of(progress.seconds_allowed);
  if (!progress.seconds_allowed || (left && allowed && *left <= *allowed)) {
    const std::string roughly = progress.may_grow ? ", at least " : ", about ";
    return left ? roughly + whole_seconds(*left) + " left" : elapsed_text(in_phase);
  }
  if (!allowed) return elapsed_text(in_phase);
  return (left ? "" : elapsed_text(in_phase)) + ", at most " + whole_seconds(*allowed) + " left";
}

// The whole `head` if it fits, and as much of `tail` as fits after it.
std::string fitted(const std::string& head, const std::string& tail, size_t columns) {
  constexpr size_t kMinTail = 12;
  if (head.size() + tail.size() <= columns) return head + tail;
  if (head.size() + kMinTail > columns) return head.substr(0, columns);
  return head + shorten(tail, columns - head.size());
}

}  // namespace

std::string progress_text(const TuneProgress& progress, double since_report, double in_phase,
                          size_t columns) {
  const bool is_waiting = progress.phase == BindPhase::Waiting && !progress.what.empty();
  std::string head =
      is_waiting ? one_column_each(progress.what) : std::string(name(progress.phase));
  if (progress.total > 0) {
    head += ", " + std::to_string(std::min(progress.done + 1, progress.total)) + " of " +
            std::to_string(progress.total) + (progress.may_grow ? " or more" : "");
  }
  head += progress_time_text(progress, since_report, in_phase);
  std::string tail;
  const std::string what = progress.contender ? contender_text(*progress.contender) : progress.what;
  if (!what.empty() && !is_waiting) tail += ": " + one_column_each(what);
  if (progress.best_seconds > 0) {
    const std::string best = ", best " + time_text(progress.best_seconds);
    // Added whole or not at all: part of a number would be another number.
    if (head.size() + tail.size() + best.size() <= columns) tail += best;
  }
  return fitted(head, tail, columns);
}

Progress::Progress(std::FILE* stream)
    : stream_(stream), is_terminal_(isatty(fileno(stream)) == 1), next_(Clock::now() + kDelay) {
  const std::scoped_lock lock(newest_mutex);
  outer_ = std::exchange(newest, this);
  if (outer_ != nullptr) {
    const std::scoped_lock outer_lock(outer_->mutex_);
    outer_->erase();
    outer_->is_covered_ = true;
  }
  if (!is_terminal_) return;
  // Signals must be delivered to the main thread, not to this one.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    beats_ = std::thread([this] { beat(); });
  } catch (const std::system_error&) {
    is_terminal_ = false;  // without a thread there is no line
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
    wake_.notify_all();
  }
  if (beats_.joinable()) beats_.join();
  const std::scoped_lock lock(newest_mutex);
  erase();
  newest = outer_;
  if (outer_ == nullptr) return;
  const std::scoped_lock outer_lock(outer_->mutex_);
  outer_->is_covered_ = false;
}

void Progress::beat() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    wake_.wait_for(lock, kBeat);
    if (is_over_) return;
    lock.unlock();
    {
      const std::scoped_lock watch_lock(watch_mutex_);
      if (watch_) watch_();
    }
    lock.lock();
    const Clock::time_point now = Clock::now();
    if (now >= next_ && text_ && text_at(now) != drawn_) draw_line(now);
  }
}

std::string Progress::text_at(Clock::time_point now) const {
  const bool goes_on = !drawn_subject_.empty() && subject_ == drawn_subject_;
  return text_(now, goes_on ? drawn_begin_ : begin_, columns_of(stream_));
}

void Progress::draw_line(Clock::time_point now) {
  if (is_covered_ || is_over_) return;
  drawn_ = text_at(now);
  if (subject_ != drawn_subject_) drawn_begin_ = begin_;
  drawn_subject_ = subject_;
  std::fprintf(stream_, "%s%s", kErase, drawn_.c_str());
  std::fflush(stream_);
  is_shown_ = true;
  next_ = now + kInterval;
}

void Progress::erase() {
  if (!is_shown_) return;
  std::fputs(kErase, stream_);
  std::fflush(stream_);
  is_shown_ = false;
  drawn_.clear();
}

void Progress::set_text(const std::string& subject, Text text) {
  const std::scoped_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (subject != subject_) begin_ = now;
  subject_ = subject;
  text_ = std::move(text);
  if (now >= next_) draw_line(now);
}

void Progress::show(const std::string& what) {
  if (!is_terminal_) return;
  set_text(what, [what](Clock::time_point now, Clock::time_point begin, size_t columns) {
    return fitted(one_column_each(what) + elapsed_text(seconds_between(begin, now)), "", columns);
  });
}

void Progress::show(const TuneProgress& progress) {
  if (!is_terminal_) return;
  set_text(std::string(name(progress.phase)),
           [progress, reported_at = Clock::now()](Clock::time_point now, Clock::time_point begin,
                                                  size_t columns) {
             return progress_text(progress, seconds_between(reported_at, now),
                                  seconds_between(begin, now), columns);
           });
}

void Progress::show_live(std::function<std::string()> line) {
  if (!is_terminal_) return;
  set_text("", [line = std::move(line)](Clock::time_point, Clock::time_point, size_t columns) {
    return fitted(one_column_each(line()), "", columns);
  });
}

void Progress::set_watch(std::function<void()> watch) {
  const std::scoped_lock lock(watch_mutex_);
  watch_ = std::move(watch);
}

void Progress::write_above(const std::string& line) {
  const std::scoped_lock lock(mutex_);
  erase();
  std::fprintf(stderr, "%s\n", line.c_str());
  if (is_terminal_ && text_ && Clock::now() >= next_) draw_line(Clock::now());
}

void Progress::say(const std::string& line) {
  const std::scoped_lock lock(newest_mutex);
  if (newest != nullptr) return newest->write_above(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

void say_warning(const std::string& message) { Progress::say("tessera: " + printable(message)); }

}  // namespace tessera::cli
