// What the backends offer for a graph: candidates, checked, under the host's ids.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/graph_view.h"
#include "backend/kernel.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "backend/storage_part.h"
#include "graph/graph.h"

namespace tessera {

struct CandidateInput {
  ValueId value;
  LayoutId layout;
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
  const tessera_pack* pack = nullptr;  // lives as long as Candidate::face
  StoragePart part;                    // of a joint candidate: where in output 0 it lies
};

struct CandidateOutput {
  ValueId value;
  LayoutId layout;
  uint32_t requests = TESSERA_REQUEST_WRITE;
  int in_place_input = -1;  // index into Candidate::inputs
  bool is_size_unknown = false;
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
  StoragePart part;  // of a view: where in input 0 it lies
};

// One way to compute a node or a group, in layouts that are all decided.
struct Candidate {
  std::shared_ptr<const Plugin> plugin;
  std::shared_ptr<const tessera_candidate> face;  // null for one made of a simple kernel
  int preference = 0;                             // place of its backend in the order asked for
  std::string algorithm;
  std::vector<NodeId> nodes;
  std::vector<CandidateInput> inputs;
  std::vector<CandidateOutput> outputs;
  std::vector<ValueId> absorbed;  // constants that only building reads
  int64_t workspace_bytes = 0;
  int64_t library_bytes = 0;
  double optimistic_seconds = 0;
  double build_seconds = 0;
  uint32_t flags = 0;
  int threads = 0;  // that it is built for and runs on: 0 all of the pool, or 1
  // Throws Error (Unsupported, ...) with the backend's reason; LetGo (let_go_weight.h) where it
  // absorbs a weight whose elements are gone.
  std::function<Kernel(int threads)> build;
  // The kernel again from bytes that it was saved as, which it keeps; null where that cannot be.
  // Throws Error with the backend's reason.
  std::function<Kernel(std::shared_ptr<const void> bytes, int64_t size)> load;

  const std::string& backend() const { return plugin->name(); }
  // Whether its outputs are parts of input 0; whether its inputs are parts of output 0. Such a one
  // costs nothing: it has no kernel.
  bool is_view() const { return (flags & TESSERA_CANDIDATE_VIEW) != 0; }
  bool is_joint() const { return (flags & TESSERA_CANDIDATE_JOINT) != 0; }
  bool has_kernel() const { return !is_view() && !is_joint(); }
  // Whether it may be chosen only where its time was measured.
  bool is_measured_only() const { return (flags & TESSERA_CANDIDATE_MEASURED_ONLY) != 0; }
};

struct Refusal {
  int preference = 0;  // place of the backend in the order asked for
  std::string backend;
  NodeId node;
  std::string reason;
};

struct Offers {
  std::vector<Candidate> candidates;  // by preference, then in the order in which they were offered
  std::vector<Refusal> refusals;
};

// One candidate that is asked for.
struct WantedCandidate {
  std::vector<int32_t> nodes;  // ascending
  std::string algorithm;
  std::string ports;  // as tessera_wanted has them
};

struct OfferOptions {
  int threads = 1;
  int precision = TESSERA_PRECISION_FLOAT32;
  int nan = TESSERA_NAN_EXACT;  // TESSERA_NAN_
  // Candidates that are chosen only where they were measured need not be offered.
  bool skips_measured_only = false;
  // Only these candidates need to be offered, and nobody asks for refusals; null: everything does.
  const std::vector<WantedCandidate>* wanted = nullptr;
};

// Asks every plug-in, in order of preference. A candidate that is not legal (nodes or values that
// are not there, an input or output that is no port, layouts that nobody brings or that do not hold
// the value, ...) becomes a refusal of its nodes that says so; so does a plug-in's failure. A port
// in any dense layout becomes one candidate for each that holds all of its values. Views in a
// shared layout that nobody brings are passed over: nobody could make or read them.
Offers collect_offers(const tessera_graph& graph,
                      std::span<const std::shared_ptr<const Plugin>> plugins,
                      const LayoutTable& layouts, const OfferOptions& options);

}  // namespace tessera
