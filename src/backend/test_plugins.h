// Plug-ins for tests: their layouts are distinguishable by their bytes, and their kernels report
// where they ran. Written with the public plug-in headers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "tessera/backend.h"

namespace tessera::testing_plugins {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Description;
using plugin::Graph;
using plugin::Kernel;
using plugin::Layout;
using plugin::Node;
using plugin::Proposals;
using plugin::ProposeOptions;
using plugin::RunContext;

// Copies `from` in reverse order; float32 only.
inline void copy_reversed(RunContext& /*context*/, const Buffer& from, const Buffer& to) {
  const int64_t count = from.elements();
  for (int64_t index = 0; index < count; ++index) {
    to.as<float>()[index] = from.as<float>()[count - 1 - index];
  }
}

// A dense layout with elements in reverse order.
inline Layout reversed_layout(const std::string& name) {
  return {.name = name,
          .storage_bytes = [](const plugin::Type& type) -> std::optional<int64_t> {
            if (type.data_type != TESSERA_FLOAT32) return std::nullopt;
            return type.elements() * 4;
          },
          .to_default = copy_reversed,
          .from_default = copy_reversed};
}

// One input, one output, both in `layout`; output = max(input, 0).
inline Candidate relu_candidate(const Node& node, const std::string& layout,
                                bool may_be_in_place = false) {
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "relu in " + layout;
  candidate.inputs = {{.value = node.input(0).id(), .layout = layout}};
  candidate.outputs = {{.value = node.output(0).id(), .layout = layout}};
  if (may_be_in_place) {
    candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    candidate.outputs[0].in_place_input = 0;
  }
  candidate.optimistic_seconds = 1e-6;
  candidate.build = [](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [](RunContext&, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          for (int64_t index = 0; index < inputs[0].elements(); ++index) {
            const float value = inputs[0].as<float>()[index];
            outputs[0].as<float>()[index] = value < 0 ? 0 : value;
          }
        });
  };
  return candidate;
}

// Add as "output += first input"; the output initially holds the second input.
inline Candidate adding_candidate(const Node& node) {
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "adding";
  candidate.inputs = {{.value = node.input(0).id()}, {.value = node.input(1).id()}};
  candidate.outputs = {
      {.value = node.output(0).id(), .requests = TESSERA_REQUEST_ADD, .in_place_input = 1}};
  candidate.build = [](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [](RunContext&, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          for (int64_t index = 0; index < inputs[0].elements(); ++index) {
            outputs[0].as<float>()[index] += inputs[0].as<float>()[index];
          }
        });
  };
  return candidate;
}

// Calls `propose` for each node. The layouts "mirror:a" and "mirror:b" are both reversed, with a
// direct conversion between them.
class MirrorBackend : public plugin::Backend {
 public:
  using Propose = std::function<void(const Graph& graph, Proposals& proposals)>;
  explicit MirrorBackend(Propose propose) : propose_(std::move(propose)) {}

  Description describe() override {
    Description description{.name = "mirror", .version = "1"};
    description.layouts = {reversed_layout("mirror:a"), reversed_layout("mirror:b")};
    description.conversions = {{.from = "mirror:a",
                                .to = "mirror:b",
                                .convert = [](RunContext&, const Buffer& from, const Buffer& to) {
                                  std::copy_n(from.as<float>(), from.elements(), to.as<float>());
                                }}};
    return description;
  }
  void propose(const Graph& graph, const ProposeOptions&, Proposals& proposals) override {
    propose_(graph, proposals);
  }

 private:
  Propose propose_;
};

// Opens a plug-in that `make` creates. One at a time per thread.
inline std::shared_ptr<const Plugin> open_made(
    std::function<std::unique_ptr<plugin::Backend>()> make) {
  thread_local std::function<std::unique_ptr<plugin::Backend>()> maker;
  maker = std::move(make);
  const auto open = [](const tessera_host* host, tessera_backend* abi, tessera_error* error) {
    return plugin::detail::guarded(error, [&] {
      auto held = std::make_unique<plugin::detail::BackendAdapter>(maker(), host);
      held.release()->fill(abi);
    });
  };
  return Plugin::open_linked(open, "test plug-in", std::make_shared<HostServices>());
}

inline std::shared_ptr<const Plugin> open_mirror(MirrorBackend::Propose propose) {
  return open_made([propose] { return std::make_unique<MirrorBackend>(propose); });
}

}  // namespace tessera::testing_plugins
