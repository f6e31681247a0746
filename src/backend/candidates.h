// Collects and checks the candidates that backends offer for a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/contract/candidate_id.h"
#include "backend/contract/kernel.h"
#include "backend/graph_view.h"
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
  const tessera_pack* pack = nullptr;  // lives as long as Candidate::abi
  StoragePart part;                    // of a joint candidate: its position in output 0
};

struct CandidateOutput {
  ValueId value;
  LayoutId layout;
  uint32_t requests = TESSERA_REQUEST_WRITE;
  int in_place_input = -1;  // index into Candidate::inputs
  bool is_size_unknown = false;
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
  StoragePart part;  // of a view: its position in input 0
};

// One way to compute a node or a group, with all layouts fixed.
struct Candidate {
  std::shared_ptr<const Plugin> plugin;
  std::shared_ptr<const tessera_candidate> abi;  // null for one made of a simple kernel
  int preference = 0;                            // index of its backend in the requested order
  // Whether the engine runs its node itself, by the value kernel of the op (ops::ValueKernel).
  bool runs_on_values = false;
  // Whether it was offered for any dense layout: with the same nodes, backend, algorithm and
  // threads there are candidates for the other dense layouts, which do the same.
  bool is_any_dense = false;
  std::string algorithm;
  std::vector<NodeId> nodes;
  std::vector<CandidateInput> inputs;
  std::vector<CandidateOutput> outputs;
  std::vector<ValueId> absorbed;  // constants that are read only while building
  int64_t workspace_bytes = 0;
  int64_t library_bytes = 0;
  double optimistic_seconds = 0;
  double build_seconds = 0;
  uint32_t flags = 0;
  DeviceId device = kHostDevice;  // on which it runs, and all its ports are
  int threads = 0;  // number of threads to build for and run on: 0 for the whole pool, or 1
  // Throws Error (Unsupported, ...) with the backend's reason. The constants in `absorbed` must
  // have their elements (graph/released_weight.h).
  std::function<Kernel(int threads)> build;
  // Restores a kernel from its saved bytes, which it keeps; null if the backend does not support
  // that. Throws Error with the backend's reason.
  std::function<Kernel(std::shared_ptr<const void> bytes, int64_t size)> load;

  const std::string& backend() const { return plugin->name(); }
  // Whether its outputs are parts of input 0 (view), or its inputs parts of output 0 (joint).
  // Either has no kernel and costs nothing, like a candidate that runs on values.
  bool is_view() const { return (flags & TESSERA_CANDIDATE_VIEW) != 0; }
  bool is_joint() const { return (flags & TESSERA_CANDIDATE_JOINT) != 0; }
  bool has_kernel() const { return !is_view() && !is_joint() && !runs_on_values; }
  bool is_reference() const { return has_kernel() && backend() == "reference"; }
  // Whether its kernel takes some sizes when it runs (tessera_built_for), and whether the workspace
  // then depends on them (tessera_candidate::workspace_for).
  bool takes_sizes() const {
    return abi != nullptr && (abi->flags & TESSERA_CANDIDATE_BUILT_FOR_ALL) == 0;
  }
  bool has_workspace_for() const {
    constexpr size_t kBytesWithIt =
        offsetof(tessera_candidate, workspace_for) + sizeof(abi->workspace_for);
    return abi != nullptr && abi->struct_size >= kBytesWithIt && abi->workspace_for != nullptr;
  }
  // Whether it may be chosen only after its time was measured.
  bool is_measured_only() const { return (flags & TESSERA_CANDIDATE_MEASURED_ONLY) != 0; }
  // Whether its kernel is compiled once and then kept, and whether that is still to be done.
  bool is_compiled() const { return (flags & TESSERA_CANDIDATE_COMPILED) != 0; }
  // Whether its error may exceed the bound that the op states.
  bool is_rough() const { return (flags & TESSERA_CANDIDATE_ROUGH) != 0; }
  bool is_to_compile() const { return (flags & TESSERA_CANDIDATE_TO_COMPILE) != 0; }
};

struct Refusal {
  int preference = 0;  // index of the backend in the requested order
  std::string backend;
  NodeId node;
  std::string reason;
};

struct Offers {
  std::vector<Candidate> candidates;  // by preference, then in the order of the offers
  std::vector<Refusal> refusals;
};

// The identity of `candidate` in a pool of `threads` threads.
CandidateId id_of(const Candidate& candidate, const LayoutTable& layouts, int threads);

// The identity of `candidate`, which was offered for `graph`, when its plug-in is asked about its
// nodes alone: they are numbered from 0, and `ports` is named_ports_text(). If several candidates
// have the same identity, the first one is meant.
CandidateId id_alone(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts,
                     int threads);

// The ports of `candidate` with names of their values: "x=nhwc w=row_major:packed -> y=nhwc".
std::string named_ports_text(const Candidate& candidate, const LayoutTable& layouts,
                             const std::function<std::string(ValueId value)>& name_of);

struct OfferOptions {
  int threads = 1;
  int precision = TESSERA_PRECISION_FLOAT32;
  int nan = TESSERA_NAN_EXACT;              // TESSERA_NAN_
  int accuracy = TESSERA_ACCURACY_BOUNDED;  // TESSERA_ACCURACY_
  // Candidates that require a measurement need not be offered.
  bool skips_measured_only = false;
  // Candidates whose kernels take no sizes when they run need not be offered.
  bool takes_sizes = false;
  // Only those of these candidates that run on `threads` need to be offered, and refusals are not
  // needed; null: no restriction.
  const std::vector<CandidateId>* wanted = nullptr;
};

// Asks every plug-in of which a candidate is wanted, in order of preference. An illegal candidate
// (unknown nodes or values, an input or output that is not a port, layouts that are unknown or do
// not support the value, ...) becomes a refusal of its nodes with that reason; so does a failure of
// a plug-in, and a candidate with TESSERA_CANDIDATE_ROUGH unless `accuracy` allows it. A port in
// any dense layout becomes one candidate for each layout that supports all of its values. Views in
// a shared layout without a provider are skipped, because nothing could make or read them.
Offers collect_offers(const tessera_graph& graph,
                      std::span<const std::shared_ptr<const Plugin>> plugins,
                      const LayoutTable& layouts, const OfferOptions& options);

}  // namespace tessera
