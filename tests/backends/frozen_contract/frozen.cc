// A plug-in that is built against the frozen copy of the contract in tessera/, see README.md: a
// layout with conversions, a kernel in place with a packed weight, a kernel in the short form, and
// an op of its own.
#include <algorithm>
#include <optional>
#include <string>

#include "tessera/backend.h"

// Later headers have this macro.
#ifdef TESSERA_MAX_DEVICE_ALIGNMENT_BYTES
#error "this is not the frozen copy of the contract"
#endif

namespace {

using tessera::plugin::Attributes;
using tessera::plugin::Backend;
using tessera::plugin::Buffer;
using tessera::plugin::BuildOptions;
using tessera::plugin::Candidate;
using tessera::plugin::Description;
using tessera::plugin::Graph;
using tessera::plugin::InferContext;
using tessera::plugin::make_kernel;
using tessera::plugin::Node;
using tessera::plugin::Pack;
using tessera::plugin::Proposals;
using tessera::plugin::ProposeContext;
using tessera::plugin::ProposeOptions;
using tessera::plugin::RunContext;
using tessera::plugin::Type;

// --- A layout: float32 elements in reverse order -------------------------------------------------

constexpr const char* kMirrored = "frozen:mirrored";

std::optional<int64_t> mirrored_bytes(const Type& type) {
  if (type.data_type != TESSERA_FLOAT32) return std::nullopt;
  return type.dense_bytes();
}

void mirror(RunContext& /*context*/, const Buffer& from, const Buffer& to) {
  std::reverse_copy(from.as<float>(), from.as<float>() + from.elements(), to.as<float>());
}

// --- A candidate: Sub of equal shapes, mirrored --------------------------------------------------

void subtract(RunContext& context, std::span<const Buffer> inputs,
              std::span<const Buffer> outputs) {
  context.parallel_for(outputs[0].elements(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      outputs[0].as<float>()[index] = inputs[0].as<float>()[index] - inputs[1].as<float>()[index];
    }
  });
}

void offer_sub(ProposeContext& context, const Node& node) {
  const Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known() || node.input(1).type() != type) {
    return context.refuse(node.id(), "it subtracts float32 tensors of one shape");
  }
  if (node.input(0).id() == node.input(1).id()) {
    return context.refuse(node.id(), "it subtracts two different tensors");
  }
  Candidate candidate = candidate_for(node);
  candidate.algorithm = "mirrored";
  candidate.inputs[0].layout = kMirrored;
  candidate.outputs[0].layout = kMirrored;
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
  if (node.input(1).is_constant()) {
    candidate.inputs[1].pack =
        Pack{"mirrored", type.dense_bytes(), [](RunContext&, const Buffer& from, void* to) {
               std::reverse_copy(from.as<float>(), from.as<float>() + from.elements(),
                                 static_cast<float*>(to));
             }};
  } else {
    candidate.inputs[1].layout = kMirrored;
  }
  candidate.build = [](const BuildOptions&) { return make_kernel(subtract); };
  context.add(std::move(candidate));
}

// --- The short form and an op of its own ---------------------------------------------------------

void reciprocal(const Attributes& /*attributes*/, RunContext& /*context*/,
                std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  std::transform(inputs[0].as<float>(), inputs[0].as<float>() + inputs[0].elements(),
                 outputs[0].as<float>(), [](float x) { return 1 / x; });
}

void infer_scale(InferContext& context) { context.set_output(0, context.input(0)); }

void scale(const Attributes& attributes, RunContext& /*context*/, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) {
  const float factor = attributes.get_float("factor");
  std::transform(inputs[0].as<float>(), inputs[0].as<float>() + inputs[0].elements(),
                 outputs[0].as<float>(), [factor](float x) { return factor * x; });
}

struct Frozen : Backend {
  Description describe() override {
    return {
        .name = "frozen",
        .version = "1.0",
        .ingredients = {{"version", "1.0"}},
        .layouts = {{.name = kMirrored,
                     .storage_bytes = mirrored_bytes,
                     .to_default = mirror,
                     .from_default = mirror}},
        .ops = {{.domain = "org.frozen",
                 .name = "Scale",
                 .inputs = {{"x"}},
                 .outputs = {{"y"}},
                 .attributes =
                     {{.name = "factor", .kind = TESSERA_ATTRIBUTE_FLOAT, .default_float = 2.0F}},
                 .infer = infer_scale,
                 .reference = scale}},
        .simple_kernels = {{.op = "Reciprocal",
                            .explain_refusal = [](const Node& node) -> std::optional<std::string> {
                              if (node.input(0).type().data_type == TESSERA_FLOAT32) return {};
                              return "it computes float32 only";
                            },
                            .run = reciprocal}}};
  }

  void propose(const Graph& graph, const ProposeOptions& options, Proposals& proposals) override {
    ProposeContext context(graph, options, proposals);
    context.for_each({"Sub"}, [&](const Node& node) { offer_sub(context, node); });
    context.report_refusals("of ONNX's ops it has Sub only");
  }
};

}  // namespace

TESSERA_PLUGIN(Frozen)
