// A plug-in that tells one lie, which the environment variable TESSERA_TEST_LIE names. `tessera
// verify` must catch each lie with the right check. Without the variable, the plug-in keeps all its
// promises.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tessera/backend.h"

namespace {

namespace plugin = tessera::plugin;
using plugin::Attributes;
using plugin::Buffer;
using plugin::RunContext;
using Buffers = std::span<const Buffer>;

bool is_lie(std::string_view name) {
  const char* wanted = std::getenv("TESSERA_TEST_LIE");
  return wanted != nullptr && name == wanted;
}

float* floats(const Buffer& buffer) { return buffer.as<float>(); }

// --- Layouts: blocks of four elements with padding after the last; and reversed elements ---------

constexpr const char* kFours = "liar:fours";
constexpr const char* kBackwards = "liar:backwards";

int64_t padded(int64_t elements) { return (elements + 3) / 4 * 4; }

void to_fours(RunContext& /*context*/, const Buffer& from, const Buffer& to) {
  const int64_t elements = from.elements();
  const int64_t stored = is_lie("conversion_overruns") ? padded(elements) + 1 : padded(elements);
  for (int64_t index = 0; index < stored; ++index) {
    const bool is_padding = index >= elements;
    if (is_padding && is_lie("conversion_leaves_padding")) continue;
    floats(to)[index] = is_padding ? 0.0F : floats(from)[index];
  }
  if (is_lie("conversion_changes_source") && elements > 0) floats(from)[0] = 1;
}

void from_fours(RunContext& /*context*/, const Buffer& from, const Buffer& to) {
  const int64_t elements = to.elements();
  std::memcpy(to.data, from.data, static_cast<size_t>(elements) * sizeof(float));
  // Clears only the lowest bit, so that only some values show the error.
  if (is_lie("loses_bits") && elements > 0) to.as<uint32_t>()[elements - 1] &= ~1U;
}

void turn_round(RunContext& /*context*/, const Buffer& from, const Buffer& to) {
  const int64_t elements = to.elements();
  for (int64_t index = 0; index < elements; ++index) {
    std::memcpy(floats(to) + index, floats(from) + (elements - 1 - index), sizeof(float));
  }
  if (is_lie("direct_differs") && elements > 2 && from.bytes != to.bytes) floats(to)[1] = 3;
}

plugin::Layout fours() {
  return {.name = kFours,
          .storage_bytes = [](const plugin::Type& type) -> std::optional<int64_t> {
            if (type.data_type != TESSERA_FLOAT32) return std::nullopt;
            if (is_lie("storage_too_small")) return type.dense_bytes();
            return padded(type.elements()) * 4;
          },
          .to_default = from_fours,
          .from_default = to_fours};
}

plugin::Layout backwards() {
  return {.name = kBackwards,
          .storage_bytes = [](const plugin::Type& type) -> std::optional<int64_t> {
            if (type.data_type != TESSERA_FLOAT32) return std::nullopt;
            return type.dense_bytes();
          },
          .to_default = turn_round,
          .from_default = turn_round};
}

// --- Relu: in place, with a workspace, kernels that can be saved ---------------------------------

constexpr int64_t kWorkspaceBytes = 64;

class Relu : public plugin::Kernel {
 public:
  explicit Relu(int threads) : threads_(threads) {}

  void run(RunContext& context, Buffers inputs, Buffers outputs) override {
    const int64_t elements = inputs[0].elements();
    const float* from = floats(inputs[0]);
    float* to = floats(outputs[0]);
    if (is_lie("in_place") && elements > 0) to[0] = 0;
    for (int64_t index = 0; index < elements; ++index) {
      if (index == elements - 1 && is_lie("leaves_the_last_element")) break;
      const float bound = is_lie("wrong_numbers") ? 0.001F : 0.0F;
      const bool is_kept = is_lie("loses_nan") ? from[index] > bound : !(from[index] < bound);
      to[index] = is_kept ? from[index] : bound;
    }
    if (is_lie("in_place") && elements > 0) to[0] = from[0] < 0 ? 0 : from[0];
    lie(context, inputs, outputs, elements);
  }
  int64_t workspace_bytes() const override { return kWorkspaceBytes; }
  std::optional<std::string> save() const override { return std::to_string(threads_); }

 private:
  void lie(RunContext& context, Buffers inputs, Buffers outputs, int64_t elements) const {
    float* to = floats(outputs[0]);
    const int64_t stored = outputs[0].bytes / 4;
    const int64_t workspace = is_lie("overruns_workspace") ? kWorkspaceBytes + 1 : kWorkspaceBytes;
    std::memset(context.workspace(), 1, static_cast<size_t>(workspace));
    if (is_lie("writes_behind_output")) to[stored] = 1;
    if (is_lie("writes_before_output")) to[-1] = 1;
    if (is_lie("changes_input") && elements > 0 && inputs[0].data != outputs[0].data) {
      floats(inputs[0])[elements - 1] = 2;
    }
    if (is_lie("dirty_padding")) {
      for (int64_t index = elements; index < stored; ++index) to[index] = 1;
    } else {
      for (int64_t index = elements; index < stored; ++index) to[index] = 0;
    }
    if (is_lie("gives_nan") && elements > 0) to[elements / 2] = std::nanf("");
    if (is_lie("takes_long")) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    static std::atomic<int> runs = 0;
    if (is_lie("differs_from_run_to_run") && elements > 0) {
      to[0] *= 1.0F + 1e-6F * static_cast<float>(++runs % 3);
    }
    if (is_lie("wrong_with_two_threads") && threads_ == 2 && elements > 0) to[0] += 1;
    if (is_lie("wrong_when_loaded") && threads_ == 0 && elements > 0) to[0] += 1;
  }

  int threads_;
};

plugin::Candidate relu(const plugin::Node& node, const char* layout) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.inputs[0].layout = candidate.outputs[0].layout = layout;
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
  candidate.workspace_bytes = kWorkspaceBytes;
  candidate.build = [](const plugin::BuildOptions& options) -> std::unique_ptr<plugin::Kernel> {
    if (is_lie("cannot_build")) throw plugin::Failure(TESSERA_UNSUPPORTED, "it cannot after all");
    return std::make_unique<Relu>(options.threads);
  };
  candidate.load = [](std::string_view bytes) -> std::unique_ptr<plugin::Kernel> {
    if (is_lie("cannot_load")) throw plugin::Failure(TESSERA_CORRUPT, "it cannot read that");
    return std::make_unique<Relu>(is_lie("wrong_when_loaded") ? 0 : bytes[0] - '0');
  };
  return candidate;
}

// --- Add, which can accumulate; MatMul with a pack; Neg, which one lie offers as a view ----------

void add(RunContext& /*context*/, Buffers inputs, Buffers outputs) {
  const bool adds = outputs[0].request == TESSERA_REQUEST_ADD && !is_lie("forgets_to_add");
  for (int64_t index = 0; index < outputs[0].elements(); ++index) {
    const float right = floats(inputs[1])[index];
    if (adds) {
      floats(outputs[0])[index] += right;
    } else if (outputs[0].request == TESSERA_REQUEST_ADD) {
      floats(outputs[0])[index] = right;
    } else {
      floats(outputs[0])[index] = floats(inputs[0])[index] + right;
    }
  }
}

std::optional<plugin::Candidate> sum(const plugin::Node& node) {
  const bool fits = node.input(0).type() == node.input(1).type() &&
                    node.input(0).type().data_type == TESSERA_FLOAT32 &&
                    node.input(0).id() != node.input(1).id();
  if (!fits) return std::nullopt;
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_ADD;
  candidate.outputs[0].in_place_input = 0;
  candidate.build = [](const plugin::BuildOptions&) { return plugin::make_kernel(add); };
  return candidate;
}

void multiply(RunContext& /*context*/, Buffers inputs, Buffers outputs) {
  const int64_t rows = outputs[0].dims[0];
  const int64_t columns = outputs[0].dims[1];
  const int64_t depth = inputs[0].dims[1];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      float total = 0;
      for (int64_t inner = 0; inner < depth; ++inner) {
        total +=
            floats(inputs[0])[row * depth + inner] * floats(inputs[1])[inner * columns + column];
      }
      floats(outputs[0])[row * columns + column] = total;
    }
  }
}

std::optional<plugin::Candidate> product(const plugin::Node& node) {
  const plugin::Type right = node.input(1).type();
  const bool fits = node.input(0).type().rank == 2 && right.rank == 2 &&
                    right.data_type == TESSERA_FLOAT32 && node.input(1).is_constant();
  if (!fits) return std::nullopt;
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.inputs[1].pack =
      plugin::Pack{"as_it_is", right.dense_bytes(), [](RunContext&, const Buffer& from, void* to) {
                     std::memcpy(to, from.data, static_cast<size_t>(from.bytes));
                     if (is_lie("pack_overruns")) static_cast<char*>(to)[from.bytes] = 1;
                     if (is_lie("pack_is_wrong")) static_cast<float*>(to)[0] += 1;
                   }};
  candidate.build = [](const plugin::BuildOptions&) { return plugin::make_kernel(multiply); };
  return candidate;
}

plugin::Candidate view(const plugin::Node& node) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.flags = TESSERA_CANDIDATE_VIEW;
  if (is_lie("view_reaches_out")) candidate.outputs[0].part.offset_bytes = 4;
  return candidate;
}

// Along the second axis; the last input is stored first.
std::optional<plugin::Candidate> joint(const plugin::Node& node) {
  const plugin::Type whole = node.output(0).type();
  plugin::Candidate candidate = plugin::candidate_for(node);
  if (node.attributes().get_int("axis", 0) != 1 || candidate.inputs.size() != node.input_count()) {
    return std::nullopt;
  }
  candidate.flags = TESSERA_CANDIDATE_JOINT;
  int64_t pixels = 1;
  for (size_t axis = 2; axis < whole.dims.size(); ++axis) pixels *= whole.dims[axis];
  std::vector<int64_t> strides = {whole.dims[1] * pixels};
  for (size_t axis = 1; axis < whole.dims.size(); ++axis) {
    strides.push_back(strides.back() / whole.dims[axis]);
  }
  int64_t first = 0;
  for (size_t number = 0; number < node.input_count(); ++number) {
    const size_t index = is_lie("joint_elsewhere") ? node.input_count() - 1 - number : number;
    candidate.inputs[index].part = {first * pixels * 4, strides};
    if (is_lie("joint_overlaps")) candidate.inputs[index].part.offset_bytes = 0;
    first += node.input(index).type().dims[1];
  }
  return candidate;
}

// Calls use(index in the first buffer, index in the second) for each element.
template <class Use>
void for_each_element(const Buffer& one, const Buffer& other, Use use) {
  for (int64_t number = 0; number < one.elements(); ++number) {
    int64_t rest = number;
    int64_t dense = 1;
    int64_t in_one = 0;
    int64_t in_other = 0;
    for (int32_t axis = one.rank; axis-- > 0;) {
      const int64_t index = rest % one.dims[axis];
      in_one += index * (one.strides == nullptr ? dense : one.strides[axis]);
      in_other += index * (other.strides == nullptr ? dense : other.strides[axis]);
      dense *= one.dims[axis];
      rest /= one.dims[axis];
    }
    use(in_one, in_other);
  }
}

void negate(RunContext& /*context*/, Buffers inputs, Buffers outputs) {
  Buffer from = inputs[0];
  if (is_lie("ignores_strides")) from.strides = nullptr;
  if (is_lie("writes_between_rows") && outputs[0].strides != nullptr) {
    std::memset(outputs[0].data, 0, static_cast<size_t>(outputs[0].bytes));
  }
  for_each_element(from, outputs[0], [&](int64_t source, int64_t target) {
    floats(outputs[0])[target] = -floats(from)[source];
  });
}

plugin::Candidate negation(const plugin::Node& node) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.inputs[0].accepts_strides = candidate.outputs[0].accepts_strides = true;
  candidate.inputs[0].alignment_bytes = candidate.outputs[0].alignment_bytes = 4;
  candidate.build = [](const plugin::BuildOptions&) { return plugin::make_kernel(negate); };
  return candidate;
}

// --- The backend ---------------------------------------------------------------------------------

void twice(const Attributes& /*attributes*/, RunContext& /*context*/, Buffers inputs,
           Buffers outputs) {
  if (is_lie("reference_fails")) throw std::runtime_error("not of this rank");
  const int64_t elements = outputs[0].elements();
  for (int64_t index = 0; index < elements; ++index) {
    floats(outputs[0])[index] = 2 * floats(inputs[0])[index];
  }
  if (is_lie("reference_overruns")) floats(outputs[0])[elements] = 0;
}

struct Liar : plugin::Backend {
  plugin::Description describe() override {
    return {.name = "liar",
            .version = "1",
            .layouts = {fours(), backwards()},
            .conversions = {{.from = kFours, .to = kBackwards, .convert = turn_round}},
            .ops = {{.domain = "org.liar",
                     .name = "Twice",
                     .inputs = {{"x"}},
                     .outputs = {{"y"}},
                     .infer =
                         [](plugin::InferContext& context) {
                           if (is_lie("type_rule_breaks")) throw std::runtime_error("no idea");
                           context.set_output(0, context.input(0));
                         },
                     .reference = twice}}};
  }

  void propose(const plugin::Graph& graph, const plugin::ProposeOptions&,
               plugin::Proposals& proposals) override {
    for (const plugin::Node& node : graph.nodes()) {
      const bool is_float = node.input(0).type().data_type == TESSERA_FLOAT32;
      if (node.op() == "Relu" && is_float) {
        for (const char* layout : {TESSERA_LAYOUT_DEFAULT, kFours}) {
          proposals.add(relu(node, layout));
        }
      } else if (node.op() == "Add" && is_float && sum(node)) {
        proposals.add(*sum(node));
      } else if (node.op() == "MatMul" && is_float && product(node)) {
        proposals.add(*product(node));
      } else if (node.op() == (is_lie("no_view") ? "Neg" : "Flatten") && is_float) {
        proposals.add(view(node));
      } else if (node.op() == "Neg" && is_float) {
        proposals.add(negation(node));
      } else if (node.op() == "Concat" && is_float && joint(node)) {
        proposals.add(*joint(node));
      } else {
        proposals.refuse(node.id(), "not this one");
      }
    }
    if (!is_lie("illegal_offer")) return;
    plugin::Candidate candidate = plugin::candidate_for(graph.node(0));
    candidate.workspace_bytes = -1;
    proposals.add(candidate);
  }
};

}  // namespace

TESSERA_PLUGIN(Liar)
