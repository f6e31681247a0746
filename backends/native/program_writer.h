// Writes the program of one node or a group, node by node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "program.h"
#include "tessera/backend.h"

namespace tessera::native {

class ProgramWriter {
 public:
  // What an operand or a step gives; counts up from 0.
  using Id = int;

  explicit ProgramWriter(plugin::Type result) : result_(std::move(result)) {}

  const plugin::Type& result() const { return result_; }

  // The elements of `value`, which an earlier node gave or which is read from outside. `dims` are
  // its dimensions where they are not those that it has (old ops put ones in between).
  Id read(const plugin::Value& value, std::optional<std::vector<int64_t>> dims = std::nullopt);
  // Names an input that nothing depends on: every input of a node is one of its candidate.
  void mention(const plugin::Value& value);
  // One number for all elements.
  Id number(int32_t type, double value);
  // A function with elements of `type` as its result. Throws Failure (TESSERA_UNSUPPORTED) where
  // `loops` is empty; `what` is named then.
  Id apply(std::string_view what, const LoopSet& loops, int32_t type, const std::vector<Id>& from,
           Parameters parameters = {});
  // `value`, an output of the node at hand, is `id`.
  void give(const plugin::Value& value, Id id) { given_[value.id()] = id; }

  int32_t type_of(Id id) const { return entries_[static_cast<size_t>(id)].type; }
  // The result lies row-major: in other layouts the loops would fail on padding.
  void demand_row_major() { is_row_major_ = true; }

  // Values by input port.
  const std::vector<int32_t>& ports() const { return ports_; }
  // The program whose result is `value`; nullopt where it needs too much at once.
  std::optional<ProgramText> finish(const plugin::Value& value) const;
  // Whether the result, and each operand that lies as it does, may be in any dense layout.
  bool can_be_dense(const ProgramText& text) const;

 private:
  struct Entry {
    int32_t type = TESSERA_FLOAT32;
    int operand = -1;
    int step = -1;
  };
  struct Step {
    LoopSet loops;
    std::vector<Id> from;
    Parameters parameters;
  };

  Id add_operand(ProgramOperand operand, int32_t type);

  plugin::Type result_;
  std::vector<Entry> entries_;
  std::vector<ProgramOperand> operands_;
  std::vector<Step> steps_;
  std::vector<int32_t> ports_;
  std::map<int32_t, Id> given_;
  bool is_row_major_ = false;
};

}  // namespace tessera::native
