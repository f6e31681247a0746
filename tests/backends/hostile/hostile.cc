// A plug-in that breaks the contract in one way, which the environment variable
// TESSERA_TEST_MISCHIEF names; without the variable it behaves correctly. The host must report a
// reason and continue.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tessera/backend.h"

namespace {

namespace plugin = tessera::plugin;
namespace detail = tessera::plugin::detail;

bool is_mischief(std::string_view name) {
  const char* wanted = std::getenv("TESSERA_TEST_MISCHIEF");
  return wanted != nullptr && name == wanted;
}

const tessera_host* g_host = nullptr;

// Opaque to the compiler, so that it does not remove the illegal access.
template <class Element>
void poke(Element* address) {
  *const_cast<volatile Element*>(address) = 7;
}

void crash() {
  poke(reinterpret_cast<int*>(uintptr_t{8}));  // NOLINT(performance-no-int-to-ptr)
}

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// Ends the process at one stage, or never returns: "crashes_opening", "hangs_proposing".
void misbehave(const std::string& stage) {
  if (is_mischief("crashes_" + stage)) crash();
  if (is_mischief("hangs_" + stage)) hang();
  if (is_mischief("exits_" + stage)) std::exit(4);
}

// Whether the mischief happens at a stage; everything before that stage is correct.
bool is_about_a_stage() {
  const char* wanted = std::getenv("TESSERA_TEST_MISCHIEF");
  const std::string_view name = wanted == nullptr ? "" : wanted;
  return name.starts_with("crashes_") || name.starts_with("hangs_") || name.starts_with("exits_");
}

// --- The plug-in's description of itself ---------------------------------------------------------

void copy(plugin::RunContext& /*context*/, const plugin::Buffer& from, const plugin::Buffer& to) {
  if (is_mischief("conversion_fails")) {
    throw plugin::Failure(TESSERA_DEVICE_FAILED, "the conversion broke");
  }
  misbehave("converting");
  std::memcpy(to.data, from.data, static_cast<size_t>(from.bytes));
}

struct Hostile : plugin::Backend {
  Hostile() {
    if (is_mischief("constructor_throws")) throw std::runtime_error("no licence was found");
    if (is_mischief("constructor_throws_a_number")) throw 42;
    misbehave("opening");
  }
  ~Hostile() override { misbehave("closing"); }

  plugin::Description describe() override {
    const auto run = [](const plugin::Attributes&, plugin::RunContext&,
                        std::span<const plugin::Buffer>, std::span<const plugin::Buffer>) {
      throw plugin::Failure(TESSERA_DEVICE_FAILED, "nobody should run this");
    };
    return {.name = "hostile",
            .version = "6.6.6",
            .layouts = {{.name = "hostile:own",
                         .storage_bytes = [](const plugin::Type& type) -> std::optional<int64_t> {
                           misbehave("sizing");
                           if (is_mischief("storage_is_huge")) return INT64_MAX - 7;
                           return type.dense_bytes();
                         },
                         .to_default = copy,
                         .from_default = copy}},
            .ops = {{.domain = "org.hostile",
                     .name = "Nothing",
                     .inputs = {{"x"}},
                     .outputs = {{"y"}},
                     .infer =
                         [](plugin::InferContext& context) {
                           misbehave("inferring");
                           context.set_output(0, context.input(0));
                         }}},
            .simple_kernels = {{.domain = "org.hostile", .op = "Nothing", .run = run}}};
  }
};

// Corrupts a table in one way before the host sees it.
template <class Table>
struct Spoiler {
  const char* mischief;
  void (*spoil)(Table& table);
};

const Spoiler<tessera_layout> kLayoutSpoilers[] = {
    {"no_from_default", [](tessera_layout& layout) { layout.from_default = nullptr; }},
    {"no_to_default", [](tessera_layout& layout) { layout.to_default = nullptr; }},
    {"no_storage_bytes", [](tessera_layout& layout) { layout.storage_bytes = nullptr; }},
    {"layout_without_name", [](tessera_layout& layout) { layout.name = nullptr; }},
    {"layout_of_another", [](tessera_layout& layout) { layout.name = "other:own"; }},
    {"layout_with_wrong_characters", [](tessera_layout& layout) { layout.name = "hostile:a b\n"; }},
    {"layout_on_no_device", [](tessera_layout& layout) { layout.device = 7; }},
};

// Gives the only device an interface, which `spoil` has filled.
void add_interface(tessera_backend& backend, const char* kind,
                   void (*spoil)(tessera_device_interface& interface)) {
  static tessera_device device;
  static tessera_device_interface interface;
  static const tessera_device_interface* const kInterfaces[] = {&interface};
  device = {kind, 0, 0, ""};
  interface.struct_size = sizeof(interface);
  interface.alignment_bytes = 64;
  spoil(interface);
  backend.devices = &device;
  backend.device_interfaces = kInterfaces;
}

const Spoiler<tessera_backend> kBackendSpoilers[] = {
    {"device_without_functions",
     [](tessera_backend& backend) {
       add_interface(backend, "hostile", [](tessera_device_interface&) {});
     }},
    {"device_with_a_small_interface",
     [](tessera_backend& backend) {
       add_interface(backend, "hostile",
                     [](tessera_device_interface& interface) { interface.struct_size = 8; });
     }},
    {"device_with_an_odd_alignment",
     [](tessera_backend& backend) {
       add_interface(backend, "hostile",
                     [](tessera_device_interface& interface) { interface.alignment_bytes = 48; });
     }},
    {"no_name", [](tessera_backend& backend) { backend.name = nullptr; }},
    {"wrong_characters", [](tessera_backend& backend) { backend.name = "Hostile Backend"; }},
    {"no_version", [](tessera_backend& backend) { backend.version = nullptr; }},
    {"small_struct", [](tessera_backend& backend) { backend.struct_size = 16; }},
    {"no_device", [](tessera_backend& backend) { backend.device_count = 0; }},
    {"null_layouts", [](tessera_backend& backend) { backend.layouts = nullptr; }},
    {"null_ops", [](tessera_backend& backend) { backend.ops = nullptr; }},
    {"null_simple_kernels", [](tessera_backend& backend) { backend.simple_kernels = nullptr; }},
    {"negative_count", [](tessera_backend& backend) { backend.layout_count = -3; }},
    {"same_layout_twice",
     [](tessera_backend& backend) {
       static tessera_layout twice[2];
       twice[0] = twice[1] = backend.layouts[0];
       backend.layouts = twice;
       backend.layout_count = 2;
     }},
    {"conversion_without_function",
     [](tessera_backend& backend) {
       static const tessera_conversion kConversion = {
           sizeof(tessera_conversion), 0, "hostile:own", "nhwc", nullptr, nullptr};
       backend.conversions = &kConversion;
       backend.conversion_count = 1;
     }},
    {"op_without_type_rule",
     [](tessera_backend& backend) {
       static tessera_op op;
       op = backend.ops[0];
       op.infer = nullptr;
       backend.ops = &op;
     }},
    {"op_of_onnx",
     [](tessera_backend& backend) {
       static tessera_op op;
       op = backend.ops[0];
       op.domain = "";
       op.name = "Relu";
       backend.ops = &op;
     }},
    {"kernel_without_function",
     [](tessera_backend& backend) {
       static tessera_simple_kernel kernel;
       kernel = backend.simple_kernels[0];
       kernel.run = nullptr;
       backend.simple_kernels = &kernel;
     }},
};

void spoil(tessera_backend& backend) {
  static tessera_layout layout;
  layout = backend.layouts[0];
  backend.layouts = &layout;
  for (const Spoiler<tessera_layout>& spoiler : kLayoutSpoilers) {
    if (is_mischief(spoiler.mischief)) spoiler.spoil(layout);
  }
  for (const Spoiler<tessera_backend>& spoiler : kBackendSpoilers) {
    if (is_mischief(spoiler.mischief)) spoiler.spoil(backend);
  }
}

// --- The candidates that it offers for Relu ------------------------------------------------------

const Spoiler<detail::CandidateAdapter> kCandidateSpoilers[] = {
    {"no_nodes", [](detail::CandidateAdapter& held) { held.abi.node_count = 0; }},
    {"null_nodes", [](detail::CandidateAdapter& held) { held.abi.nodes = nullptr; }},
    {"node_that_is_not_there",
     [](detail::CandidateAdapter& held) { held.candidate.nodes[0] = 4096; }},
    {"negative_node", [](detail::CandidateAdapter& held) { held.candidate.nodes[0] = -1; }},
    {"input_that_is_not_there",
     [](detail::CandidateAdapter& held) { held.inputs[0].value = 4096; }},
    {"output_that_is_not_there",
     [](detail::CandidateAdapter& held) { held.outputs[0].value = -5; }},
    {"input_for_output",
     [](detail::CandidateAdapter& held) { held.outputs[0].value = held.inputs[0].value; }},
    {"no_inputs", [](detail::CandidateAdapter& held) { held.abi.input_count = 0; }},
    {"null_inputs", [](detail::CandidateAdapter& held) { held.abi.inputs = nullptr; }},
    {"no_outputs", [](detail::CandidateAdapter& held) { held.abi.output_count = 0; }},
    {"null_outputs", [](detail::CandidateAdapter& held) { held.abi.outputs = nullptr; }},
    {"negative_inputs", [](detail::CandidateAdapter& held) { held.abi.input_count = -1; }},
    {"negative_workspace", [](detail::CandidateAdapter& held) { held.abi.workspace_bytes = -1; }},
    {"unknown_layout",
     [](detail::CandidateAdapter& held) { held.inputs[0].layout = "hostile:new"; }},
    {"null_algorithm", [](detail::CandidateAdapter& held) { held.abi.algorithm = nullptr; }},
    {"small_candidate", [](detail::CandidateAdapter& held) { held.abi.struct_size = 8; }},
    {"no_build", [](detail::CandidateAdapter& held) { held.abi.build = nullptr; }},
    {"in_place_of_nothing",
     [](detail::CandidateAdapter& held) {
       held.outputs[0].requests = TESSERA_REQUEST_IN_PLACE;
       held.outputs[0].in_place_input = 3;
     }},
    {"unknown_request",
     [](detail::CandidateAdapter& held) { held.outputs[0].requests = 1U << 20; }},
    {"odd_alignment", [](detail::CandidateAdapter& held) { held.inputs[0].alignment_bytes = -48; }},
    {"packs_what_varies",
     [](detail::CandidateAdapter& held) {
       static const tessera_pack kPack = {sizeof(tessera_pack), 0,      "own", 64,
                                          detail::run_pack,     nullptr};
       held.inputs[0].pack = &kPack;
     }},
    {"strange_built_for",
     [](detail::CandidateAdapter& held) {
       static const tessera_built_for kStrange = {9, -2};
       held.abi.flags &= ~uint32_t{TESSERA_CANDIDATE_BUILT_FOR_ALL};
       held.abi.built_for = &kStrange;
       held.abi.built_for_count = 1;
     }},
    {"build_fails",
     [](detail::CandidateAdapter& held) {
       held.abi.build = [](void*, const tessera_build_options*, tessera_kernel*,
                           tessera_error* error) {
         return detail::report(error, TESSERA_DEVICE_FAILED, "it ran out of luck");
       };
     }},
    {"build_fails_silently",
     [](detail::CandidateAdapter& held) {
       held.abi.build = [](void*, const tessera_build_options*, tessera_kernel*,
                           tessera_error*) -> int32_t { return TESSERA_UNSUPPORTED; };
     }},
    {"build_throws",
     [](detail::CandidateAdapter& held) {
       held.abi.build = [](void*, const tessera_build_options*, tessera_kernel*,
                           tessera_error*) -> int32_t { throw std::runtime_error("bad day"); };
     }},
    {"build_throws_a_number",
     [](detail::CandidateAdapter& held) {
       held.abi.build = [](void*, const tessera_build_options*, tessera_kernel*,
                           tessera_error*) -> int32_t { throw 42; };
     }},
    {"build_gives_nothing",
     [](detail::CandidateAdapter& held) {
       held.abi.build = [](void*, const tessera_build_options*, tessera_kernel*,
                           tessera_error*) -> int32_t { return TESSERA_OK; };
     }},
};

using Buffers = std::span<const plugin::Buffer>;

// Mischief after a correct result: only a check of the running candidate can notice it.
struct RunMischief {
  const char* mischief;
  void (*act)(plugin::RunContext& context, Buffers inputs, Buffers outputs);
};

void allocate_everything() {
  std::vector<std::unique_ptr<char[]>> held;
  constexpr size_t kPieceBytes = size_t{1} << 28;
  while (true) {
    held.push_back(std::make_unique<char[]>(kPieceBytes));  // zeros, so its pages are written
  }
}

const RunMischief kRunMischiefs[] = {
    {"crashes_running", [](plugin::RunContext&, Buffers, Buffers) { crash(); }},
    {"hangs_running", [](plugin::RunContext&, Buffers, Buffers) { hang(); }},
    {"exits_running", [](plugin::RunContext&, Buffers, Buffers) { std::exit(3); }},
    {"aborts_running", [](plugin::RunContext&, Buffers, Buffers) { std::abort(); }},
    {"allocates_everything", [](plugin::RunContext&, Buffers, Buffers) { allocate_everything(); }},
    {"crashes_later",
     [](plugin::RunContext&, Buffers, Buffers) {
       static std::once_flag once;
       std::call_once(once, [] {
         std::thread([] {
           std::this_thread::sleep_for(std::chrono::milliseconds(500));
           crash();
         }).detach();
       });
     }},
    {"gives_nan",
     [](plugin::RunContext&, Buffers, Buffers outputs) {
       outputs[0].as<float>()[1] = std::numeric_limits<float>::quiet_NaN();
     }},
    {"wrong_numbers",
     [](plugin::RunContext&, Buffers, Buffers outputs) { outputs[0].as<float>()[1] += 0.01F; }},
    {"writes_before_output",
     [](plugin::RunContext&, Buffers, Buffers outputs) {
       poke(static_cast<char*>(outputs[0].data) - 1);
     }},
    {"writes_after_output",
     [](plugin::RunContext&, Buffers, Buffers outputs) {
       poke(static_cast<char*>(outputs[0].data) + outputs[0].bytes);
     }},
    {"writes_far_after_output",
     [](plugin::RunContext&, Buffers, Buffers outputs) {
       poke(static_cast<char*>(outputs[0].data) + outputs[0].bytes + 100);
     }},
    {"writes_after_workspace",
     [](plugin::RunContext& context, Buffers, Buffers) {
       poke(static_cast<char*>(context.workspace()) + context.workspace_bytes());
     }},
    {"writes_input",
     [](plugin::RunContext&, Buffers inputs, Buffers) { poke(inputs[0].as<float>()); }},
    {"random_numbers",
     [](plugin::RunContext&, Buffers, Buffers outputs) {
       // Relu may have no error, so only the sign of a zero can change from run to run.
       static std::atomic<int> runs = 0;
       const float zero = runs++ % 2 == 0 ? 0.0F : -0.0F;
       for (int64_t index = 0; index < outputs[0].elements(); ++index) {
         float& element = outputs[0].as<float>()[index];
         if (element == 0) element = zero;
       }
     }},
    // The following do harm while they are built, or none at all.
    {"crashes_building", nullptr},
    {"hangs_building", nullptr},
    {"exits_building", nullptr},
    {"builds_slowly", nullptr},
    {"builds_slowly_as_announced", nullptr},
    {"slow_either_way", nullptr},
    {"talks", [](plugin::RunContext&, Buffers, Buffers) { std::puts("hostile speaks"); }},
};

const RunMischief* run_mischief() {
  for (const RunMischief& mischief : kRunMischiefs) {
    if (is_mischief(mischief.mischief)) return &mischief;
  }
  return nullptr;
}

void do_build_mischief() {
  misbehave("building");
  if (is_mischief("builds_slowly") || is_mischief("builds_slowly_as_announced") ||
      is_mischief("slow_either_way")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  }
}

// Correct without mischief. Otherwise plainly wrong, so that the test notices if the host uses an
// offer that it should have refused.
void run_relu(plugin::RunContext& context, std::span<const plugin::Buffer> inputs,
              std::span<const plugin::Buffer> outputs) {
  if (is_mischief("run_fails")) throw plugin::Failure(TESSERA_DEVICE_FAILED, "it lost its way");
  if (is_mischief("run_throws_a_number")) throw 42;
  if (is_mischief("piece_fails")) {
    context.parallel_for(100, 1, [](int64_t /*begin*/, int64_t end) {
      if (end == 100) throw plugin::Failure(TESSERA_DEVICE_FAILED, "a piece of it broke");
    });
  }
  const RunMischief* later = run_mischief();
  const bool behaves =
      std::getenv("TESSERA_TEST_MISCHIEF") == nullptr || later != nullptr || is_about_a_stage();
  const int64_t count = outputs[0].elements();
  const float* const from = inputs[0].as<float>();
  float* const to = outputs[0].as<float>();
  for (int64_t index = 0; index < count; ++index) {
    to[index] = behaves ? (from[index] < 0 ? 0.0F : from[index]) : -666.0F;
  }
  if (later != nullptr && later->act != nullptr) later->act(context, inputs, outputs);
}

constexpr int64_t kWorkspaceBytes = 256;

struct GreedyKernel : plugin::Kernel {
  void run(plugin::RunContext& context, std::span<const plugin::Buffer> inputs,
           std::span<const plugin::Buffer> outputs) override {
    run_relu(context, inputs, outputs);
  }
  int64_t workspace_bytes() const override {
    if (is_mischief("writes_after_workspace")) return kWorkspaceBytes;
    return is_mischief("builds_bigger") ? 1 << 20 : 0;
  }
};

// Quick to build, but slow to run.
struct LazyKernel : plugin::Kernel {
  void run(plugin::RunContext& context, std::span<const plugin::Buffer> inputs,
           std::span<const plugin::Buffer> outputs) override {
    run_relu(context, inputs, outputs);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
};

plugin::Candidate lazy_candidate(const plugin::Node& node) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.algorithm = "lazy";
  candidate.build = [](const plugin::BuildOptions&) { return std::make_unique<LazyKernel>(); };
  return candidate;
}

plugin::Candidate relu_candidate(const plugin::Graph& graph, const plugin::Node& node) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.algorithm = "wicked";
  candidate.build = [](const plugin::BuildOptions&) {
    do_build_mischief();
    return std::make_unique<GreedyKernel>();
  };
  if (is_mischief("builds_slowly_as_announced") || is_mischief("slow_either_way")) {
    candidate.build_seconds = 1.5;
  }
  if (is_mischief("writes_after_workspace")) candidate.workspace_bytes = kWorkspaceBytes;
  if (is_mischief("conversion_fails") || is_mischief("storage_is_huge")) {
    candidate.inputs[0].layout = "hostile:own";
  }
  if (is_mischief("huge_workspace")) candidate.workspace_bytes = INT64_MAX - 7;
  if (is_mischief("not_convex")) {
    // The group of Relu and the Add that reads it, without the Sigmoid between them.
    for (const plugin::Node& other : graph.nodes()) {
      if (other.op() != "Add") continue;
      candidate.nodes.push_back(other.id());
      candidate.inputs.push_back({.value = other.input(1).id()});
      candidate.outputs.push_back({.value = other.output(0).id()});
    }
  }
  return candidate;
}

int32_t propose(void* /*self*/, const tessera_graph* handle,
                const tessera_propose_options* /*options*/, tessera_proposals* proposals,
                tessera_error* error) {
  misbehave("proposing");
  if (is_mischief("propose_throws")) throw std::runtime_error("it does not want to");
  if (is_mischief("propose_throws_a_number")) throw 42;
  if (is_mischief("propose_fails")) {
    return detail::report(error, TESSERA_INTERNAL, "it does not know what to do");
  }
  if (is_mischief("offers_null")) proposals->add(proposals, nullptr);
  if (is_mischief("refuses_what_is_not_there")) proposals->refuse(proposals, 4096, nullptr);
  const plugin::Graph graph(g_host, handle);
  for (const plugin::Node& node : graph.nodes()) {
    if (is_mischief("refuses_without_reason")) proposals->refuse(proposals, node.id(), nullptr);
    if (node.op() != "Relu" || is_mischief("offers_null") ||
        is_mischief("refuses_what_is_not_there") || is_mischief("refuses_without_reason") ||
        node.input(0).type().data_type != TESSERA_FLOAT32) {
      continue;
    }
    auto held = std::make_unique<detail::CandidateAdapter>(relu_candidate(graph, node));
    for (const Spoiler<detail::CandidateAdapter>& spoiler : kCandidateSpoilers) {
      if (is_mischief(spoiler.mischief)) spoiler.spoil(*held);
    }
    const tessera_candidate* abi = &held.release()->abi;
    proposals->add(proposals, abi);
    if (is_mischief("slow_either_way")) {
      auto lazy = std::make_unique<detail::CandidateAdapter>(lazy_candidate(node));
      proposals->add(proposals, &lazy.release()->abi);
    }
  }
  return TESSERA_OK;
}

}  // namespace

TESSERA_EXPORT uint32_t tessera_contract_version() {
  return is_mischief("other_version") ? 4096 : TESSERA_CONTRACT_VERSION;
}

TESSERA_EXPORT int32_t tessera_open_backend(const tessera_host* host, tessera_backend* backend,
                                            tessera_error* error) {
  if (is_mischief("open_throws")) throw std::runtime_error("the moon is in the wrong phase");
  if (is_mischief("open_throws_a_number")) throw 42;
  if (is_mischief("open_fails_silently")) return TESSERA_DEVICE_FAILED;
  if (is_mischief("fills_nothing")) return TESSERA_OK;
  g_host = host;
  const int32_t status = plugin::open_backend<Hostile>(host, backend, error);
  if (status != TESSERA_OK) return status;
  backend->propose = propose;
  spoil(*backend);
  return TESSERA_OK;
}
