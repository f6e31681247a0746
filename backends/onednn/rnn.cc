// LSTM in one or both directions. oneDNN wants its weights in a format of its own, the gates in
// another order than ONNX, one bias for two, and gives both directions of a step side by side.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "context.h"
#include "families.h"
#include "formats.h"
#include "primitive.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Buffer;
using plugin::Failure;
using plugin::Node;
using plugin::RunContext;
using plugin::Value;

namespace {

constexpr auto kType = memory::data_type::f32;
constexpr int64_t kGates = 4;
// ONNX has input, output, forget, cell; oneDNN input, forget, cell, output.
constexpr int64_t kOnnxGate[kGates] = {0, 2, 3, 1};
constexpr int64_t kCopyGrain = 64;  // rows

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

struct Sizes {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t features = 0;
  int64_t hidden = 0;
  int64_t directions = 1;

  int64_t layer_elements() const { return steps * batch * directions * hidden; }
  int64_t state_elements() const { return directions * batch * hidden; }
};

void check_constant(const Node& node, size_t index) {
  if (!node.input(index).is_constant()) {
    refuse("packs constant weights, which '" + node.input(index).name() + "' is not");
  }
}

// sequence_lens may be given as long as it says what is so without it.
void check_lengths(const Node& node, int64_t steps) {
  const Value lengths = node.input(4);
  if (!lengths.is_present()) return;
  if (lengths.is_constant() && lengths.constant() != nullptr) {
    const std::span<const int32_t> numbers = lengths.constant_as<int32_t>();
    if (std::all_of(numbers.begin(), numbers.end(), [&](int32_t n) { return n == steps; })) return;
  }
  refuse("takes sequences of one length only (sequence_lens)");
}

void check_attributes(const Node& node, int64_t directions) {
  const plugin::Attributes attributes = node.attributes();
  if (attributes.get_int("layout") != 0) refuse("takes steps before batches only (layout = 0)");
  if (attributes.get_int("input_forget") != 0) refuse("has a forget gate of its own always");
  if (attributes.get_float("clip") > 0) refuse("does not clip its sums");
  const std::vector<std::string> activations = attributes.get_strings("activations");
  const std::vector<std::string> expected = {"Sigmoid", "Tanh", "Tanh"};
  for (size_t index = 0; index < activations.size(); ++index) {
    if (activations[index] != expected[index % 3]) {
      refuse("has Sigmoid, Tanh and Tanh for its activations only");
    }
  }
  if (directions == 2 && !activations.empty() && activations.size() != 6) {
    refuse("takes activations of both directions");
  }
}

Sizes sizes_of(const Node& node) {
  for (const size_t index : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{6}}) {
    if (!node.input(index).is_present()) continue;
    if (const auto reason = explain_unusable(node.input(index))) refuse(*reason);
  }
  for (size_t index = 1; index <= 3; ++index) {
    if (node.input(index).is_present()) check_constant(node, index);
  }
  if (node.input(7).is_present()) refuse("is offered without peepholes only");
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> recurrent = node.input(2).type().dims;
  const Sizes sizes = {input[0], input[1], input[2], recurrent[2], recurrent[0]};
  check_attributes(node, sizes.directions);
  check_lengths(node, sizes.steps);
  return sizes;
}

// --- Packs ---------------------------------------------------------------------------------------

// Weights of [directions, gates * hidden, inputs] with the gates in oneDNN's order, seen as
// [1, directions, inputs, gates, hidden].
memory::desc stored_weights(const Sizes& sizes, int64_t inputs) {
  const int64_t gate = sizes.hidden * inputs;
  return {{1, sizes.directions, inputs, kGates, sizes.hidden},
          kType,
          memory::dims{sizes.directions * kGates * gate, kGates * gate, 1, gate, inputs}};
}

void pack_weights(const dnnl::engine& engine, const Sizes& sizes, int64_t inputs,
                  const memory::desc& wanted, const Buffer& from, void* to) {
  const int64_t gate = sizes.hidden * inputs;
  std::vector<float> ordered(static_cast<size_t>(sizes.directions * kGates * gate));
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    for (int64_t index = 0; index < kGates; ++index) {
      std::copy_n(from.as<float>() + (direction * kGates + kOnnxGate[index]) * gate, gate,
                  ordered.begin() + (direction * kGates + index) * gate);
    }
  }
  memory source(stored_weights(sizes, inputs), engine, ordered.data());
  memory target(wanted, engine, to);
  dnnl::stream stream(engine);
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
}

// Biases of input and state, [directions, 2, gates, hidden], added up.
void pack_bias(const Sizes& sizes, const Buffer& from, void* to) {
  const int64_t half = kGates * sizes.hidden;
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    for (int64_t gate = 0; gate < kGates; ++gate) {
      const float* source =
          from.as<float>() + direction * 2 * half + kOnnxGate[gate] * sizes.hidden;
      float* target = static_cast<float*>(to) + direction * half + gate * sizes.hidden;
      for (int64_t unit = 0; unit < sizes.hidden; ++unit) {
        target[unit] = source[unit] + source[half + unit];
      }
    }
  }
}

// --- Primitive -----------------------------------------------------------------------------------

dnnl::lstm_forward::primitive_desc describe_lstm(const Context& context, const Node& node,
                                                 const Sizes& sizes, bool is_any) {
  using Tag = memory::format_tag;
  const auto weights = [&](int64_t inputs) {
    const memory::dims dims = {1, sizes.directions, inputs, kGates, sizes.hidden};
    return memory::desc(dims, kType, is_any ? Tag::any : Tag::ldigo);
  };
  const memory::desc state({1, sizes.directions, sizes.batch, sizes.hidden}, kType, Tag::ldnc);
  const bool has_state = node.input(5).is_present() || node.input(6).is_present();
  const memory::desc initial = has_state ? state : memory::desc();
  const memory::desc bias({1, sizes.directions, kGates, sizes.hidden}, kType, Tag::ldgo);
  auto direction = dnnl::rnn_direction::unidirectional_left2right;
  if (sizes.directions == 2) {
    direction = dnnl::rnn_direction::bidirectional_concat;
  } else if (node.attributes().get_string("direction") == "reverse") {
    direction = dnnl::rnn_direction::unidirectional_right2left;
  }
  return {context.engine(),
          dnnl::prop_kind::forward_inference,
          direction,
          describe(Format::RowMajor, {sizes.steps, sizes.batch, sizes.features}),
          initial,
          initial,
          weights(sizes.features),
          weights(sizes.hidden),
          bias,
          describe(Format::RowMajor, {sizes.steps, sizes.batch, sizes.directions * sizes.hidden}),
          state,
          state,
          context.attributes(),
          true};
}

bool has_plain_weights(const dnnl::lstm_forward::primitive_desc& description) {
  return format_text(description.weights_layer_desc()) &&
         format_text(description.weights_iter_desc());
}

// --- Kernel --------------------------------------------------------------------------------------

// Where each tensor of a run is; -1: there is none.
struct Ports {
  int32_t input = -1;
  int32_t weights = -1;
  int32_t recurrent = -1;
  int32_t bias = -1;
  int32_t initial_state = -1;
  int32_t initial_cell = -1;
  int32_t output = -1;  // all steps
  int32_t last_state = -1;
  int32_t last_cell = -1;
  bool is_side_by_side = false;  // the output is [steps, batch, directions, hidden]
};

int64_t aligned(int64_t bytes) {
  return (bytes + TESSERA_ALIGNMENT_BYTES - 1) / TESSERA_ALIGNMENT_BYTES * TESSERA_ALIGNMENT_BYTES;
}

// The workspace holds the library's scratchpad, both directions of all steps, two states for
// outputs that nobody wants, and one of zeros.
class LstmKernel : public plugin::Kernel {
 public:
  LstmKernel(const dnnl::lstm_forward::primitive_desc& description, const Sizes& sizes,
             const Ports& ports)
      : description_(description), primitive_(description), sizes_(sizes), ports_(ports) {
    // The library has no LSTM without a bias.
    if (ports.bias < 0) no_bias_.resize(description.bias_desc().get_size() / sizeof(float));
  }

  static int64_t workspace_bytes(const dnnl::lstm_forward::primitive_desc& description,
                                 const Sizes& sizes) {
    const auto size = static_cast<int64_t>(sizeof(float));
    return aligned(static_cast<int64_t>(description.scratchpad_desc().get_size())) +
           aligned(sizes.layer_elements() * size) + 3 * aligned(sizes.state_elements() * size);
  }

  int64_t workspace_bytes() const override { return workspace_bytes(description_, sizes_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const Places places = places_of(context);
    std::unordered_map<int, memory> arguments;
    const auto set = [&](int argument, const memory::desc& desc, void* data) {
      arguments.try_emplace(argument, desc, description_.get_engine(), data);
    };
    const auto read = [&](int32_t port) { return inputs[static_cast<size_t>(port)].data; };
    const auto written = [&](int32_t port, void* otherwise) {
      void* data = port < 0 ? nullptr : outputs[static_cast<size_t>(port)].data;
      return data == nullptr ? otherwise : data;
    };
    const bool is_direct = sizes_.directions == 1 || ports_.is_side_by_side;
    void* layer = is_direct ? written(ports_.output, places.layer) : places.layer;
    set(DNNL_ARG_SRC_LAYER, description_.src_layer_desc(), read(ports_.input));
    set(DNNL_ARG_WEIGHTS_LAYER, description_.weights_layer_desc(), read(ports_.weights));
    set(DNNL_ARG_WEIGHTS_ITER, description_.weights_iter_desc(), read(ports_.recurrent));
    set(DNNL_ARG_BIAS, description_.bias_desc(),
        ports_.bias < 0 ? no_bias_.data() : read(ports_.bias));
    if (ports_.initial_state >= 0 || ports_.initial_cell >= 0) {
      std::fill_n(places.zeros, sizes_.state_elements(), 0.0F);
      const auto state = [&](int32_t port) { return port < 0 ? places.zeros : read(port); };
      set(DNNL_ARG_SRC_ITER, description_.src_iter_desc(), state(ports_.initial_state));
      set(DNNL_ARG_SRC_ITER_C, description_.src_iter_c_desc(), state(ports_.initial_cell));
    }
    set(DNNL_ARG_DST_LAYER, description_.dst_layer_desc(), layer);
    set(DNNL_ARG_DST_ITER, description_.dst_iter_desc(), written(ports_.last_state, places.state));
    set(DNNL_ARG_DST_ITER_C, description_.dst_iter_c_desc(),
        written(ports_.last_cell, places.cell));
    set(DNNL_ARG_SCRATCHPAD, description_.scratchpad_desc(), context.workspace());
    dnnl::stream stream(description_.get_engine());
    primitive_.execute(stream, arguments);
    stream.wait();
    void* output = written(ports_.output, nullptr);
    if (!is_direct && output != nullptr) {
      part_directions(context, static_cast<const float*>(layer), static_cast<float*>(output));
    }
  }

 private:
  struct Places {
    float* layer = nullptr;
    float* state = nullptr;
    float* cell = nullptr;
    float* zeros = nullptr;
  };

  Places places_of(RunContext& context) const {
    char* place = static_cast<char*>(context.workspace()) +
                  aligned(static_cast<int64_t>(description_.scratchpad_desc().get_size()));
    const auto take = [&](int64_t elements) {
      float* taken = reinterpret_cast<float*>(place);
      place += aligned(elements * static_cast<int64_t>(sizeof(float)));
      return taken;
    };
    float* layer = take(sizes_.layer_elements());
    float* state = take(sizes_.state_elements());
    float* cell = take(sizes_.state_elements());
    return {layer, state, cell, take(sizes_.state_elements())};
  }

  // [steps, batch, directions, hidden] to [steps, directions, batch, hidden].
  void part_directions(RunContext& context, const float* from, float* to) const {
    const auto [steps, batch, features, hidden, directions] = sizes_;
    context.parallel_for(steps * batch * directions, kCopyGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t sequence = row % sizes_.batch;
        const int64_t direction = row / sizes_.batch % sizes_.directions;
        const int64_t step = row / (sizes_.batch * sizes_.directions);
        const int64_t source = (step * sizes_.batch + sequence) * sizes_.directions + direction;
        std::copy_n(from + source * sizes_.hidden, sizes_.hidden, to + row * sizes_.hidden);
      }
    });
  }

  dnnl::lstm_forward::primitive_desc description_;
  dnnl::lstm_forward primitive_;
  Sizes sizes_;
  Ports ports_;
  std::vector<float> no_bias_;  // zeros
};

// --- Candidates ----------------------------------------------------------------------------------

// The Transpose that puts the directions side by side and alone reads `value`.
std::optional<Node> transpose_after(const plugin::Graph& graph, const Value& value) {
  if (!value.is_present() || value.is_needed() || value.consumers().size() != 1) {
    return std::nullopt;
  }
  const Node node = graph.node(value.consumers().front());
  const std::vector<int64_t> wanted = {0, 2, 1, 3};
  if (!node.domain().empty() || node.op() != "Transpose") return std::nullopt;
  if (node.attributes().get_ints("perm") != wanted) return std::nullopt;
  return node;
}

int32_t add_input(plugin::Candidate& candidate, const Value& value,
                  std::optional<plugin::Pack> pack = std::nullopt) {
  if (!value.is_present()) return -1;
  for (size_t index = 0; index < candidate.inputs.size(); ++index) {
    if (candidate.inputs[index].value != value.id()) continue;
    if (pack || candidate.inputs[index].pack) refuse("needs '" + value.name() + "' in two formats");
    return static_cast<int32_t>(index);
  }
  plugin::InputPort port;
  port.value = value.id();
  port.pack = std::move(pack);
  candidate.inputs.push_back(std::move(port));
  return static_cast<int32_t>(candidate.inputs.size() - 1);
}

int32_t add_output(plugin::Candidate& candidate, const Value& value) {
  if (!value.is_present()) return -1;
  plugin::OutputPort port;
  port.value = value.id();
  candidate.outputs.push_back(std::move(port));
  return static_cast<int32_t>(candidate.outputs.size() - 1);
}

plugin::Pack weights_pack(const dnnl::engine& engine, const Sizes& sizes, int64_t inputs,
                          const memory::desc& wanted) {
  return {"onednn:lstm:" + format_text(wanted).value_or(""),
          static_cast<int64_t>(wanted.get_size()),
          [engine, sizes, inputs, wanted](RunContext&, const Buffer& from, void* to) {
            pack_weights(engine, sizes, inputs, wanted, from, to);
          }};
}

void offer_lstm(Context& context, const Node& node, const Sizes& sizes,
                const dnnl::lstm_forward::primitive_desc& description,
                const std::optional<Node>& transpose) {
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  if (transpose) candidate.nodes.push_back(transpose->id());
  candidate.algorithm = description.impl_info_str();
  Ports ports;
  ports.is_side_by_side = transpose.has_value();
  ports.input = add_input(candidate, node.input(0));
  ports.weights = add_input(
      candidate, node.input(1),
      weights_pack(context.engine(), sizes, sizes.features, description.weights_layer_desc()));
  ports.recurrent = add_input(
      candidate, node.input(2),
      weights_pack(context.engine(), sizes, sizes.hidden, description.weights_iter_desc()));
  if (node.input(3).is_present()) {
    ports.bias = add_input(
        candidate, node.input(3),
        plugin::Pack{
            "onednn:lstm:bias", static_cast<int64_t>(description.bias_desc().get_size()),
            [sizes](RunContext&, const Buffer& from, void* to) { pack_bias(sizes, from, to); }});
  }
  ports.initial_state = add_input(candidate, node.input(5));
  ports.initial_cell = add_input(candidate, node.input(6));
  ports.output = add_output(candidate, transpose ? transpose->output(0) : node.output(0));
  ports.last_state = add_output(candidate, node.output(1));
  ports.last_cell = add_output(candidate, node.output(2));
  candidate.workspace_bytes = LstmKernel::workspace_bytes(description, sizes);
  const double rows = static_cast<double>(sizes.steps * sizes.batch * sizes.directions);
  const double inputs = static_cast<double>(sizes.features + sizes.hidden);
  const double weights = static_cast<double>(kGates * sizes.hidden) * inputs;
  candidate.optimistic_seconds = context.optimistic_seconds(
      2 * rows * weights, static_cast<double>(sizes.directions) * weights * sizeof(float),
      description.impl_info_str());
  candidate.build = [description, sizes, ports](const plugin::BuildOptions&) {
    return std::make_unique<LstmKernel>(description, sizes, ports);
  };
  context.add(std::move(candidate));
}

void offer_lstms(Context& context, const Node& node) {
  const Sizes sizes = sizes_of(node);
  dnnl::lstm_forward::primitive_desc description = describe_lstm(context, node, sizes, true);
  // Formats that the library keeps to itself have no name under which a pack could be kept.
  if (description && !has_plain_weights(description)) {
    description = describe_lstm(context, node, sizes, false);
  }
  if (!description) refuse("oneDNN has no LSTM of this shape");
  const std::optional<Node> transpose = transpose_after(context.graph(), node.output(0));
  if (transpose) offer_lstm(context, node, sizes, description, transpose);
  offer_lstm(context, node, sizes, description, std::nullopt);
}

}  // namespace

void propose_recurrences(Context& context) {
  context.for_each({"LSTM"}, [&](const Node& node) { offer_lstms(context, node); });
}

}  // namespace tessera::onednn
