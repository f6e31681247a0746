// Finds small subgraphs that match a textual pattern, so that backends describe fusions as data.
// docs/backends.md documents the language for authors of plug-ins; in short:
//
//   sigmoid = Sigmoid(x); swish = Mul(x, sigmoid)
//   conv = Conv(_, #, ...); sum = Add(conv, _); Relu|Sigmoid(sum)
//
//   pattern   step; step; ...        whitespace is ignored
//   step      name = ops(inputs)     a step that no other step reads needs no name;
//                                    name! = ...: other nodes may read its outputs too
//   ops       Op|domain:Op|...       the first one that matches; default domain: ONNX's own
//             Op{axis=-1, mode='x'}  with these attributes (numbers, 'strings', [lists] of either)
//   inputs    omitted                any inputs, also none
//             ...                    as the last one: any further inputs
//             _                      any value, also none
//             #                      any constant
//             0.5                    a constant of one element with this value
//             name, name.1           the first, second output of an earlier step
//             x                      any value; the same one everywhere in the pattern
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace tessera {

struct PatternInput {
  enum class Kind : uint8_t { Any, Constant, Number, Capture, StepOutput };
  Kind kind = Kind::Any;
  double number = 0;
  size_t capture = 0;  // index into Pattern::captures
  size_t step = 0;     // index into Pattern::steps
  size_t output = 0;   // of that step
};

// The required value of an attribute. Numbers match an int or a float, lists the lists of either.
using PatternAttribute =
    std::variant<double, std::string, std::vector<double>, std::vector<std::string>>;

struct PatternOp {
  std::string domain;  // "" is ONNX's own
  std::string name;
  std::vector<std::pair<std::string, PatternAttribute>> attributes;
};

struct PatternStep {
  std::string name;
  std::vector<PatternOp> ops;
  std::vector<PatternInput> inputs;
  bool allows_more_inputs = false;
  bool allows_outside_readers = false;
  std::vector<int> output_reads;  // by output, up to the last one read: reads by later steps
};

// How the search reaches a step from the steps found before.
struct PatternSearch {
  size_t step = 0;
  // Set if no earlier step of the search reads this one: it is then searched among the readers of
  // this input's value, which is known by then.
  std::optional<size_t> known_input = std::nullopt;
};

struct Pattern {
  std::string text;
  std::vector<PatternStep> steps;
  std::vector<std::string> captures;
  std::vector<PatternSearch> search;  // each step once; the last step first
};

// Throws InvalidArgument whose place is the position in `text` of the error.
Pattern parse_pattern(std::string_view text);

// An index of a graph for matching, to be shared by many patterns. Valid as long as the graph is
// unchanged.
class PatternIndex {
 public:
  explicit PatternIndex(const Graph& graph);

  NodeId producer(ValueId value) const { return producers_[at(value)]; }
  // The index of the value among its producer's outputs.
  size_t output_of(ValueId value) const { return outputs_[at(value)]; }
  // Whether it is an output of the graph, kept, or captured by a body.
  bool is_needed(ValueId value) const { return is_needed_[at(value)]; }
  // One entry for each input that reads the value and for each body that captures it; ascending.
  const std::vector<NodeId>& readers(ValueId value) const { return readers_[at(value)]; }
  const std::vector<NodeId>& nodes_of(const std::string& domain, const std::string& op) const;

 private:
  static size_t at(ValueId value) { return static_cast<size_t>(value.index); }

  std::vector<NodeId> producers_;
  std::vector<size_t> outputs_;
  std::vector<bool> is_needed_;
  std::vector<std::vector<NodeId>> readers_;
  std::map<std::pair<std::string, std::string>, std::vector<NodeId>> nodes_;
};

// All matches of `pattern` in `graph`: the node of each step, in the pattern's order. Sorted by the
// node of the last step. Matches may overlap, but no two consist of the same nodes.
//
// A match is a group that can run as one:
//  - Its steps are different nodes. Values that an input refers to other than by a step (`_`, `x`,
//    omitted inputs) come from outside the match.
//  - If another step reads a step, nothing outside the match needs any of its outputs: no node,
//    body, kept value or graph output. A step marked with `!` is exempt.
//  - No path leads from the match through an outside node back into the match.
// Inputs of Add, Mul, Max, Min, Sum, Mean, And, Or, Xor, Equal and the bitwise ops match in any
// order.
std::vector<std::vector<NodeId>> find_matches(const Graph& graph, const PatternIndex& index,
                                              const Pattern& pattern);

}  // namespace tessera
