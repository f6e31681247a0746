// A plug-in with one or two devices that behave like accelerators, so that everything about devices
// can be tested on any machine: they compute the host's reference kernels, asynchronously and in
// memory of their own, and find the host's mistakes (fake_device.h). Tests control it through
// fake_control.h or through the environment variable TESSERA_TEST_FAKE ("devices=2,delay_us=50").
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fake_control.h"
#include "fake_device.h"
#include "fake_kernels.h"
#include "shared_state.h"
#include "tessera/backend.h"

namespace tessera::fake {
namespace {

using plugin::Candidate;
using plugin::Description;
using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::ProposeContext;
using plugin::Type;

// Ops of one input whose kernels read each element before they write it, in the same type.
constexpr std::string_view kInPlaceOps[] = {
    "Abs",  "Atan",  "Ceil",    "Cos",  "Erf", "Exp",  "Floor",    "LeakyRelu", "Neg", "Not",
    "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sqrt", "Softplus", "Softsign",  "Tanh"};

bool can_be_in_place(const Node& node) { return std::ranges::count(kInPlaceOps, node.op()) > 0; }

std::optional<std::string> explain_refusal(const Node& node) {
  if (!node.domain().empty()) return "it computes ONNX's own ops only";
  if (node.has_bodies()) return "it computes no nested graphs";
  if (node.is_random()) return "it computes no random ops";
  const auto is_computable = [](const Type& type) {
    return type.is_known() && plugin::element_bytes(type.data_type) > 0;
  };
  constexpr const char* kReason = "it computes tensors of known sizes only, and no strings";
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (node.input(index).is_present() && !is_computable(node.input(index).type())) return kReason;
  }
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (node.output(index).is_present() && !is_computable(node.output(index).type())) {
      return kReason;
    }
  }
  return std::nullopt;
}

fake_settings settings_of_environment() {
  const char* text = std::getenv("TESSERA_TEST_FAKE");
  return parse_settings(text == nullptr ? "" : text);
}

fake_settings open_settings() {
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  if (!state.is_configured) state.configure(settings_of_environment());
  return state.ledger.settings();
}

int64_t kernel_ns() {
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  return state.ledger.settings().kernel_ns;
}

class Fake : public plugin::Backend {
 public:
  Fake() : settings_(open_settings()) {
    for (int64_t ordinal = 0; ordinal < settings_.devices; ++ordinal) {
      interfaces_.push_back(std::make_shared<FakeDevice>(static_cast<int32_t>(ordinal)));
    }
  }

  Description describe() override {
    Description description{.name = "fake", .version = "1"};
    // Everything that plans and measured times depend on.
    std::string settings;
    for (const int64_t setting : {settings_.devices, settings_.peer, settings_.kernel_ns,
                                  settings_.copy_ns, settings_.copy_bytes_per_us}) {
      settings += std::to_string(setting) + " ";
    }
    description.ingredients = {{"settings", settings}};
    for (const std::shared_ptr<FakeDevice>& interface : interfaces_) {
      devices_.push_back({.kind = "fake",
                          .ordinal = interface->ordinal(),
                          .architecture = "fake",
                          .interface = interface});
      description.devices.push_back(devices_.back());
      description.layouts.push_back(
          reversed_layout(interface, static_cast<int32_t>(devices_.size())));
    }
    return description;
  }

  void propose(const Graph& graph, const plugin::ProposeOptions& options,
               plugin::Proposals& proposals) override {
    ProposeContext context(graph, options, proposals);
    for (const Node& node : graph.nodes()) {
      if (!context.is_wanted(node)) continue;
      try {
        offer(context, node);
      } catch (const Failure& failure) {
        context.refuse(node.id(), failure.what());
      }
    }
    context.report_refusals("it offers nothing");
  }

 private:
  void offer(ProposeContext& context, const Node& node) const {
    if (const std::optional<std::string> reason = explain_refusal(node)) {
      return context.refuse(node.id(), *reason);
    }
    Candidate candidate = plugin::candidate_for(node);
    candidate.built_for = std::vector<tessera_built_for>{};
    const ReferenceKernel kernel = reference_kernel_of(context.graph(), node, candidate);
    if (settings_.host_kernels != 0) {
      Candidate on_host = candidate;
      on_host.algorithm = "fake:host";
      on_host.build = [kernel, duration = std::chrono::nanoseconds(settings_.host_kernel_ns)](
                          const auto&) { return host_kernel(kernel, duration); };
      context.add(std::move(on_host));
    }
    candidate.optimistic_seconds = 1e-9 * static_cast<double>(kernel_ns());
    for (size_t index = 0; index < devices_.size(); ++index) {
      const std::string algorithm = "fake:" + std::to_string(index);
      context.add(on_device(candidate, kernel, index, algorithm, TESSERA_LAYOUT_DEFAULT,
                            can_be_in_place(node)));
      if (node.op() != "Relu") continue;
      context.add(on_device(candidate, kernel, index, algorithm + ":reversed", kReversed, true));
    }
  }

  Candidate on_device(Candidate candidate, const ReferenceKernel& kernel, size_t index,
                      const std::string& algorithm, const char* format, bool is_in_place) const {
    const std::string layout = plugin::layout_on(format, devices_[index]);
    candidate.algorithm = algorithm;
    for (plugin::InputPort& port : candidate.inputs) port.layout = layout;
    for (plugin::OutputPort& port : candidate.outputs) port.layout = layout;
    if (is_in_place) {
      candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
      candidate.outputs[0].in_place_input = 0;
    }
    candidate.build = [kernel, device = interfaces_[index]](const auto&) {
      return device_kernel(kernel, device);
    };
    return candidate;
  }

  fake_settings settings_;
  std::vector<std::shared_ptr<FakeDevice>> interfaces_;
  std::vector<plugin::Device> devices_;
};

}  // namespace
}  // namespace tessera::fake

TESSERA_PLUGIN(tessera::fake::Fake)
