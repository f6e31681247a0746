// The values with which candidates are compared: the input of a bench (microbench/bench.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "measure/capture.h"
#include "measure/phase_timer.h"
#include "microbench/bench.h"
#include "price/groups.h"

namespace tessera::tuning {

// The bytes, at most `wanted`, that measuring may keep while other code needs memory, too.
int64_t limited_by_memory(int64_t wanted);

// "" if there is enough memory to measure `group`, whose inputs and outputs have `value_bytes`.
// Otherwise says how much it takes, and how much is available.
std::string explain_shortage(const Graph& group, int64_t value_bytes);

// Makes the cases of the groups of one graph. The task and the timer must outlive it. For one
// thread.
class GroupCases {
 public:
  GroupCases(const TuningTask& task, Denormals denormals, PhaseTimer& phases);

  // The case of `group` with the values of its inputs and outputs, in its order, and those of a run
  // on special values, if these are judged.
  GroupCase make(const Graph& group, std::vector<Tensor> inputs, std::vector<Tensor> outputs);

  // For a group with a refused candidate: adds values that take long to compute and may show that
  // the candidate is fine. Returns false if there are no such values.
  bool add_limits(GroupCase& group);

 private:
  verification::Judge first_judge_of(const Graph& group) const;
  bool add_exact(GroupCase& group);
  bool add_magnitudes(GroupCase& group);

  const TuningTask& task_;
  Denormals denormals_;
  PhaseTimer& phases_;
  ThreadPool pool_;
  int64_t graph_bytes_;
  KnownProducts known_magnitudes_;
  KnownProducts known_specials_;
  KnownProducts known_limits_;
};

}  // namespace tessera::tuning
