// A plug-in without a library: two devices, each with its own layout, and kernels whose prices
// tests invent, so that the choice can be tested on any machine. The second device's memory is the
// host's. TESSERA_TEST_NULL=no_direct omits the direct conversions between the two devices.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/backend.h"

namespace {

namespace plugin = tessera::plugin;
using plugin::Buffer;
using plugin::BuildOptions;
using plugin::Candidate;
using plugin::ConvertFunction;
using plugin::Description;
using plugin::Graph;
using plugin::Layout;
using plugin::Node;
using plugin::Proposals;
using plugin::ProposeOptions;
using plugin::RunContext;
using plugin::Type;
using Buffers = std::span<const Buffer>;

constexpr int kHost = 0;
constexpr int kSecondDevice = 1;
constexpr const char* kLayoutA = "null:a";
constexpr const char* kLayoutB = "null:b";

bool has_direct_ways() {
  const char* wanted = std::getenv("TESSERA_TEST_NULL");
  return wanted == nullptr || std::string_view(wanted) != "no_direct";
}

// --- Layouts that no kernel could confuse with each other ----------------------------------------

// The position of element `index` of `count`: A reverses the order, B rotates it by one.
int64_t index_in_a(int64_t index, int64_t count) { return count - 1 - index; }
int64_t index_in_b(int64_t index, int64_t count) { return (index + 1) % count; }
int64_t index_in_default(int64_t index, int64_t /*count*/) { return index; }

using IndexMap = int64_t (*)(int64_t index, int64_t count);

ConvertFunction converter(IndexMap from_index, IndexMap to_index) {
  return [=](RunContext& /*context*/, const Buffer& from, const Buffer& to) {
    const int64_t count = from.elements();
    for (int64_t index = 0; index < count; ++index) {
      to.as<float>()[to_index(index, count)] = from.as<float>()[from_index(index, count)];
    }
  };
}

Layout layout(const char* name, int device, IndexMap index_in_layout) {
  return {.name = name,
          .device = device,
          .storage_bytes = [](const Type& type) -> std::optional<int64_t> {
            if (type.data_type != TESSERA_FLOAT32) return std::nullopt;
            return type.dense_bytes();
          },
          .to_default = converter(index_in_layout, index_in_default),
          .from_default = converter(index_in_default, index_in_layout)};
}

// --- Kernels that handle each element alone, so that the order does not matter -------------------

using Function = std::function<float(float)>;

const std::map<std::string, Function, std::less<>>& functions() {
  static const std::map<std::string, Function, std::less<>> kKnown = {
      {"Neg", [](float x) { return -x; }},
      {"Abs", [](float x) { return std::fabs(x); }},
      {"Floor", [](float x) { return std::floor(x); }},
      {"Sqrt", [](float x) { return std::sqrt(x); }},
      {"Sin", [](float x) { return std::sin(x); }},
      {"Cos", [](float x) { return std::cos(x); }},
      {"Sum", [](float x) { return x; }}};  // of all inputs
  return kKnown;
}

std::optional<std::string> explain_refusal(const Node& node) {
  if (!node.domain().empty() || !functions().contains(node.op())) return "it knows no such op";
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Type type = node.input(index).type();
    if (type.data_type != TESSERA_FLOAT32) return "it computes float32 only";
    if (type.dense_bytes() != node.output(0).type().dense_bytes()) return "it does not broadcast";
  }
  return std::nullopt;
}

Candidate chain(const std::vector<Node>& nodes, const char* algorithm, const char* layout_name) {
  Candidate candidate;
  candidate.algorithm = algorithm;
  std::vector<Function> steps;
  for (const Node& node : nodes) {
    candidate.nodes.push_back(node.id());
    steps.push_back(functions().find(node.op())->second);
  }
  for (size_t index = 0; index < nodes.front().input_count(); ++index) {
    candidate.inputs.push_back({.value = nodes.front().input(index).id(), .layout = layout_name});
  }
  candidate.outputs = {{.value = nodes.back().output(0).id(), .layout = layout_name}};
  candidate.build = [steps](const BuildOptions&) {
    return plugin::make_kernel([steps](RunContext&, Buffers inputs, Buffers outputs) {
      for (int64_t index = 0; index < inputs[0].elements(); ++index) {
        float element = inputs[0].as<float>()[index];
        for (const Buffer& other : inputs.subspan(1)) element += other.as<float>()[index];
        for (const Function& step : steps) element = step(element);
        outputs[0].as<float>()[index] = element;
      }
    });
  };
  return candidate;
}

void offer_pairs(const Graph& graph, const char* pattern, const char* algorithm,
                 Proposals& proposals) {
  for (const std::vector<int32_t>& pair : graph.match(pattern)) {
    proposals.add(chain({graph.node(pair[0]), graph.node(pair[1])}, algorithm, kLayoutA));
  }
}

class Null : public plugin::Backend {
 public:
  Description describe() override {
    Description description{.name = "null", .version = "1"};
    description.devices = {{.kind = "cpu"}, {.kind = "null"}};
    description.layouts = {layout(kLayoutA, kHost, index_in_a),
                           layout(kLayoutB, kSecondDevice, index_in_b)};
    if (has_direct_ways()) {
      description.conversions = {{kLayoutA, kLayoutB, converter(index_in_a, index_in_b)},
                                 {kLayoutB, kLayoutA, converter(index_in_b, index_in_a)}};
    }
    return description;
  }

  void propose(const Graph& graph, const ProposeOptions&, Proposals& proposals) override {
    for (const Node& node : graph.nodes()) {
      if (const std::optional<std::string> reason = explain_refusal(node)) {
        proposals.refuse(node.id(), *reason);
        continue;
      }
      proposals.add(chain({node}, "a", kLayoutA));
      proposals.add(chain({node}, "b", kLayoutB));
    }
    offer_pairs(graph, "sine = Sin(x); Cos(sine)", "pair", proposals);
    offer_pairs(graph, "cosine = Cos(x); Sin(cosine)", "turned pair", proposals);
  }
};

}  // namespace

TESSERA_PLUGIN(Null)
