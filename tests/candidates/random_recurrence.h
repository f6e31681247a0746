// Random LSTMs, GRUs and RNNs in all directions, with and without their optional inputs.
#pragma once

#include "random_graph.h"

namespace tessera {

struct Recurrent {
  const char* op = "";
  int64_t gates = 1;
  size_t states = 1;
};

inline constexpr Recurrent kLstm = {"LSTM", 4, 2};
inline constexpr Recurrent kGru = {"GRU", 3};
inline constexpr Recurrent kRnn = {"RNN", 1};

// Upper limits of the sizes.
struct RecurrenceLimits {
  int64_t steps = 6;
  int64_t batch = 4;
};

// One node, sometimes followed by the Transpose that puts the results of both directions side by
// side.
RandomGraph random_recurrence(Dice& dice, const ops::Registry& registry, const Recurrent& recurrent,
                              const RecurrenceLimits& limits = {});

}  // namespace tessera
