// Finds an order of steps in which little memory is live at the same time. Works on plain data,
// without a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct OrderStep {
  std::vector<int> after;   // the steps that must run before it
  std::vector<int> blocks;  // that it reads or writes, without duplicates
  int64_t workspace_bytes = 0;
  // Block `to` reuses the memory of block `from` if this step is the first that uses `to` and the
  // last that uses `from`.
  struct InPlace {
    int from = 0;
    int to = 0;
  };
  std::vector<InPlace> in_place;
};

// A block is live from the first step that uses it to the last.
struct OrderProblem {
  std::vector<OrderStep> steps;      // in an order in which they can run
  std::vector<int64_t> block_bytes;  // by block, >= 0
};

struct StepOrder {
  std::vector<int> steps;
  int64_t peak_bytes = 0;   // the maximum live at the same time, with workspaces
  bool is_smallest = true;  // proven: no order has a lower peak
};

struct OrderOptions {
  // The number of steps to evaluate, at some nanoseconds each. Not a time limit, so that equal
  // problems get equal orders.
  int64_t effort = 300'000;
};

// Returns the order with the lowest peak that was found, or the given order if none is better.
//
// The order is cut into pieces at every step that all earlier steps precede and all later steps
// follow. No piece can change the peak of another, so only a piece whose peak exceeds all others is
// worth reordering. A piece is searched over the sets of steps that can have run, by lowest peak
// first, as in "Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for
// Edge Devices" (Ahn et al., MLSys 2020). A step that frees at least as much as it allocates and
// does not raise the peak runs immediately. If a piece has too many sets, a beam search keeps only
// the best sets of each size. Pure.
StepOrder order_steps(const OrderProblem& problem, const OrderOptions& options = {});

// The maximum number of bytes live at the same time if the steps run in this order.
int64_t peak_of(const OrderProblem& problem, const std::vector<int>& order);

// Returns what is wrong with `order`, or "": a step that is missing, repeated, or before a step
// that must precede it. Shares no code with order_steps().
std::string explain_violation(const OrderProblem& problem, const std::vector<int>& order);

}  // namespace tessera
