// Shows a command's progress on the terminal.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cli/output/span.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// "measuring candidates, 12 of 40, about 9 s left: Conv onednn:brgemm", in at most `columns`
// characters. `since_told` is the number of seconds since `progress` was reported, and `in_phase`
// the number since its phase began. If the remaining time is unknown, or estimated at less than a
// second, the text says how long the phase has taken so far.
std::string progress_text(const TuneProgress& progress, double since_report, double in_phase,
                          size_t columns);

// One line on `stream`, which appears after one second, is redrawn at least once a second, and is
// erased at the end. If `stream` is not a terminal, nothing is shown. If there are several Progress
// objects, only the newest draws. Call show() and say() on the thread that created the object.
class Progress {
 public:
  explicit Progress(std::FILE* stream = stderr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Sets what the command is doing now. After one second, the line also shows for how long.
  void show(const std::string& what);
  void show(const TuneProgress& progress);
  // Shows a line that reports its own progress. `line` is called at least once a second, on another
  // thread.
  void show_live(std::function<std::string()> line);
  // Sets a function to call several times a second on another thread; empty: none. It is called
  // only if the stream is a terminal. When set_watch() returns, the previous function has finished.
  void set_watch(std::function<void()> watch);

  // Writes a permanent line to stderr, above the newest progress line if there is one. Thread-safe.
  static void say(const std::string& line);

 private:
  // Returns the line to show at `now` for work that began at `begin`.
  using Text =
      std::function<std::string(Clock::time_point now, Clock::time_point begin, size_t columns)>;
  // `subject` names the work: as long as it stays the same, its time is not reset.
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

  std::mutex mutex_;  // guards all members below
  std::condition_variable wake_;
  bool is_over_ = false;
  bool is_shown_ = false;
  bool is_covered_ = false;  // whether a newer Progress exists
  Clock::time_point next_;   // when to draw next
  Text text_;
  std::string subject_;
  Clock::time_point begin_;  // when work on the subject began
  std::string drawn_;
  std::string drawn_subject_;
  Clock::time_point drawn_begin_;
  std::thread beats_;
};

// For LoadOptions::log: prints the message like the library's own log.
void say_warning(const std::string& message);

}  // namespace tessera::cli
