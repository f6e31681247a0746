// Builds the program of one node or a group, node by node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elementwise/program.h"
#include "tessera/backend.h"

namespace tessera::native {

class ProgramBuilder {
 public:
  // An operand, or the result of a step; counts up from 0.
  using Id = int;

  explicit ProgramBuilder(plugin::Type result) : result_(std::move(result)) {}

  const plugin::Type& result() const { return result_; }

  // The elements of `value`: the result of an earlier node, or an operand. `dims` replaces its
  // dimensions (old versions of ops insert ones).
  Id read(const plugin::Value& value, std::optional<std::vector<int64_t>> dims = std::nullopt);
  // Adds an input port without an operand: a candidate must have every input of its nodes.
  void add_input(const plugin::Value& value);
  // A scalar constant for all elements.
  Id number(int32_t type, double value);
  // The node to which the next steps belong.
  void begin_node(const plugin::Node& node);
  // Appends a step that applies a function with results of `type`. Throws Failure
  // (TESSERA_UNSUPPORTED) with the name `what` if `loops` is empty.
  Id apply(std::string_view what, const LoopSet& loops, int32_t type, const std::vector<Id>& from,
           Parameters parameters = {});
  // Declares `id` to be `value`, an output of a node.
  void set(const plugin::Value& value, Id id) { given_[value.id()] = id; }

  // The operand of the unary function `what` (as told to apply()) whose result is `id`; nullopt if
  // `id` is no such result.
  std::optional<Id> argument_of(std::string_view what, Id id) const;

  int32_t type_of(Id id) const { return entries_[static_cast<size_t>(id)].type; }
  // Restricts the result to row-major: the loops would fail on the padding of other layouts.
  void require_row_major() { is_row_major_ = true; }

  // The value of each input port.
  const std::vector<int32_t>& ports() const { return ports_; }
  // The program with the result `value`; nullopt if it needs too many operands, registers or axes.
  std::optional<Program> finish(const plugin::Value& value) const;
  // Whether the result and the operands in its layout may be in any dense layout.
  bool can_be_dense(const Program& text) const;

 private:
  struct Entry {
    int32_t type = TESSERA_FLOAT32;
    int operand = -1;
    int step = -1;
  };
  struct Step {
    std::string what;
    LoopSet loops;
    std::vector<Id> from;
    Parameters parameters;
    std::string location;
  };

  Id add_operand(ProgramOperand operand, int32_t type);
  // The steps that `last` depends on; lowering may have left others unused.
  std::vector<bool> steps_for(Id last) const;

  plugin::Type result_;
  std::vector<Entry> entries_;
  std::vector<ProgramOperand> operands_;
  std::vector<Step> steps_;
  std::vector<int32_t> ports_;
  std::map<int32_t, Id> given_;
  std::string location_;  // of the present node
  bool is_row_major_ = false;
};

}  // namespace tessera::native
