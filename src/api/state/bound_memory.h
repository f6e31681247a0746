// Memory of the caller to which inputs and outputs are bound (Executor::bind_input, bind_output).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/state/declared_shapes.h"
#include "api/state/shape_plan.h"
#include "tessera/tessera.h"

namespace tessera {

// Memory stays bound when the plan changes; attach() passes it to the current plan. `plan` is the
// current plan in all calls. Not thread-safe.
class BoundMemory {
 public:
  // `declared` must outlive this object. With `fixed_shapes`, all memory must have the bound
  // shapes.
  BoundMemory(const DeclaredShapes& declared, bool fixed_shapes)
      : declared_(declared), fixed_shapes_(fixed_shapes), inputs_(declared.input_count()) {}

  // Both throw InvalidArgument if the memory does not fit this input or output in any plan.
  void bind_input(ShapePlan& plan, size_t index, const AnyTensor& memory);
  void bind_output(ShapePlan& plan, size_t index, Tensor memory);
  void clear(ShapePlan& plan);

  // The dimensions of the memory that an input is bound to; null if it is bound to none.
  const Dims* input_dims(size_t index) const;

  // Binds the memory in `plan`, unless that was done. Throws InvalidArgument if the memory of an
  // output does not have its shape in `plan`.
  void attach(ShapePlan& plan);
  // Unbinds the memory in `plan`, before another plan becomes the current one.
  void detach(ShapePlan& plan);

  // Whether attach() and check_complete() have succeeded since the last change.
  bool is_complete() const { return is_complete_; }
  // Throws InvalidArgument, naming it, if an input that is read or an output is not bound.
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
