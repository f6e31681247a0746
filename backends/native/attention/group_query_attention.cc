// GroupQueryAttention of ONNX Runtime's domain. If the memory of a past cache is that of the
// present one, only the new positions are written to it.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/cached_attention.h"
#include "base/families.h"
#include "base/microsoft_ops.h"
#include "base/refusal.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Type;
using plugin::Value;

namespace {

// Inputs of the node.
enum GroupInput : size_t {
  kGroupQuery,
  kGroupKey,
  kGroupValue,
  kGroupPastKey,
  kGroupPastValue,
  kGroupLengths,
  kGroupTotal,
  kGroupCosines,
  kGroupSines,
  kGroupPositions,
  kGroupBias,
  kGroupSinks,
  kGroupInputs
};

// What does not depend on sizes.
struct GroupForm {
  int64_t heads = 0;
  int64_t key_heads = 0;
  bool is_causal = true;
  bool is_rotated = false;
  bool is_interleaved = false;
  int64_t window = -1;
  float scale = 0;  // 0: by the size of a head
  float cap = 0;
  bool has_smooth_softmax = false;
  std::array<int32_t, kGroupInputs> ports = {};  // indices of inputs; -1: there is none
};

// The inputs of a run by their meaning.
class GroupBuffers {
 public:
  GroupBuffers(const GroupForm& form, std::span<const Buffer> inputs)
      : form_(form), inputs_(inputs) {}

  bool has(GroupInput input) const { return form_.ports[input] >= 0; }
  const Buffer& operator[](GroupInput input) const {
    return inputs_[static_cast<size_t>(form_.ports[input])];
  }
  const float* floats(GroupInput input) const {
    return has(input) ? (*this)[input].as<const float>() : nullptr;
  }

 private:
  const GroupForm& form_;
  std::span<const Buffer> inputs_;
};

// The sizes that follow from those of the inputs, which need no data.
CachedAttention group_sizes(const GroupForm& form, const GroupBuffers& given) {
  const std::span<const int64_t> query = given[kGroupQuery].sizes();
  const bool is_packed = !given.has(kGroupKey);
  CachedAttention sizes = {.batch = query[0],
                           .heads = form.heads,
                           .key_heads = form.key_heads,
                           .queries = query[1],
                           .added = is_packed ? query[1] : given[kGroupKey].sizes()[1]};
  sizes.size = query[2] / (is_packed ? form.heads + 2 * form.key_heads : form.heads);
  if (given.has(kGroupPastKey)) {
    sizes.key_cache.past_positions = given[kGroupPastKey].sizes()[2];
    sizes.value_cache.past_positions = sizes.key_cache.past_positions;
  }
  if (form.is_rotated) sizes.rotation.half = given[kGroupCosines].sizes()[1];
  return sizes;
}

// The largest number of keys of these sizes; `present` may be 0 if it is not known.
int64_t most_keys(const CachedAttention& sizes, int64_t present) {
  return std::max(sizes.key_cache.past_positions + sizes.added, present);
}

HeadVectors last_heads(const float* data, int64_t positions, int64_t row, int64_t size) {
  return {data, positions * row, size, row};
}

void set_vectors(CachedAttention& attention, const GroupBuffers& given) {
  const int64_t size = attention.size;
  const int64_t queries = attention.heads * size;
  const int64_t keys = attention.key_heads * size;
  const float* const query = given.floats(kGroupQuery);
  if (given.has(kGroupKey)) {
    attention.query = last_heads(query, attention.queries, queries, size);
    attention.key = last_heads(given.floats(kGroupKey), attention.added, keys, size);
    attention.value = last_heads(given.floats(kGroupValue), attention.added, keys, size);
    return;
  }
  const int64_t row = queries + 2 * keys;
  attention.query = last_heads(query, attention.queries, row, size);
  attention.key = last_heads(query + queries, attention.queries, row, size);
  attention.value = last_heads(query + queries + keys, attention.queries, row, size);
}

void set_scores(CachedAttention& attention, const GroupForm& form, const GroupBuffers& given) {
  attention.is_causal = form.is_causal;
  attention.window = form.window;
  attention.scores.scale =
      form.scale != 0 ? form.scale : 1 / std::sqrt(static_cast<float>(attention.size));
  attention.scores.cap = form.cap;
  attention.has_smooth_softmax = form.has_smooth_softmax;
  attention.sinks = given.floats(kGroupSinks);
  attention.bias = given.floats(kGroupBias);
  if (attention.bias == nullptr) return;
  const std::span<const int64_t> dims = given[kGroupBias].sizes();
  const int64_t matrix = dims[2] * dims[3];
  attention.bias_head = dims[1] == 1 ? 0 : matrix;
  attention.bias_batch = dims[0] == 1 ? 0 : dims[1] * matrix;
}

void set_rotation(CachedAttention& attention, const GroupForm& form, const GroupBuffers& given) {
  if (!form.is_rotated) return;
  RotationTable& table = attention.rotation;
  table.cosines = given.floats(kGroupCosines);
  table.sines = given.floats(kGroupSines);
  table.rows = given[kGroupCosines].sizes()[0];
  table.is_interleaved = form.is_interleaved;
  if (!given.has(kGroupPositions)) return;
  table.positions = given[kGroupPositions].as<const int64_t>();
  table.positions_count = given[kGroupPositions].elements();
  table.positions_stride = given[kGroupPositions].sizes()[1];
}

class GroupQueryKernel : public plugin::Kernel {
 public:
  GroupQueryKernel(const GroupForm& form, int64_t threads, int64_t workspace_bytes)
      : form_(form), threads_(threads), workspace_bytes_(workspace_bytes) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const GroupBuffers given(form_, inputs);
    CachedAttention attention = group_sizes(form_, given);
    attention.total = *given[kGroupTotal].as<const int32_t>();
    attention.last_positions = given[kGroupLengths].as<const int32_t>();
    attention.key_cache.past = given.floats(kGroupPastKey);
    attention.value_cache.past = given.floats(kGroupPastValue);
    // A cache either grows by the new positions or has space for them.
    attention.present = std::max(attention.total, attention.key_cache.past_positions);
    attention.key_cache.present = cache_memory(context, attention, outputs[1], 1);
    attention.value_cache.present = cache_memory(context, attention, outputs[2], 2);
    attention.to = outputs[0].as<float>();
    set_vectors(attention, given);
    set_scores(attention, form_, given);
    set_rotation(attention, form_, given);
    run_cached_attention(context, attention, threads_, context.workspace());
  }

 private:
  static float* cache_memory(RunContext& context, const CachedAttention& attention,
                             const Buffer& output, int32_t index) {
    if (output.is_present()) return output.as<float>();
    const std::array<int64_t, 4> dims = {attention.batch, attention.key_heads, attention.present,
                                         attention.size};
    return static_cast<float*>(context.allocate_output(index, dims));
  }

  GroupForm form_;
  int64_t threads_;
  int64_t workspace_bytes_;
};

GroupForm group_form_of(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (attributes.get_string(name, "NONE") != "NONE") refuse("has no quantised caches");
  }
  // These count only for what is refused below and by the type rule.
  attributes.find("kv_cache_bit_width");
  attributes.find("qk_norm_epsilon");
  attributes.find("qk_output");
  if (attributes.get_int("sliding_window_cache") != 0) refuse("has no caches that slide");
  GroupForm form = {.heads = attributes.get_int("num_heads"),
                    .key_heads = attributes.get_int("kv_num_heads"),
                    .is_causal = attributes.get_int("causal", 1) != 0,
                    .is_rotated = attributes.get_int("do_rotary") != 0,
                    .is_interleaved = attributes.get_int("rotary_interleaved") != 0,
                    .window = attributes.get_int("local_window_size", -1),
                    .scale = attributes.get_float("scale"),
                    .cap = std::max(attributes.get_float("softcap"), 0.0F),
                    .has_smooth_softmax = attributes.get_int("smooth_softmax", -1) == 1};
  return form;
}

// The inputs that the kernel does not know.
void refuse_other_inputs(const Node& node) {
  for (size_t index = kGroupInputs; index < node.input_count(); ++index) {
    if (node.input(index).is_present()) refuse("takes neither scales of caches nor norms of heads");
  }
  if (node.output(3).is_present()) refuse("does not give the scores");
  if (!node.output(1).is_present() || !node.output(2).is_present()) refuse("needs both caches");
}

// Adds a port for each input of the node, whose types the kernel must know.
void add_group_inputs(Candidate& candidate, const Node& node, GroupForm& form) {
  form.ports.fill(-1);
  for (size_t index = 0; index < kGroupInputs; ++index) {
    const Value value = node.input(index);
    if (!value.is_present()) continue;
    const bool is_integer =
        index == kGroupLengths || index == kGroupTotal || index == kGroupPositions;
    if (!is_integer) check_usable(value);
    if (!value.type().is_known()) refuse("takes tensors of known shape only");
    form.ports[index] = plugin::input_port(candidate, value);
  }
}

// A present cache may be in the memory of the past one if it has the same positions.
void add_cache_output(Candidate& candidate, const Value& present, int32_t past, bool is_alone) {
  plugin::output_port(candidate, present);
  plugin::OutputPort& port = candidate.outputs.back();
  port.is_size_unknown = !present.type().is_known();
  if (past < 0 || !is_alone) return;
  port.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  port.in_place_input = past;
}

// The sizes of the proposal.
CachedAttention proposed_sizes(const ProposeContext& context, const Candidate& candidate,
                               const GroupForm& form) {
  std::vector<Type> types;
  for (const plugin::InputPort& port : candidate.inputs) {
    types.push_back(context.graph().value(port.value).type());
  }
  std::vector<Buffer> buffers;
  for (const Type& type : types) {
    Buffer buffer = {};
    buffer.data_type = type.data_type;
    buffer.rank = type.rank;
    buffer.dims = type.dims.data();
    buffers.push_back(buffer);
  }
  return group_sizes(form, GroupBuffers(form, buffers));
}

void offer_group_query(ProposeContext& context, const Node& node) {
  refuse_other_inputs(node);
  GroupForm form = group_form_of(node);
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "cached";
  add_group_inputs(candidate, node, form);
  const Type present = node.output(1).type();
  const int32_t past_key = form.ports[kGroupPastKey];
  const int32_t past_value = form.ports[kGroupPastValue];
  if (!node.output(0).type().is_known() || node.output(0).type().elements() == 0) {
    refuse("takes results of known shape with elements only");
  }
  if (!present.is_known() && past_key < 0) refuse("takes caches of known size, or earlier ones");
  const CachedAttention sizes = proposed_sizes(context, candidate, form);
  plugin::output_port(candidate, node.output(0));
  const bool has_space = present.is_known() && past_key >= 0 && past_key != past_value &&
                         present.dims == node.input(kGroupPastKey).type().dims;
  add_cache_output(candidate, node.output(1), past_key, has_space);
  add_cache_output(candidate, node.output(2), past_value, has_space);
  const int64_t keys = most_keys(sizes, present.is_known() ? present.dims[2] : 0);
  const int64_t threads = context.options().threads;
  candidate.built_for.emplace();
  candidate.workspace_bytes = cached_attention_workspace_bytes(sizes, keys, threads);
  candidate.workspace_for = [form, threads](std::span<const Buffer> inputs,
                                            std::span<const Buffer> outputs) {
    const CachedAttention found = group_sizes(form, GroupBuffers(form, inputs));
    const int64_t known = outputs[1].rank == 4 ? outputs[1].dims[2] : 0;
    return cached_attention_workspace_bytes(found, most_keys(found, known), threads);
  };
  const double elements = static_cast<double>(node.output(0).type().elements());
  candidate.optimistic_seconds =
      context.optimistic_seconds(4 * elements * static_cast<double>(keys), 0);
  candidate.build = [form, bytes = candidate.workspace_bytes](const plugin::BuildOptions& options) {
    return std::make_unique<GroupQueryKernel>(form, options.threads, bytes);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_group_query_attentions(ProposeContext& context) {
  for_each_of_microsoft(context, {"GroupQueryAttention"},
                        [&](const Node& node) { offer_group_query(context, node); });
}

}  // namespace tessera::native
