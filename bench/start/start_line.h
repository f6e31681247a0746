// Shared by the programs that bench/start.py starts: parsing shapes from arguments, and printing
// the time of the first result and of a warm run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

namespace tessera::bench {

// A clock that is the same in all processes.
inline int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Runs once, notes the time, and runs `runs` more times. Prints that time and the median of the
// later runs, in nanoseconds.
template <class Run>
void print_start_line(const Run& run, int runs) {
  run();
  const int64_t first = monotonic_ns();
  std::vector<int64_t> times;
  for (int done = 0; done < runs; ++done) {
    const int64_t begin = monotonic_ns();
    run();
    times.push_back(monotonic_ns() - begin);
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  std::printf("%lld %lld\n", static_cast<long long>(first),
              static_cast<long long>(times[static_cast<size_t>(runs) / 2]));
}

// Parses shapes like "NAME=1x128"; returns them by name.
inline std::map<std::string, std::vector<int64_t>> shapes_of(char** begin, char** end) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (; begin != end; ++begin) {
    const std::string text = *begin;
    size_t at = text.find('=');
    std::vector<int64_t>& dims = shapes[text.substr(0, at)];
    while (++at < text.size()) {
      size_t length = 0;
      dims.push_back(std::stoll(text.substr(at), &length));
      at += length;
    }
  }
  return shapes;
}

// Runs the program if there are at least `least` arguments (with its name), and then ends the
// process immediately: releasing resources is not part of the start-up time.
template <class Program>
int main_of(int count, char** arguments, int least, const Program& program) {
  if (count < least) return 2;
  try {
    program(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fflush(nullptr);
  std::_Exit(0);
}

}  // namespace tessera::bench
