// The choice among candidates as plain data: no graph, no library, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tessera/error.h"

namespace tessera {

// A value in a layout. Both are indices of the problem.
struct PlacementPort {
  int value = 0;
  int layout = 0;
  // Without a copy, a kernel's input accepts addresses with this alignment, and strides only if
  // accepts_strides.
  int64_t alignment_bytes = 64;
  bool accepts_strides = false;
  // The offset of a view's output in input 0, or of a joint candidate's input in output 0.
  int64_t offset_bytes = 0;
  bool has_strides = false;
  int64_t bytes = 0;  // size of the tensor
};

struct PlacementCandidate {
  // Some candidates share memory: the outputs of a view are parts of its input; the inputs of a
  // joint candidate are parts of its output. Neither runs a kernel, but both may make copies
  // necessary; see view_copies.h.
  enum class Sharing : uint8_t { None, View, Joint };
  Sharing sharing = Sharing::None;
  int preference = 0;  // lower is better, regardless of the price
  // Computes its nodes in one pass over memory (TESSERA_CANDIDATE_ONE_PASS).
  bool is_one_pass = false;
  double seconds = 0;
  std::vector<int> nodes;  // ascending
  std::vector<PlacementPort> inputs;
  std::vector<PlacementPort> outputs;
  int64_t workspace_bytes = 0;  // while it runs
};

struct PlacementNode {
  std::vector<int> inputs;  // values
  std::vector<int> outputs;
};

// The index of no candidate, node, step, group or layout.
constexpr int kNoIndex = -1;
constexpr int64_t kNoByteLimit = std::numeric_limits<int64_t>::max();

struct PlacementProblem {
  std::vector<PlacementNode> nodes;  // in an order in which they can run
  int value_count = 0;
  int layout_count = 1;  // layout 0 is the default; constants and most inputs have it
  std::vector<PlacementCandidate> candidates;
  // The price of converting value v from layout a to b is conversion_seconds[v] * hops[a][b]. If
  // conversion_prices has a row for v, the price is that row's element a * layout_count + b
  // instead.
  std::vector<double> conversion_seconds;
  std::vector<std::vector<double>> conversion_hops;
  std::vector<std::vector<double>> conversion_prices;  // by value; any row or all may be empty
  // By value: the price of copying it within its layout. If empty, copies cost conversion_seconds.
  std::vector<double> copy_seconds;
  std::vector<int> results;  // values that the caller receives, in fed_layout()
  // By value. Constants are converted before the first run, so their conversions cost nothing.
  std::vector<bool> is_constant;
  // By candidate: whether it may not be used (its kernel could not be built).
  std::vector<bool> is_forbidden;  // empty: none
  // By layout: whether it is sparse. Empty: no layout is sparse.
  std::vector<bool> is_sparse;
  // By value: the layout in which the caller feeds it. Empty: all in the default layout.
  std::vector<int> fed_layout;
  int64_t workspace_bytes_limit = kNoByteLimit;  // for each chosen candidate
};

// Decides by price, not by preference, between sparse and dense candidates of a node. A candidate
// is sparse if any of its ports has a sparse layout. Returns the candidates that are forbidden as a
// result, in addition to those that `problem` forbids.
//
// Visits the nodes in order and compares seconds plus conversions of inputs; the layouts of values
// follow from the decisions for earlier nodes. A dense candidate with 0 seconds has no estimate and
// never wins against a sparse one. With `keeps_sparse`, sparse candidates win at any price. Pure.
std::vector<bool> choose_storage(const PlacementProblem& problem, bool keeps_sparse);

struct Placement {
  // Candidates in an order in which they can run. Each node is in exactly one of them.
  std::vector<int> chosen;
};

// Thrown if no choice computes every node. node() is one of the nodes that remain uncovered.
class Uncovered : public Error {
 public:
  Uncovered(int node, const std::string& location)
      : Error(ErrorKind::Unsupported, location, "no backend can compute this node"), node_(node) {}

  int node() const { return node_; }

 private:
  int node_ = 0;
};

double conversion_price(const PlacementProblem& problem, int value, int from, int to);

// Returns the layouts on the cheapest path of conversions from any of `present` to `wanted`, both
// ends included. The path goes through other layouts if that is cheaper than a direct conversion.
// Empty if there is no path. `price(from, to)` may be infinite.
std::vector<int> cheapest_conversions(int layout_count, const std::vector<int>& present, int wanted,
                                      const std::function<double(int from, int to)>& price);

// The layout in which the caller feeds or receives `value`.
int fed_layout(const PlacementProblem& problem, int value);

// Returns the predicted time of `placement`: its candidates, the copies that they force, and the
// conversions that their inputs and the results need. Each value is converted to a layout once, on
// the cheapest path from the layouts in which it exists.
double predicted_seconds(const PlacementProblem& problem, const Placement& placement);

// Chooses in two stages. First it accepts groups, as long as they form no cycle, in this order:
//  - groups with a node that no one-pass group of several nodes computes, by ascending preference
//    value, larger groups first;
//  - one-pass groups of several nodes, larger groups first, whatever their preference;
//  - all other groups, sorted like the first ones.
// Then, in the order in which the groups run, it takes for each group the candidate with the lowest
// sum of seconds, conversions of its inputs and forced copies. If sums are equal, it takes the
// earlier candidate. Pure. Throws Uncovered for a node that has no candidate, or whose candidates
// conflict with groups that were accepted earlier. `node_names` are for the message.
Placement choose_in_order(const PlacementProblem& problem,
                          const std::vector<std::string>& node_names);

// Chooses by price alone, regardless of preference. Returns the cheapest, by predicted_seconds(),
// of: `contender`, a result of choose_in_order() for the same problem, possibly with other
// candidates forbidden (if `contender` breaks a rule of `problem`, choose_in_order() for `problem`
// replaces it); and the results of a local search for two covers of the nodes: the contender's
// cover and a greedy one.
//
// The greedy cover visits the nodes in order and assigns to each the group with the lowest price
// minus what its other nodes would cost alone, as long as no cycle arises. The local search
// (coordinate descent) starts once for each layout, with candidates in that layout if there are
// any. It then changes one candidate at a time to minimise the sum of its price and the conversions
// around it, until nothing gets cheaper. The result is not optimal: fusion is decided before
// layouts are known. Pure. Throws as choose_in_order() does.
Placement choose_by_price(const PlacementProblem& problem, const Placement& contender,
                          const std::vector<std::string>& node_names);

}  // namespace tessera
