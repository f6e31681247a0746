// Memory of the caller that inputs and outputs are bound to (Executor::bind_input, bind_output).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/declared_shapes.h"
#include "api/shape_plan.h"
#include "tessera/tessera.h"

namespace tessera {

// Stays bound from plan to plan; the current plan has it once attach() was called. `plan` is the
// current plan in all calls. For one thread.
class BoundMemory {
 public:
  // `declared` must outlive it. With `fixed_shapes` all memory is for the shapes that were bound.
  BoundMemory(const DeclaredShapes& declared, bool fixed_shapes)
      : declared_(declared), fixed_shapes_(fixed_shapes), inputs_(declared.input_count()) {}

  // Both throw InvalidArgument if the memory cannot be for this input or output of any plan.
  void bind_input(ShapePlan& plan, size_t index, const AnyTensor& memory);
  void bind_output(ShapePlan& plan, size_t index, Tensor memory);
  void clear(ShapePlan& plan);

  // The dimensions of the memory that an input is bound to; null if it is bound to none.
  const Dims* input_dims(size_t index) const;

  // Hands the memory to `plan`, unless that has it. Throws InvalidArgument if the memory of an
  // output is not for the shapes of `plan`.
  void attach(ShapePlan& plan);
  // Takes it back, before another plan becomes the current one.
  void detach(ShapePlan& plan);

  // Whether attach() and check_complete() have succeeded since the last change.
  bool is_complete() const { return is_complete_; }
  // Throws InvalidArgument, naming an input that is read or an output that is bound to nothing.
  void check_complete(const ShapePlan& plan);

 private:
  const DeclaredShapes& declared_;
  bool fixed_shapes_;
  std::vector<std::optional<AnyTensor>> inputs_;  // by input
  std::map<std::string, Tensor> outputs_;         // by name
  bool is_attached_ = true;
  bool is_complete_ = false;
};

}  // namespace tessera
