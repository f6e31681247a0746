// The objects that a plug-in passes to the host, in C++: layouts, ops, candidates, kernels.
// Included by tessera/backend.h, which authors include.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/backend_device.h"
#include "tessera/backend_graph.h"

namespace tessera::plugin {

// The form in which a kernel needs a constant input; see tessera_pack.
struct Pack {
  std::string id;
  int64_t bytes = 0;
  std::function<void(RunContext& context, const Buffer& from, void* to)> pack = {};
};

// The position of a tensor in the storage of another tensor; see tessera_part.
struct Part {
  int64_t offset_bytes = 0;
  std::vector<int64_t> strides = {};  // in elements; empty: dense
};

struct InputPort {
  int32_t value = -1;
  std::string layout = TESSERA_LAYOUT_DEFAULT;
  std::optional<Pack> pack = {};
  bool accepts_strides = false;
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  Part part = {};  // of a joint candidate: its position in output 0
};

struct OutputPort {
  int32_t value = -1;
  std::string layout = TESSERA_LAYOUT_DEFAULT;
  uint32_t requests = TESSERA_REQUEST_WRITE;  // or-ed
  int32_t in_place_input = -1;                // index of an input port
  bool is_size_unknown = false;
  bool accepts_strides = false;
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  Part part = {};  // of a view: its position in input 0
};

struct BuildOptions {
  int32_t threads = 1;
  std::string dense_layout;  // the layout that was chosen for TESSERA_LAYOUT_ANY_DENSE
  // The candidate's absorbed constants. Their elements stay at the same address until the kernel is
  // released.
  std::span<const Buffer> absorbed = {};
};

// A built kernel; see tessera_kernel for how many threads may use it.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Inputs and outputs in the order of the candidate's ports.
  virtual void run(RunContext& context, std::span<const Buffer> inputs,
                   std::span<const Buffer> outputs) = 0;
  virtual int64_t workspace_bytes() const { return 0; }
  // Bytes from which Candidate::load creates the kernel again; nullopt if it cannot be saved.
  virtual std::optional<std::string> save() const { return std::nullopt; }
  // The text of a compiled kernel (TESSERA_KERNEL_), for users; nullopt if it has none of this
  // form.
  virtual std::optional<std::string> text(int32_t /*form*/) const { return std::nullopt; }
};

using KernelFunction = std::function<void(RunContext& context, std::span<const Buffer> inputs,
                                          std::span<const Buffer> outputs)>;

// Wraps a function as a kernel.
inline std::unique_ptr<Kernel> make_kernel(KernelFunction function) {
  class FunctionKernel : public Kernel {
   public:
    explicit FunctionKernel(KernelFunction body) : body_(std::move(body)) {}
    void run(RunContext& context, std::span<const Buffer> inputs,
             std::span<const Buffer> outputs) override {
      body_(context, inputs, outputs);
    }

   private:
    KernelFunction body_;
  };
  return std::make_unique<FunctionKernel>(std::move(function));
}

// One way to compute a node or a group; see tessera_candidate. `build` is called when the graph no
// longer exists, so it must capture copies of what it needs from there. Views and joint candidates
// (`flags`) have no `build`.
struct Candidate {
  std::vector<int32_t> nodes = {};  // ascending
  std::string algorithm = {};
  std::vector<InputPort> inputs = {};
  std::vector<OutputPort> outputs = {};
  std::vector<int32_t> absorbed = {};  // constants that only `build` reads; they have no port
  int64_t workspace_bytes = 0;
  int64_t library_bytes = 0;
  int32_t threads = 0;
  int32_t pool = TESSERA_POOL_HOST;
  // Pairs of input port and axis; nullopt: built for every dimension. See tessera_built_for for
  // what a list promises.
  std::optional<std::vector<tessera_built_for>> built_for = std::nullopt;
  // If it depends on sizes that the kernel was not built for: workspace_bytes for those of these
  // buffers, which have no data. Must not throw.
  std::function<int64_t(std::span<const Buffer> inputs, std::span<const Buffer> outputs)>
      workspace_for = {};
  double optimistic_seconds = 0;
  double build_seconds = 0;
  uint32_t flags = 0;  // TESSERA_CANDIDATE_
  std::function<std::unique_ptr<Kernel>(const BuildOptions& options)> build = {};
  std::function<std::unique_ptr<Kernel>(std::string_view bytes)> load = {};
};

// The text form of tessera_wanted::ports, which the host writes by this function as well:
// "nhwc row_major:packed -> nhwc". `input_text` returns the layout of an input port, with ":" and
// its pack if it has one; `output_text` returns the layout of an output port.
template <class Inputs, class Outputs, class InputText, class OutputText>
std::string ports_text(const Inputs& inputs, const Outputs& outputs, const InputText& input_text,
                       const OutputText& output_text) {
  std::string text;
  for (const auto& port : inputs) text += (text.empty() ? "" : " ") + input_text(port);
  text += " ->";
  for (const auto& port : outputs) text += " " + output_text(port);
  return text;
}

// The ports of `candidate` in this form.
inline std::string ports_text(const Candidate& candidate) {
  return ports_text(
      candidate.inputs, candidate.outputs,
      [](const InputPort& port) {
        return port.pack ? port.layout + ":" + port.pack->id : port.layout;
      },
      [](const OutputPort& port) { return port.layout; });
}

// Returns a candidate for one node, with a row-major port for each input and output that is
// present, in the node's order. A value that the node reads twice, as in Mul(x, x), has one port.
// The author sets `build`, and other layouts and packs.
inline Candidate candidate_for(const Node& node) {
  Candidate candidate;
  candidate.nodes = {node.id()};
  for (size_t index = 0; index < node.input_count(); ++index) {
    const int32_t value = node.input(index).id();
    const bool is_listed =
        std::any_of(candidate.inputs.begin(), candidate.inputs.end(),
                    [value](const InputPort& port) { return port.value == value; });
    if (value >= 0 && !is_listed) candidate.inputs.push_back({.value = value});
  }
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (!node.output(index).is_present()) continue;
    candidate.outputs.push_back({.value = node.output(index).id()});
  }
  return candidate;
}

// A candidate that the host asks for; see tessera_wanted.
struct Wanted {
  std::vector<int32_t> nodes;  // ascending
  std::string algorithm;
  std::string ports;  // as ports_text() writes them
};

struct ProposeOptions {
  int32_t threads = 1;
  int32_t precision = TESSERA_PRECISION_FLOAT32;
  bool is_training = false;
  bool skips_measured_only = false;             // TESSERA_CANDIDATE_MEASURED_ONLY is ignored
  int32_t nan = TESSERA_NAN_EXACT;              // what candidates may do with NaN and infinities
  int32_t accuracy = TESSERA_ACCURACY_BOUNDED;  // whether errors may exceed the op's bound
  // If a plan is known: the only candidates that the host needs; nullopt: it considers all.
  std::optional<std::vector<Wanted>> wanted = {};
  bool takes_sizes = false;  // only candidates with a list in `built_for`, views and joint ones
};

class Proposals {
 public:
  explicit Proposals(tessera_proposals* proposals) : proposals_(proposals) {}
  void add(Candidate candidate);
  void refuse(int32_t node, const std::string& reason) {
    proposals_->refuse(proposals_, node, reason.c_str());
  }

 private:
  tessera_proposals* proposals_;
};

struct Device {
  std::string kind = "cpu";
  int32_t ordinal = 0;
  std::string architecture = {};
  // Null for a device that works in the host's memory.
  std::shared_ptr<DeviceInterface> interface = {};
};

// The full name of layout `format` on `device`, for ports and direct conversions.
inline std::string layout_on(std::string_view format, const Device& device) {
  std::string name = std::string(format) + "@" + device.kind;
  if (device.ordinal != 0) name += ":" + std::to_string(device.ordinal);
  return name;
}

using ConvertFunction =
    std::function<void(RunContext& context, const Buffer& from, const Buffer& to)>;

// How tensors are stored in memory; see tessera_layout.
struct Layout {
  std::string name = {};
  bool is_dense = true;
  bool has_simple_conversions = false;  // see TESSERA_LAYOUT_HAS_SIMPLE_CONVERSIONS
  int32_t device = 0;
  // nullopt if the layout cannot store this type.
  std::function<std::optional<int64_t>(const Type& type)> storage_bytes = {};
  ConvertFunction to_default = {};
  ConvertFunction from_default = {};
};

// A direct conversion between two layouts, neither of which is the default layout.
struct Conversion {
  std::string from = {};
  std::string to = {};
  ConvertFunction convert = {};
};

// An input or output of an op.
struct Parameter {
  std::string name = {};
  std::string type_variable = "T";
  std::vector<int32_t> data_types = {TESSERA_FLOAT32};
  int32_t arity = TESSERA_ARITY_REQUIRED;
};

// An attribute of an op. Only an int, a float or a string can have a default.
struct AttributeSchema {
  std::string name = {};
  int32_t kind = TESSERA_ATTRIBUTE_INT;
  bool is_required = false;
  std::optional<int64_t> default_int = {};
  std::optional<float> default_float = {};
  std::optional<std::string> default_string = {};
};

// The node for which a type rule infers types.
class InferContext {
 public:
  explicit InferContext(tessera_infer_context* context) : context_(context) {}
  size_t input_count() const { return static_cast<size_t>(context_->input_count); }
  // Returns a type with element type TESSERA_UNDEFINED if the index is past the last input, or if
  // that input is left out.
  Type input(size_t index) const {
    return index < input_count() ? Type(context_->inputs[index]) : Type();
  }
  // The elements of an input, or null if they are not known.
  const void* constant(size_t index) const {
    return index < input_count() ? context_->constants[index] : nullptr;
  }
  Attributes attributes() const {
    return Attributes(
        [context = context_](const char* name) { return context->attribute(context, name); });
  }
  void set_output(size_t index, const Type& type) {
    const tessera_type view = type.view();
    context_->set_output(context_, static_cast<int32_t>(index), &view);
  }

 private:
  tessera_infer_context* context_;
};

using NodeFunction =
    std::function<void(const Attributes& attributes, RunContext& context,
                       std::span<const Buffer> inputs, std::span<const Buffer> outputs)>;

// An operator of the backend's own domain.
struct Op {
  std::string domain = {};
  std::string name = {};
  int32_t version = 1;
  std::vector<Parameter> inputs = {};
  std::vector<Parameter> outputs = {};
  std::vector<AttributeSchema> attributes = {};
  bool is_elementwise = false;
  // Sets the type of every output, or throws Failure(TESSERA_INVALID_MODEL, ...).
  std::function<void(InferContext& context)> infer = {};
  NodeFunction reference = {};  // may be empty; then candidates for the op cannot be verified
};

// The short form: a kernel for single nodes on row-major buffers of known sizes.
struct SimpleKernel {
  std::string domain = {};
  std::string op = {};
  // Returns nullopt if the kernel can compute the node, else the reason why not. Empty: the kernel
  // can compute every node of the op.
  std::function<std::optional<std::string>(const Node& node)> explain_refusal = {};
  NodeFunction run = {};
};

struct Description {
  std::string name = {};
  std::string version = {};
  std::vector<std::pair<std::string, std::string>> ingredients = {};
  std::vector<Device> devices = {Device{}};
  std::vector<Layout> layouts = {};
  std::vector<Conversion> conversions = {};
  std::vector<Op> ops = {};
  std::vector<SimpleKernel> simple_kernels = {};
};

// See tessera_compile_counts.
struct CompileCounts {
  int64_t kernels = 0;
  int64_t unique = 0;
  int64_t compiled = 0;
  int64_t loaded = 0;
  double compile_seconds = 0;
};

// The base class of a plug-in. Created when the plug-in is opened, with a constructor that takes no
// argument or a `const tessera_host*`.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Description describe() = 0;
  // Offers candidates, and refuses nodes with a reason. A backend that has only simple kernels need
  // not override it: the host offers them.
  virtual void propose(const Graph& /*graph*/, const ProposeOptions& /*options*/,
                       Proposals& /*proposals*/) {}
  // Counts of its compiled kernels; nullopt if it compiles nothing. Called from any thread.
  virtual std::optional<CompileCounts> compile_counts() const { return std::nullopt; }
};

}  // namespace tessera::plugin
