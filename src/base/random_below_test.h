// Random numbers for tests.
#pragma once

#include <random>

namespace tessera {

// A number from 0 to `limit` - 1. Unlike the distributions of the standard library, it gives the
// same numbers on every machine.
inline int random_below(std::mt19937& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

}  // namespace tessera
