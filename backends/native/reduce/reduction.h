// Reductions of float32 tensors over any axes, for the Reduce family and the global poolings.
// reduction_kernels.h has the loops.
#pragma once

#include <cstdint>
#include <string_view>

#include "reduce/reduced_axes.h"
#include "reduce/reduction_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// The function that is applied to an accumulator in the end.
enum class Finish : uint8_t { AsIs, Mean, Root, Logarithm };

struct ReductionKind {
  ReduceOp op = ReduceOp::Sum;
  Finish finish = Finish::AsIs;
};

// The kind of an op of the Reduce family ("ReduceSum", ...).
ReductionKind reduction_kind(std::string_view op);

// A reduction of a tensor of a fixed shape. The result is dense, with the kept axes in order. To
// make one allocates nothing.
class Reduction {
 public:
  Reduction(ReductionKind kind, ReducedAxes axes, int threads);

  // Whether threads share results, which they combine in the workspace. With one thread they do
  // not.
  bool shares_results() const { return pieces_ > 1; }
  int64_t workspace_bytes() const;
  void run(plugin::RunContext& context, const float* from, float* to) const;

 private:
  // One part of the work: some results, each from some of its elements.
  struct Part {
    int64_t first = 0;  // result
    int64_t results = 0;
    int64_t begin = 0;  // of the innermost reduced axis
    int64_t end = 0;
    int64_t outer_begin = 0;  // of the other reduced axes together
    int64_t outer_end = 0;
  };

  void split(int threads);
  Part part_at(int64_t index) const;
  void accumulate(const ReductionLoops& loops, const Part& part, const float* from,
                  const float* shifts, double* accumulators) const;
  void accumulate_rows(const ReductionLoops& loops, const Part& part, const float* from,
                       const float* shifts, double* accumulators) const;
  void accumulate_columns(const ReductionLoops& loops, const Part& part, const float* from,
                          const float* shifts, double* accumulators) const;
  void accumulate_narrow(const ReductionLoops& loops, const Part& part, const float* from,
                         const float* shifts, double* accumulators) const;
  void accumulate_all(plugin::RunContext& context, const ReductionLoops& loops, Finish finish,
                      const float* from, const float* shifts, float* to) const;
  void finish_results(Finish finish, const double* accumulators, const float* shifts, int64_t count,
                      float* to) const;

  ReductionKind kind_;
  ReductionLoops loops_;
  ReductionLoops max_loops_;  // for ExponentialSum, which first finds the largest element
  int64_t results_ = 1;
  int64_t elements_per_result_ = 1;  // elements of each result
  bool is_columns_ = false;
  int64_t width_ = 1;   // columns: contiguous results
  int64_t tile_ = 1;    // columns: of these in one part
  StridedAxes kept_;    // without the columns
  StridedAxes outer_;   // reduced axes but the innermost
  int64_t length_ = 1;  // of the innermost reduced axis
  int64_t stride_ = 1;
  int64_t batch_ = 1;   // rows: results in one part
  int64_t pieces_ = 1;  // parts of the elements of each result
  bool splits_outer_ = false;
  int64_t parts_ = 1;
  int64_t grain_ = 1;
};

}  // namespace tessera::native
