// The interface of measuring: plain data that can be sent to another process, and Bench, which
// measures in this process (group_bench.h) or in another one (worker_bench.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/contract/candidate_id.h"
#include "base/threads/denormals.h"
#include "graph/graph.h"
#include "tessera/data_type.h"
#include "tessera/tensor.h"
#include "verify/error_limits.h"

namespace tessera::tuning {

// A group of nodes extracted from a bound graph, with the values of its inputs and outputs in a
// real run.
struct GroupCase {
  Graph graph;                     // from extract_group(); all types known, constants with elements
  std::vector<Tensor> inputs;      // in the order of graph.inputs
  std::vector<Tensor> outputs;     // in the order of graph.outputs, from the reference kernels
  std::vector<Tensor> magnitudes;  // sum of magnitudes of each output's terms; empty if unknown
  verification::Judge judge = verification::Judge::Wide;
  // ErrorLimits of the outputs, for Judge::Limits; else empty.
  std::vector<Tensor> exact = {};
  std::vector<Tensor> spreads = {};
  int threads = 1;                        // of the pool; candidates for all threads run on it
  int precision = 0;                      // TESSERA_PRECISION_
  int nan = 0;                            // TESSERA_NAN_
  int accuracy = 0;                       // TESSERA_ACCURACY_
  Denormals denormals = Denormals::Keep;  // the rule while kernels run
  // The values for inputs with special values (verify/special_values.h), in the same orders; empty:
  // the handling of special values is not judged.
  std::vector<Tensor> special_inputs = {};
  std::vector<Tensor> special_outputs = {};
  // The number of bytes that the rest of the graph reads and writes between two runs of the group.
  int64_t bytes_between = 0;
};

// One conversion step from a layout to another.
struct ConversionKey {
  std::string backend;  // the provider of its function
  std::string from;
  std::string to;
  DataType element = DataType::Undefined;
  std::vector<int64_t> dims;
  int threads = 1;
  auto operator<=>(const ConversionKey&) const = default;
};

// Where the weights are when a kernel starts. Cold: evicted from the processor's caches, as in a
// network larger than these. Warm: in the last-level cache, but the rest of the graph has displaced
// weights and outputs from the cores' own caches. Other inputs have just been written in both
// cases.
enum class Weights : uint8_t { Cold, Warm };

// The result of building or running. A failure excludes the candidate but does not stop tuning.
struct Outcome {
  double seconds = 0;
  std::string reason;  // of the failure; "" if none
  // The measuring process was lost (it crashed, hung, or ran out of memory) and has been replaced
  // by one with the same group loaded and nothing built. Never true in this process.
  bool is_lost = false;
  // For build(): the plug-in's proposals for the group alone lack the candidate. Another bench may
  // know it.
  bool is_unknown = false;
  // For run() and convert(): another process preempted this one, so `seconds` is too
  // long. Never true for a single thread, whose own CPU time is measured.
  bool was_preempted = false;
  // For run() and convert(): the slowdown of the cores relative to their best, during the run and
  // exceeded one time in ten (ContentionProbe). 1 if unknown.
  double slowdown = 1;
  double slowdown_p90 = 1;
  bool is_fine() const { return reason.empty(); }
};

struct Checked {
  // The largest |found - expected|, relative to the expected number, a tenth of the largest of them
  // or, if known, the sum of magnitudes of the terms, by the largest of these; 0 if the result must
  // be equal and is.
  double error = 0;
  double tolerance = 0;
  std::string reason;  // why the candidate may not be used; "": it may
  bool is_lost = false;
  bool is_fine() const { return reason.empty(); }
};

// The time limit for building a candidate, unless its backend announced a longer build.
inline constexpr double kBuildSeconds = 60;

// The time limit for building: `limit_seconds` if nothing was announced, else three times the
// announced time, at most an hour.
inline double build_limit(double limit_seconds, double announced_seconds) {
  constexpr double kHour = 3600;
  const double wanted = 3 * announced_seconds;
  return wanted > limit_seconds ? std::min(wanted, std::max(kHour, limit_seconds)) : limit_seconds;
}

// Builds, checks and times candidates of one group after another, each identified by id_alone()
// (backend/candidates.h), whose `threads` are 1 or all of the pool. For one thread at a time.
// Failures of plug-ins are part of the results; exceptions mean errors of the caller (no group
// loaded, a candidate never built) or OutOfMemory in the bench itself.
class Bench {
 public:
  virtual ~Bench() = default;

  // Loads `group` and releases everything of the previous group.
  virtual void load(const GroupCase& group) = 0;

  // Builds the kernel and makes its packs; `seconds` is the time for the kernel alone. Fails if the
  // plug-in's proposals for the group lack it or it cannot be built.
  virtual Outcome build(const CandidateId& id) = 0;
  // Runs it several times in guarded memory and judges the effects: numbers, NaN, out-of-bounds
  // writes, changed inputs, in-place rights, differences between runs. Call after build().
  virtual Checked check(const CandidateId& id) = 0;
  // Runs it `runs` times on its own buffers, which are kept until drop(), and returns the fastest
  // run, because disturbances only slow down. Repeats runs that another process preempted, within
  // limits on their number and time. Call after build().
  virtual Outcome run(const CandidateId& id, Weights weights, int runs) = 0;
  // Releases kernel, packs and buffers.
  virtual void drop(const CandidateId& id) = 0;

  // Same as run(), for one conversion of zeros; needs no group. Fails if no plug-in provides it.
  virtual Outcome convert(const ConversionKey& key, int runs) = 0;

  // The peak resident size of the separate process; 0 if it measures in this process.
  virtual int64_t peak_bytes() { return 0; }
  // The id of the separate process; -1 if there is none.
  virtual int process_id() const { return -1; }
};

}  // namespace tessera::tuning
