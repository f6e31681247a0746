// In which order steps run so that little memory is live at once: plain data, no plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct OrderStep {
  std::vector<int> after;   // the steps that it waits for
  std::vector<int> blocks;  // that it reads or writes, each once
  int64_t workspace_bytes = 0;
  // Block `to` takes the place of block `from` where no step has used the one before, and none
  // will use the other any more.
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
  int64_t peak_bytes = 0;   // live at once, at most, workspaces included
  bool is_smallest = true;  // proven: no order has a lower peak
};

struct OrderOptions {
  // Steps to look at, some nanoseconds each. No clock: equal problems get equal orders.
  int64_t effort = 300'000;
};

// The order with the lowest peak that is found; the given one where none is lower.
//
// Where all steps wait for one step or are waited for by it, the order is cut: no piece can change
// another's peak, and only those above all others are worth ordering. A piece is searched over the
// sets of steps that can have run, the one with the lowest peak so far first, as in "Ordering
// Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices" (Ahn et
// al., MLSys 2020); a step that frees as much as it takes and lifts no peak runs at once. Where a
// piece has too many sets, a beam of the best of each size is followed instead. Pure.
StepOrder order_steps(const OrderProblem& problem, const OrderOptions& options = {});

// Bytes live at once, at most, when steps run as `order` says.
int64_t peak_of(const OrderProblem& problem, const std::vector<int>& order);

// Says what is wrong with `order`, or "": a step that is missing or comes twice, or before one that
// it waits for. Shares no code with order_steps().
std::string explain_violation(const OrderProblem& problem, const std::vector<int>& order);

}  // namespace tessera
