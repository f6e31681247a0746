// The context in which families of ops propose candidates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/implementation.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

class Chains;

// Ends the offer for a node: for_each() refuses the node for this reason.
[[noreturn]] inline void refuse(const std::string& reason) {
  throw plugin::Failure(TESSERA_UNSUPPORTED, reason);
}

// The facts about a primitive, not built yet, that a known plan needs.
struct PrimitiveFacts {
  bool is_there = false;       // whether the library has it
  bool is_reference = false;   // see is_reference()
  std::string implementation;  // impl_info_str()
  int64_t workspace_bytes = 0;
};

// One call of propose().
class Context : public plugin::ProposeContext {
 public:
  Context(const plugin::Graph& graph, const plugin::ProposeOptions& options,
          plugin::Proposals& proposals, const dnnl::engine& engine)
      : ProposeContext(graph, options, proposals), engine_(engine) {}

  const dnnl::engine& engine() const { return engine_; }

  // The chains of the graph; found on first use.
  const Chains& chains();

  // The facts about the primitive with this key, found once: describing a primitive takes some
  // microseconds, and a graph may have thousands of equal ones.
  const PrimitiveFacts& facts(const std::string& key, const std::function<PrimitiveFacts()>& find);

  // Attributes for a primitive: scratchpad memory of the caller, arithmetic as exact as requested.
  dnnl::primitive_attr attributes() const;

  // Whether implementations that do not keep NaN are refused.
  bool keeps_nan() const { return options().nan == TESSERA_NAN_EXACT; }
  // Whether a primitive with such functions (PostOperations::needs_compiled_code()) is refused for
  // that reason.
  bool is_useless(std::string_view implementation, bool needs_compiled_code) const {
    return keeps_nan() && needs_compiled_code && has_portable_functions(implementation);
  }

  // The minimum time for this work on these threads; `implementation` is impl_info_str(), whose
  // reference and gemm forms are known to be far slower than the processor allows.
  double optimistic_seconds(double flops, double bytes, std::string_view implementation) const;

 private:
  const dnnl::engine& engine_;
  std::shared_ptr<const Chains> chains_;
  std::unordered_map<std::string, PrimitiveFacts> facts_;  // by key
};

}  // namespace tessera::onednn
