#!/usr/bin/env bash
# A task_arena of oneTBB 2021.8, which Debian 12 installs, keeps its memory if it is destroyed right
# after a short parallel_for: a program that makes an arena for each piece of work grows by several kB a
# piece, as long as it runs.
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
#   seen:     tbb 2021.8.0: more than 2 kB an arena, 0 for one arena that is kept; tbb 2021.13.1: 0
#
# usage: findings/onetbb_arenas.sh   Needs a C++ compiler and two processors. Ends with 0 if oneTBB
# still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 2021.8.0 2021.13.1; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet "tbb==$version" "tbb-devel==$version"
done

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
run() {  # version, "made" or "kept"
  local libraries=$folder/$1/lib
  g++ -std=c++20 -O1 -I"$folder/$1/include" "$folder/arenas.cc" -o "$folder/arenas" \
      "$libraries/libtbb.so.12" -Wl,-rpath,"$libraries"
  "$folder/arenas" "$2"
}

made=$(run 2021.8.0 made)
kept=$(run 2021.8.0 kept)
later=$(run 2021.13.1 made)
echo "bytes an arena: $made if one is made for each loop, $kept if one is kept, $later in 2021.13.1"
if [ "$made" -gt 2000 ] && [ "$kept" -lt 200 ] && [ "$later" -lt 200 ]; then
  echo "oneTBB behaves as stated"
else
  echo "oneTBB has changed"
  exit 1
fi
