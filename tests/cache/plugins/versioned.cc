// A library in two versions, and another library (newcomer), to test what a cache does after an
// upgrade. Version 1 computes Relu slowly; version 2 can also compute it fast. Both also offer a
// third algorithm, `wrong`, which is as fast and returns -1 where 0 is correct.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>

#include "tessera/backend.h"

namespace {

using tessera::plugin::Backend;
using tessera::plugin::Buffer;
using tessera::plugin::BuildOptions;
using tessera::plugin::Candidate;
using tessera::plugin::candidate_for;
using tessera::plugin::Description;
using tessera::plugin::Graph;
using tessera::plugin::make_kernel;
using tessera::plugin::Node;
using tessera::plugin::Proposals;
using tessera::plugin::ProposeOptions;
using tessera::plugin::RunContext;

void compute(const Buffer& from, const Buffer& to, float negative) {
  const int64_t elements = to.elements();
  for (int64_t index = 0; index < elements; ++index) {
    const float value = from.as<float>()[index];
    // NaN is kept.
    to.as<float>()[index] = value <= 0 ? negative : value;
  }
}

void run_fast(RunContext& /*context*/, std::span<const Buffer> inputs,
              std::span<const Buffer> outputs) {
  compute(inputs[0], outputs[0], 0);
}

void sleep(const char* variable, int milliseconds) {
  const char* const wanted = std::getenv(variable);
  if (wanted != nullptr) milliseconds = std::atoi(wanted);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

void run_slow(RunContext& context, std::span<const Buffer> inputs,
              std::span<const Buffer> outputs) {
  sleep("TESSERA_TEST_SLOW_MILLISECONDS", 2);
  run_fast(context, inputs, outputs);
}

void run_wrong(RunContext& /*context*/, std::span<const Buffer> inputs,
               std::span<const Buffer> outputs) {
  compute(inputs[0], outputs[0], -1);
}

Candidate candidate_of(const Node& node, const char* algorithm, decltype(&run_fast) run) {
  Candidate candidate = candidate_for(node);
  candidate.algorithm = algorithm;
  candidate.build = [run](const BuildOptions&) {
    if (run == run_fast) sleep("TESSERA_TEST_BUILD_MILLISECONDS", 0);
    return make_kernel(run);
  };
  return candidate;
}

class Versioned final : public Backend {
 public:
  Description describe() override {
    const std::string version = std::to_string(TESSERA_TEST_VERSION) + ".0.0";
    return {.name = TESSERA_TEST_NAME, .version = version, .ingredients = {{"version", version}}};
  }

  void propose(const Graph& graph, const ProposeOptions& /*options*/,
               Proposals& proposals) override {
    for (const Node& node : graph.nodes()) {
      if (node.op() != "Relu") continue;
      proposals.add(candidate_of(node, "slow", run_slow));
      if (TESSERA_TEST_VERSION > 1) proposals.add(candidate_of(node, "fast", run_fast));
      proposals.add(candidate_of(node, "wrong", run_wrong));
    }
  }
};

}  // namespace

TESSERA_PLUGIN(Versioned)
