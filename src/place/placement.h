// The choice among candidates as plain data: no graph, no library, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tessera/error.h"

namespace tessera {

// A value in a layout, both as numbers of the problem.
struct PlacementPort {
  int value = 0;
  int layout = 0;
  // What an input of a kernel takes without a copy.
  int64_t alignment_bytes = 64;
  bool accepts_strides = false;
  // Where an output of a view lies in input 0, an input of a joint candidate in output 0.
  int64_t offset_bytes = 0;
  bool has_strides = false;
  int64_t bytes = 0;  // that it takes
};

struct PlacementCandidate {
  // Of memory. A view's outputs are parts of its input, a joint one's inputs parts of its output:
  // neither runs, but others may have to copy; see view_copies.h.
  enum class Sharing : uint8_t { None, View, Joint };
  Sharing sharing = Sharing::None;
  int preference = 0;  // lower is better, whatever the price
  double seconds = 0;
  std::vector<int> nodes;  // ascending
  std::vector<PlacementPort> inputs;
  std::vector<PlacementPort> outputs;
  int64_t kept_bytes = 0;       // that its library and its packs hold on to
  int64_t workspace_bytes = 0;  // while it runs
};

struct PlacementNode {
  std::vector<int> inputs;  // values
  std::vector<int> outputs;
};

constexpr int64_t kNoByteLimit = std::numeric_limits<int64_t>::max();

struct PlacementProblem {
  std::vector<PlacementNode> nodes;  // in an order in which they can run
  int value_count = 0;
  int layout_count = 1;  // layout 0 is the default: constants are in it, and inputs mostly
  std::vector<PlacementCandidate> candidates;
  // Price of converting value v from layout a to b: conversion_seconds[v] * hops[a][b], unless
  // conversion_prices has a row for v: then that row's element a * layout_count + b.
  std::vector<double> conversion_seconds;
  std::vector<std::vector<double>> conversion_hops;
  std::vector<std::vector<double>> conversion_prices;  // by value; a row or all may be empty
  std::vector<int> results;  // values that are needed in layout 0 at the end
  // Values that are read without being converted when run: constants.
  std::vector<bool> is_constant;
  // Candidates that may not be used (their kernel could not be built).
  std::vector<bool> is_forbidden;  // empty: none
  // By layout, whether it is sparse; empty: none is.
  std::vector<bool> is_sparse;
  // By value, the layout in which the caller feeds it; empty: all in the default one.
  std::vector<int> fed_layout;
  int64_t kept_bytes_limit = kNoByteLimit;       // of the sum over what is chosen
  int64_t workspace_bytes_limit = kNoByteLimit;  // of each
};

// Where a node has candidates that take or give sparse values and others that do not, price decides
// and not preference: gives the candidates that are then forbidden, those of `problem` included.
// Goes through the nodes in order, comparing seconds with the conversions of inputs, where values
// are in the layouts that came of the nodes before. A candidate of 0 seconds has no idea of its
// price and wins against no sparse one. With `keeps_sparse`, sparse ones are taken whatever they
// cost. Pure.
std::vector<bool> choose_storage(const PlacementProblem& problem, bool keeps_sparse);

struct Placement {
  // Candidates in an order in which they can run. Each node is in exactly one of them.
  std::vector<int> chosen;
};

// Thrown where no choice was found that computes every node: node() is one that is left over.
class Uncovered : public Error {
 public:
  Uncovered(int node, const std::string& place)
      : Error(ErrorKind::Unsupported, place, "no backend can compute this node"), node_(node) {}

  int node() const { return node_; }

 private:
  int node_ = 0;
};

double conversion_price(const PlacementProblem& problem, int value, int from, int to);

// The layouts on the cheapest way from one of `present` to `wanted`, both ends included: through
// others where that is cheaper than the price of the one conversion. Empty where there is no way.
// `price(from, to)` may be infinite.
std::vector<int> cheapest_way(int layout_count, const std::vector<int>& present, int wanted,
                              const std::function<double(int from, int to)>& price);

// The layout in which the caller gives or gets `value`.
int fed_layout(const PlacementProblem& problem, int value);

// What `placement` takes: its candidates, and the conversions that their inputs and the results
// need, each made once and from where and on the way that is cheapest.
double predicted_seconds(const PlacementProblem& problem, const Placement& placement);

// Chooses group by group: for each node the candidates of lowest preference value, larger groups
// first, as long as the groups chosen form no cycle; then, in the order in which groups run, of the
// candidates for one group and preference the one with the least seconds, conversions of its inputs
// and copies that it forces, the earlier one where two are equal. Pure.
// Throws Uncovered for a node without a candidate, or whose candidates cannot be taken beside the
// groups that come first: `node_names` are for its message.
Placement choose_in_order(const PlacementProblem& problem,
                          const std::vector<std::string>& node_names);

// Chooses by price alone, whatever the preference, and gives the cheapest by predicted_seconds()
// of: what choose_in_order() gives for `contender` (the same problem with other candidates
// forbidden, the prices of a world without them); and two covers of the nodes, its own and a greedy
// one, each with the layouts that a descent finds.
//
// The greedy cover goes through the nodes in order and gives each the group with the least price
// over what its other nodes would cost alone, as long as no cycle closes. The descent starts once
// for each layout, with candidates in that layout where there are any, and then changes one
// candidate at a time to what makes it and the conversions around it cheapest, until nothing gets
// cheaper. Not optimal: a fusion is weighed before layouts are known. Pure.
// Throws as choose_in_order() does.
Placement choose_by_price(const PlacementProblem& problem, const Placement& contender,
                          const std::vector<std::string>& node_names);

}  // namespace tessera
