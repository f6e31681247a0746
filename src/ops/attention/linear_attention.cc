// LinearAttention: attention as a recurrence, whose state is a matrix for each head: Katharopoulos
// et al., 2020, https://arxiv.org/abs/2006.16236, with the gates and the delta rule of Yang et al.,
// 2024, https://arxiv.org/abs/2412.06464.
#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <string>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/attention/heads.h"
#include "ops/check_shape.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// Positions of inputs.
constexpr size_t kPastState = 3;
constexpr size_t kDecay = 4;
constexpr size_t kBeta = 5;

// What a step does besides adding the outer product of key and value.
struct UpdateRule {
  bool is_gated = false;  // the state decays first
  bool is_delta =
      false;  // the value is replaced by its difference to what the state has for the key
};

UpdateRule update_rule(const Node& node) {
  const std::string& rule = node.attributes.get_string("update_rule");
  return {.is_gated = rule.starts_with("gated"), .is_delta = rule.ends_with("delta")};
}

// --- Rule ----------------------------------------------------------------------------------------

void check_update_rule(const InferContext& context) {
  const std::string& rule = context.node().attributes.get_string("update_rule");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    context.fail(
        "attribute 'update_rule': expected 'linear', 'gated', 'delta' or 'gated_delta', "
        "found '" +
        rule + "'");
  }
  const UpdateRule steps = update_rule(context.node());
  for (const auto& [name, index, is_needed] :
       {std::tuple("decay", kDecay, steps.is_gated), std::tuple("beta", kBeta, steps.is_delta)}) {
    if (context.has_input(index) == is_needed) continue;
    context.fail("expected " + std::string(is_needed ? "the" : "no") + " input '" + name +
                 "' with the update rule '" + rule + "', found " + (is_needed ? "none" : "one"));
  }
}

// fail()s unless decay and beta have a number for each head of keys, or those that are as valid.
void check_rates(const InferContext& context, const Shape& positions, const Dim& heads,
                 const Dim& head_size) {
  for (const auto& [index, other] :
       {std::pair(kDecay, multiply(heads, head_size)), std::pair(kBeta, Dim(1))}) {
    const Shape* shape = shape_of_rank(context, index, 3, "batch, positions, heads");
    if (shape == nullptr || can_be_equal({shape->back()}, {other})) continue;
    check_shape(context, index, {positions[0], positions[1], heads});
  }
  check_dim(context, kDecay, 0, positions[0]);
  check_dim(context, kDecay, 1, positions[1]);
  check_dim(context, kBeta, 0, positions[0]);
  check_dim(context, kBeta, 1, positions[1]);
}

void infer_linear_attention(InferContext& context) {
  check_update_rule(context);
  const int64_t query_heads = head_count(context, "q_num_heads");
  const int64_t key_heads = head_count(context, "kv_num_heads");
  check_groups(context, query_heads, key_heads);
  const DataType state_type =
      context.has_input(kPastState) ? context.element(kPastState) : context.element(0);
  context.set_output(0, context.element(0));
  context.set_output(1, state_type);
  const char* meaning = "batch, positions, heads times their size";
  const Shape* query = shape_of_rank(context, 0, 3, meaning);
  const Shape* key = shape_of_rank(context, 1, 3, meaning);
  const Shape* value = shape_of_rank(context, 2, 3, meaning);
  if (query == nullptr || key == nullptr || value == nullptr) return;
  const Shape positions = {merged((*query)[0], merged((*key)[0], (*value)[0])),
                           merged((*query)[1], merged((*key)[1], (*value)[1]))};
  const Dim head_size = merged(head_size_of(context, 0, (*query)[2], query_heads),
                               head_size_of(context, 1, (*key)[2], key_heads));
  const Dim value_size = head_size_of(context, 2, (*value)[2], key_heads);
  check_shape(context, 0, {positions[0], positions[1], multiply(head_size, query_heads)});
  check_shape(context, 1, {positions[0], positions[1], multiply(head_size, key_heads)});
  check_shape(context, 2, {positions[0], positions[1], (*value)[2]});
  check_rates(context, positions, key_heads, head_size);
  const Shape state = {positions[0], key_heads, head_size, value_size};
  if (context.has_input(kPastState)) check_shape(context, kPastState, state);
  context.set_output(0, context.element(0),
                     Shape{positions[0], positions[1], multiply(value_size, query_heads)});
  context.set_output(1, state_type, state);
}

// --- Kernel --------------------------------------------------------------------------------------

// The columns of a state that a task computes: no column depends on another one.
constexpr int64_t kStateColumns = 32;

struct LinearRecurrence {
  UpdateRule rule;
  int64_t batch = 0;
  int64_t positions = 0;
  int64_t query_heads = 0;
  int64_t key_heads = 0;
  int64_t head_size = 0;
  int64_t value_size = 0;
  double scale = 1;
  HeadView query;
  HeadView key;
  HeadView value;
  HeadView decay;  // of one number or of head_size numbers for each head
  int64_t decay_size = 0;
  HeadView beta;
};

// The memory of a task.
struct StateMemory {
  double* state = nullptr;  // [head_size][kStateColumns]
  double* query = nullptr;  // head_size numbers each
  double* key = nullptr;
  double* decay = nullptr;

  static int64_t size(int64_t head_size) { return head_size * (kStateColumns + 3); }
  static StateMemory at(double* memory, int64_t head_size) {
    double* const vectors = memory + head_size * kStateColumns;
    return {memory, vectors, vectors + head_size, vectors + 2 * head_size};
  }
};

// Some columns of the state of one head of keys.
struct StateColumns {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t first = 0;
  int64_t count = 0;
};

void decay_state(const LinearRecurrence& problem, const StateColumns& columns, int64_t position,
                 const StateMemory& memory) {
  problem.decay.read(columns.batch, columns.head, position, 0, problem.decay_size, memory.decay);
  for (int64_t index = 0; index < problem.decay_size; ++index) {
    memory.decay[index] = std::exp(memory.decay[index]);
  }
  for (int64_t row = 0; row < problem.head_size; ++row) {
    const double factor = memory.decay[problem.decay_size == 1 ? 0 : row];
    double* const state = memory.state + row * kStateColumns;
    for (int64_t column = 0; column < columns.count; ++column) state[column] *= factor;
  }
}

// Adds `factor` times each row of the state to `sums`.
void add_rows(const double* factors, const StateMemory& memory, int64_t rows, double* sums) {
  std::fill_n(sums, kStateColumns, 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    const double* const state = memory.state + row * kStateColumns;
    for (int64_t column = 0; column < kStateColumns; ++column) {
      sums[column] += factors[row] * state[column];
    }
  }
}

// Updates the state by one position.
void update_state(const LinearRecurrence& problem, const StateColumns& columns, int64_t position,
                  const StateMemory& memory) {
  if (problem.rule.is_gated) decay_state(problem, columns, position, memory);
  problem.key.read(columns.batch, columns.head, position, 0, problem.head_size, memory.key);
  double value[kStateColumns] = {};
  problem.value.read(columns.batch, columns.head, position, columns.first, columns.count, value);
  if (problem.rule.is_delta) {
    double beta = 0;
    problem.beta.read(columns.batch, columns.head, position, 0, 1, &beta);
    double found[kStateColumns];
    add_rows(memory.key, memory, problem.head_size, found);
    for (int64_t column = 0; column < columns.count; ++column) {
      value[column] = beta * (value[column] - found[column]);
    }
  }
  for (int64_t row = 0; row < problem.head_size; ++row) {
    double* const state = memory.state + row * kStateColumns;
    for (int64_t column = 0; column < kStateColumns; ++column) {
      state[column] += memory.key[row] * value[column];
    }
  }
}

// Computes all positions of some columns.
void run_columns(const KernelCall& call, const LinearRecurrence& problem,
                 const StateColumns& columns, const StateMemory& memory) {
  std::fill_n(memory.state, problem.head_size * kStateColumns, 0.0);
  if (call.has_input(kPastState)) {
    // A vector of this view is a row of the state of a head.
    const HeadView past = heads_first(call.inputs[kPastState]);
    for (int64_t row = 0; row < problem.head_size; ++row) {
      past.read(columns.batch, columns.head, row, columns.first, columns.count,
                memory.state + row * kStateColumns);
    }
  }
  const int64_t group = problem.query_heads / problem.key_heads;
  const MutableHeadView output = heads_last(call.outputs[0], problem.query_heads);
  for (int64_t position = 0; position < problem.positions; ++position) {
    update_state(problem, columns, position, memory);
    for (int64_t head = columns.head * group; head < (columns.head + 1) * group; ++head) {
      problem.query.read(columns.batch, head, position, 0, problem.head_size, memory.query);
      double sums[kStateColumns];
      add_rows(memory.query, memory, problem.head_size, sums);
      for (double& sum : sums) sum *= problem.scale;
      output.write(columns.batch, head, position, columns.first, columns.count, sums);
    }
  }
  if (!call.has_output(1)) return;
  const MutableHeadView present = heads_first(call.outputs[1]);
  for (int64_t row = 0; row < problem.head_size; ++row) {
    present.write(columns.batch, columns.head, row, columns.first, columns.count,
                  memory.state + row * kStateColumns);
  }
}

LinearRecurrence linear_recurrence(const KernelCall& call) {
  const TensorView& query = call.inputs[0];
  LinearRecurrence problem = {.rule = update_rule(call.node),
                              .batch = query.dims[0],
                              .positions = query.dims[1],
                              .query_heads = call.node.attributes.get_int("q_num_heads"),
                              .key_heads = call.node.attributes.get_int("kv_num_heads")};
  problem.head_size = query.dims[2] / problem.query_heads;
  problem.value_size = call.inputs[2].dims[2] / problem.key_heads;
  const double scale = call.node.attributes.get_float("scale");
  problem.scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(problem.head_size)) : scale;
  if (problem.head_size == 0) problem.scale = 1;
  problem.query = heads_last(query, problem.query_heads);
  problem.key = heads_last(call.inputs[1], problem.key_heads);
  problem.value = heads_last(call.inputs[2], problem.key_heads);
  if (problem.rule.is_gated) {
    problem.decay = heads_last(call.inputs[kDecay], problem.key_heads);
    problem.decay_size = call.inputs[kDecay].dims[2] / problem.key_heads;
  }
  if (problem.rule.is_delta) {
    const bool is_shared = call.inputs[kBeta].dims[2] == 1;
    problem.beta = heads_last(call.inputs[kBeta], is_shared ? 1 : problem.key_heads);
    if (is_shared) problem.beta.head = 0;
  }
  return problem;
}

void run_linear_attention(const KernelCall& call) {
  if (!has_output_elements(call)) return;
  const LinearRecurrence problem = linear_recurrence(call);
  const int64_t blocks = (problem.value_size + kStateColumns - 1) / kStateColumns;
  const int64_t tasks = problem.batch * problem.key_heads * blocks;
  const int64_t size = StateMemory::size(problem.head_size);
  std::pmr::vector<double> buffers(static_cast<size_t>(slot_count(call.pool, tasks, 1) * size),
                                   &call.scratch);
  parallel_for_in_slots(call.pool, tasks, 1, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kStateColumns;
      const StateColumns columns = {task / blocks / problem.key_heads,
                                    task / blocks % problem.key_heads, first,
                                    std::min(kStateColumns, problem.value_size - first)};
      run_columns(call, problem, columns,
                  StateMemory::at(buffers.data() + slot * size, problem.head_size));
    }
  });
}

// For each element of a state and each position: decay, delta, update and output.
int64_t linear_attention_flops(const Node& node, std::span<const Type> inputs,
                               std::span<const Type> outputs) {
  const Dim head_size = floor_divide((*inputs[0].shape)[2], node.attributes.get_int("q_num_heads"));
  return multiply(flops_per_output(node, inputs, outputs), multiply(head_size, 7)).value();
}

}  // namespace

std::vector<Op> linear_attention_ops() {
  constexpr TypeSet kTypes = {DataType::Float16, DataType::BFloat16, DataType::Float32};
  const AttributeSchema key_heads = {
      .name = "kv_num_heads", .kind = AttributeKind::Int, .is_required = true};
  AttributeSchema query_heads = key_heads;
  query_heads.name = "q_num_heads";
  return {{.name = "LinearAttention",
           .versions = {27},
           .inputs = {{"query", "T"},
                      {"key", "T"},
                      {"value", "T"},
                      {"past_state", "S", Arity::Optional},
                      {"decay", "T", Arity::Optional},
                      {"beta", "T", Arity::Optional}},
           .outputs = {{"output", "T"}, {"present_state", "S"}},
           .type_variables = {{"T", kTypes}, {"S", kTypes}},
           .attributes = {{"chunk_size", AttributeKind::Int, int64_t{64}},
                          key_heads,
                          query_heads,
                          {"scale", AttributeKind::Float, 0.0F},
                          {"update_rule", AttributeKind::String, std::string("gated_delta")}},
           .infer = infer_linear_attention,
           .flops = linear_attention_flops,
           .kernel = run_linear_attention}};
}

}  // namespace tessera::ops
