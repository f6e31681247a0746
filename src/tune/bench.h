// What is measured, as plain data that can cross a pipe, and who measures it: in this process
// (group_bench.h), or in another one behind the same face.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/denormals.h"
#include "graph/graph.h"
#include "tessera/data_type.h"
#include "tessera/tensor.h"

namespace tessera::tuning {

// One group of nodes, cut out of a bound graph, with what flows in and out of it in a true run.
struct GroupCase {
  Graph graph;                     // of extract_group(); every type known, constants with elements
  std::vector<Tensor> inputs;      // in the order of graph.inputs
  std::vector<Tensor> outputs;     // in the order of graph.outputs, by the reference kernels
  std::vector<Tensor> magnitudes;  // of what was summed for each output; empty where not known
  int threads = 1;                 // of the pool: what candidates for all threads run on
  int precision = 0;               // TESSERA_PRECISION_
  int nan = 0;                     // TESSERA_NAN_
  Denormals denormals = Denormals::Keep;  // what kernels run with
  // The same of inputs with special values (verify/special_values.h), in the same orders; empty:
  // what candidates do with those is not judged.
  std::vector<Tensor> special_inputs = {};
  std::vector<Tensor> special_outputs = {};
  // What the rest of the graph reads and writes until the group runs again.
  int64_t bytes_between = 0;
};

// A value of the group's graph, by name, as a candidate reads or makes it.
struct PortKey {
  std::string value;
  std::string layout;
  std::string pack;  // id of the pack that is read instead; "" for none
  auto operator<=>(const PortKey&) const = default;
};

// How a candidate is found again when its plug-in is asked about the group alone. Of several that
// agree in all of it, the first one is meant.
struct CandidateKey {
  std::string backend;
  std::string algorithm;
  int threads = 1;  // that its plug-in was asked for, and that it runs on: 1 or all of the pool
  int node_count = 1;
  std::vector<PortKey> inputs;  // in the candidate's order
  std::vector<PortKey> outputs;
  auto operator<=>(const CandidateKey&) const = default;
};

// One step from a layout to another.
struct ConversionKey {
  std::string backend;  // whose function it is
  std::string from;
  std::string to;
  DataType element = DataType::Undefined;
  std::vector<int64_t> dims;
  int threads = 1;
  auto operator<=>(const ConversionKey&) const = default;
};

// Where the weights are when a kernel starts: evicted from the processor's caches, as in a network
// larger than these, or in them. Then the rest of the graph has run, as far as the cores' own
// caches can tell: weights and outputs are no longer in these. Other inputs have always been
// written just before.
enum class Weights : uint8_t { Cold, Warm };

// What building or running ended with. A failure costs the candidate, never the tuning.
struct Outcome {
  double seconds = 0;
  std::string reason;  // why it failed; "": it did not
  // The process that measured is gone (it crashed, hung, ran out of memory) and another one stands
  // in its place, with the same group loaded and nothing built. Never in this process.
  bool is_lost = false;
  // Of build(): the plug-in's proposals for the group alone lack the candidate. Another bench may
  // know it.
  bool is_unknown = false;
  // Of run_once() and convert_once(): another process had a processor of this one meanwhile, so
  // that `seconds` is too long. Never for one thread, whose own time is told then.
  bool is_disturbed = false;
  // Of the same: how many times slower than at best the cores were meanwhile, and are one time in
  // ten (Yardstick). What is unknown is 1.
  double slowdown = 1;
  double slowdown_often = 1;
  bool is_fine() const { return reason.empty(); }
};

struct Checked {
  // Largest |found - expected| relative to the magnitude of what was summed; 0 for what has to be
  // equal and is.
  double error = 0;
  double tolerance = 0;
  std::string reason;  // why the candidate may not be used; "": it may
  bool is_lost = false;
  bool is_fine() const { return reason.empty(); }
};

// Building a candidate may take as long as this, or longer where its backend announced it.
inline constexpr double kBuildSeconds = 60;

// What building may take at most, `limit_seconds` being for those that announce nothing: three
// times what was announced, an hour at most.
inline double build_limit(double limit_seconds, double announced_seconds) {
  constexpr double kHour = 3600;
  const double wanted = 3 * announced_seconds;
  return wanted > limit_seconds ? std::min(wanted, std::max(kHour, limit_seconds)) : limit_seconds;
}

// Builds, checks and times candidates of one group after the other. For one thread at a time. What
// plug-ins fail with is told in the results; exceptions are mistakes of the caller (no group
// loaded, a key never built) and OutOfMemory for what the bench itself needs.
class Bench {
 public:
  virtual ~Bench() = default;

  // Takes up `group`, letting go of everything of the one before.
  virtual void load(const GroupCase& group) = 0;

  // Builds the kernel and makes its packs; `seconds` is for the kernel. Fails where the plug-in's
  // proposals for the group lack it, or it cannot be built.
  virtual Outcome build(const CandidateKey& key) = 0;
  // Runs it several times in guarded memory and judges all that it did: numbers, NaN, writes beside
  // buffers, changed inputs, in-place rights, bits that differ from run to run. After build().
  virtual Checked check(const CandidateKey& key) = 0;
  // Runs it once on buffers of its own, which are kept until drop(). After build().
  virtual Outcome run_once(const CandidateKey& key, Weights weights) = 0;
  // Lets go of kernel, packs and buffers.
  virtual void drop(const CandidateKey& key) = 0;

  // Runs one conversion of zeros; needs no group. Fails where no plug-in brings it.
  virtual Outcome convert_once(const ConversionKey& key) = 0;

  // The most that a process of its own had resident at any time; 0: it works in this one.
  virtual int64_t peak_bytes() { return 0; }
};

}  // namespace tessera::tuning
