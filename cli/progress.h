// How far a command has come, for somebody who waits before a terminal.
#pragma once

#include <cstdio>
#include <string>

#include "cli/span.h"

namespace tessera::cli {

// One line on `stream` that is written over and over, from one second after the start on and no
// more than ten times a second, and wiped out at the end. Nothing at all where `stream` is no
// terminal.
class Progress {
 public:
  explicit Progress(std::FILE* stream = stderr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `text` must be printable and fit one line.
  void show(const std::string& text);

 private:
  std::FILE* stream_;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point next_;
};

}  // namespace tessera::cli
