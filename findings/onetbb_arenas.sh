#!/usr/bin/env bash
# A task_arena of oneTBB that is destroyed right after a short parallel_for keeps its memory: a program
# that makes an arena for each piece of work grows by several kB a piece, as long as it runs.
#
# The guess: the last thread that leaves an arena frees it, so memory stays where it was after the
# first few arenas.
#
# A worker that is about to join finds no work any more, and the arena is not freed then, nor later.
# With three milliseconds between the loop and the end of the arena, or one arena for all pieces of
# work, nothing grows; with terminate() and initialize() of one arena it grows, too. A runtime that
# makes a pool of threads for each session or model grows with each of them.
#
#   expected: the same memory after 500 and after 4,000 arenas
#   seen:     tbb 2021.13.1: more than 2 kB an arena; 0 for one arena that is kept
#
# usage: findings/onetbb_arenas.sh   Needs a C++ compiler and two processors. Ends with 0 if oneTBB
# still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tbb==2021.13.1 tbb-devel==2021.13.1

cat > "$folder/arenas.cc" <<'CODE'
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon")) return std::stol(line.substr(8));
  }
  return 0;
}

void work() {
  oneapi::tbb::parallel_for(0, 64, [](int) {
    volatile double x = 1;
    for (int step = 0; step < 300; ++step) x = x * 1.0001;
  });
}

int main(int count, char** names) {
  const bool is_kept = count > 1 && std::string(names[1]) == "kept";
  std::optional<oneapi::tbb::task_arena> kept;
  long early = 0;
  for (int made = 1; made <= 4000; ++made) {
    if (is_kept) {
      if (!kept) kept.emplace(2);
      kept->execute(work);
    } else {
      oneapi::tbb::task_arena arena(2);
      arena.execute(work);
    }
    if (made == 500) early = resident_kib();
  }
  std::cout << (resident_kib() - early) * 1024 / 3500 << "\n";
}
CODE
g++ -std=c++20 -O1 -I"$folder/venv/include" "$folder/arenas.cc" -o "$folder/arenas" \
    "$folder/venv/lib/libtbb.so.12" -Wl,-rpath,"$folder/venv/lib"

made=$("$folder/arenas" made)
kept=$("$folder/arenas" kept)
echo "bytes an arena: $made if one is made for each loop, $kept if one is kept"
if [ "$made" -gt 2000 ] && [ "$kept" -lt 200 ]; then
  echo "oneTBB behaves as stated"
else
  echo "oneTBB has changed"
  exit 1
fi
