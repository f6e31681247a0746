// How far a command has come, for somebody who waits before a terminal.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cli/span.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// "measuring candidates, 12 of 40, about 9 s left: Conv onednn:brgemm", in at most `columns`
// characters. `since_report` seconds have passed since `progress` was told, and `in_phase` since
// its phase began. Where nothing is known of what is left, or less than a second should be, it says
// how long the phase has taken.
std::string progress_text(const TuneProgress& progress, double since_report, double in_phase,
                          size_t columns);

// One line on `stream` that is written over and over, from one second after the start on and at
// least once a second, and erased at the end. Nothing at all where `stream` is no terminal. The
// newest one has the terminal; those before it wait. show() and say() from the thread that made it.
class Progress {
 public:
  explicit Progress(std::FILE* stream = stderr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is done from now on; the line adds for how long, where that is more than a second.
  void show(const std::string& what);
  void show(const TuneProgress& progress);
  // A line that says itself how far it is, asked for at least once a second, on another thread.
  void show_live(std::function<std::string()> line);
  // What else to do some times a second, on another thread; empty: nothing. Only for terminals.
  // What was done before is over when this returns.
  void set_watch(std::function<void()> watch);

  // Writes a line that stays to stderr, above the newest progress line where there is one. From any
  // thread.
  static void say(const std::string& line);

 private:
  // The line for now, what is done having begun then.
  using Text =
      std::function<std::string(Clock::time_point now, Clock::time_point begin, size_t columns)>;
  // `subject` says what is done: while it stays the same, time goes on.
  void set_text(const std::string& subject, Text text);
  std::string text_at(Clock::time_point now) const;
  void draw_line(Clock::time_point now);
  void erase();
  void write_above(const std::string& line);
  void beat();

  std::FILE* stream_;
  bool is_terminal_;
  Progress* outer_ = nullptr;
  std::mutex watch_mutex_;
  std::function<void()> watch_;

  std::mutex mutex_;  // for all that follows
  std::condition_variable wake_;
  bool is_over_ = false;
  bool is_shown_ = false;
  bool is_covered_ = false;  // by a newer one
  Clock::time_point next_;   // when to draw
  Text text_;
  std::string subject_;
  Clock::time_point begin_;  // of the subject
  std::string drawn_;
  std::string drawn_subject_;
  Clock::time_point drawn_begin_;
  std::thread beats_;
};

// For LoadOptions::log: says it as the library itself would.
void say_warning(const std::string& message);

}  // namespace tessera::cli
