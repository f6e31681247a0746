// A plan for a family of shapes: the same steps for all sizes of the inputs. Kernels get sizes as
// arguments (tessera_built_for), so only the dimensions, byte counts and offsets of a plan change.
// docs/decisions/0067-shape-families.md has the reasons.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/execution_plan.h"

namespace tessera {

// By value of a graph and axis: the dimensions that differ among the shapes for which a plan is
// wanted. Empty: nothing is known about that.
using VaryingDims = std::vector<std::vector<bool>>;

// "", or why `candidate` for `graph` cannot be part of a plan for a family: its kernel is built for
// all of its dimensions or one of `varying`, it is a view or joint value of parts, whose positions
// depend on sizes, or it runs on a device.
std::string explain_fixed_sizes(const Candidate& candidate, const Graph& graph,
                                const VaryingDims& varying = {});

// What a plan that was made for some shapes does for others. Made once for a plan; resize() then
// takes time in proportion to the buffers of the plan, and allocates nothing.
class PlanFamily {
 public:
  // The dimensions of the values of a graph, by ValueId::index; -1: known only in the run. Those of
  // values that the plan has no buffer for are ignored.
  using ValueDims = std::span<const std::vector<int64_t>>;

  // `plan` was made for `graph` and `offers`, with `layouts`, which must outlive this.
  PlanFamily(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
             const ExecutionPlan& plan);

  // "", or why the plan is for the shapes alone for which it was made. Then resize() must not be
  // called.
  const std::string& explain_fixed() const { return fixed_; }

  // Whether the plan can have these sizes. If so, sets them in `plan`, a copy of the plan of the
  // constructor that was perhaps resized before; if not, `plan` is not changed. All dimensions must
  // be at least 0. Throws InvalidModel if a size exceeds 64 bits.
  bool resize(ValueDims dims, ExecutionPlan& plan);
  // From now on, sizes at which nothing is larger than after the last resize() get its offsets, and
  // its arena.
  void keep_offsets();

 private:
  // A dimension of a value.
  struct Place {
    int32_t value = 0;
    int32_t axis = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct FixedDim {
    Place place;
    int64_t size = 0;
  };
  // A part of the arena, and the range of `below_` that lists the blocks below it which are live at
  // the same time.
  struct Block {
    int buffer = -1;  // the owner; -1: the workspace of `step`
    int step = -1;    // the first that uses it
    int end = 0;      // one past the last
    size_t first_below = 0;
    size_t end_below = 0;
    int64_t bytes = 0;
    int64_t offset = 0;
    // Those of keep_offsets().
    int64_t kept_bytes = -1;
    int64_t kept_offset = 0;
  };

  void note_buffers(const ExecutionPlan& plan);
  void note_candidate(const Candidate& candidate);
  void note_blocks(const ExecutionPlan& plan);
  bool has_sizes_of_family(ValueDims dims) const;
  bool measure(ValueDims dims, const ExecutionPlan& plan);
  int64_t workspace_of(ValueDims dims, const ExecutionPlan& plan, size_t step);
  void place();
  void stack();
  void sum_live_bytes();

  const Graph& graph_;
  const Offers& offers_;
  const LayoutTable& layouts_;
  std::string fixed_;
  std::vector<std::vector<int64_t>> planned_;  // by value: its dimensions in the plan; empty: none
  std::vector<int32_t> values_;                // those that have a buffer
  std::vector<FixedDim> fixed_dims_;           // constants in kernels
  std::vector<std::pair<Place, Place>> equal_dims_;
  std::vector<Block> blocks_;  // each after those below it
  std::vector<size_t> below_;
  int64_t arena_bytes_ = 0;
  int64_t kept_arena_bytes_ = 0;
  int64_t live_bytes_ = 0;  // at most, at the same time
  // Of the sizes that resize() looks at.
  TensorType type_;                        // scratch
  std::vector<int64_t> bytes_;             // by buffer
  std::vector<int64_t> workspaces_;        // by step
  std::vector<int64_t> grown_;             // by step: how much more is live than before it
  std::vector<tessera_buffer> arguments_;  // of a candidate with workspace_for
};

}  // namespace tessera
