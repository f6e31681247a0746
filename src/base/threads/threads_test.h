// Support for tests of what several threads do at once.
#pragma once

#include <ranges>
#include <thread>
#include <vector>

namespace tessera {

// Calls `work` with each element of `range`, each in a thread of its own, and waits for all.
template <class Range, class Work>
void for_each_at_once(Range&& range, const Work& work) {
  std::vector<std::thread> threads;
  for (auto at = std::ranges::begin(range); at != std::ranges::end(range); ++at) {
    threads.emplace_back([&work, at] { work(*at); });
  }
  for (std::thread& thread : threads) thread.join();
}

// The same with the numbers from 0 to `count` - 1.
template <class Number, class Work>
void run_at_once(Number count, const Work& work) {
  for_each_at_once(std::views::iota(Number{0}, count), work);
}

}  // namespace tessera
