// RotaryEmbedding of ONNX's own domain and of com.microsoft, which differ in the order of their
// inputs and in what gives the positions.
#include <string>

#include "ops/attention/heads.h"
#include "ops/attention/rotation.h"
#include "ops/check_shape.h"
#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr TypeSet kRotatedTypes = {DataType::Float16, DataType::BFloat16, DataType::Float32};

// Where the inputs are.
struct RotaryInputs {
  size_t cosines = 1;
  size_t sines = 2;
  size_t positions = 3;
};

bool is_of_microsoft(const Node& node) { return !node.domain.empty(); }

RotaryInputs rotary_inputs(const Node& node) {
  return is_of_microsoft(node) ? RotaryInputs{2, 3, 1} : RotaryInputs{};
}

// --- Rule ----------------------------------------------------------------------------------------

// fail()s unless cosines and sines have rows of half the rotated size. Returns this half.
Dim check_caches(const InferContext& context, const RotaryInputs& inputs, size_t rank) {
  const char* meaning = rank == 2 ? "positions, half of the rotated size"
                                  : "batch, positions, half of the rotated size";
  const Shape* cosines = shape_of_rank(context, inputs.cosines, rank, meaning);
  const Shape* sines = shape_of_rank(context, inputs.sines, rank, meaning);
  if (cosines != nullptr) check_shape(context, inputs.sines, *cosines);
  const Shape* known = cosines != nullptr ? cosines : sines;
  return known == nullptr ? Dim::symbol("?") : known->back();
}

// The size of a head; nullopt if it is unknown.
std::optional<Dim> rotary_head_size(const InferContext& context, const Shape& input,
                                    const Dim& half, int64_t rotated) {
  if (input.size() == 4) return input[3];
  const int64_t heads = head_count(context, "num_heads");
  if (heads > 0) return head_size_of(context, 0, input[2], heads);
  if (!is_of_microsoft(context.node())) {
    context.fail(
        "expected the attribute 'num_heads', which an input of 3 dimensions needs, found "
        "none");
  }
  if (rotated > 0) {
    context.fail(
        "expected the attribute 'num_heads', which 'rotary_embedding_dim' needs, found "
        "none");
  }
  if (!half.is_known()) return std::nullopt;
  // The heads are as large as the cosines say.
  if (input[2].is_known() && (half.value() == 0 || input[2].value() % (2 * half.value()) != 0)) {
    context.fail_input(0, "expected a last dimension that is a multiple of the " +
                              multiply(half, 2).text() + " elements that are rotated, found " +
                              text(input));
  }
  return multiply(half, 2);
}

void check_rotated_size(const InferContext& context, const Dim& head_size, const Dim& half,
                        int64_t rotated) {
  if (rotated < 0 || rotated % 2 != 0) {
    context.fail("attribute 'rotary_embedding_dim': expected an even number of at least 0, found " +
                 std::to_string(rotated));
  }
  if (head_size.is_known() && rotated > head_size.value()) {
    context.fail("attribute 'rotary_embedding_dim': expected at most " + head_size.text() +
                 ", the size of a head, found " + std::to_string(rotated));
  }
  if (rotated == 0 && head_size.is_known() && head_size.value() % 2 != 0) {
    context.fail_input(0, "expected heads of an even size, found " + head_size.text());
  }
  const Dim expected = rotated > 0 ? Dim(rotated / 2) : floor_divide(head_size, 2);
  if (can_be_equal({half}, {expected})) return;
  context.fail_input(rotary_inputs(context.node()).cosines,
                     "expected " + expected.text() +
                         " numbers in a row, half of the size that is rotated, found " +
                         half.text());
}

// fail()s unless the ids are one for each position, or, for com.microsoft, the first position.
void check_positions(const InferContext& context, size_t index, const Dim& batch,
                     const Dim& positions) {
  const Shape* shape = context.shape(index);
  if (shape == nullptr) return;
  const bool is_first =
      is_of_microsoft(context.node()) && shape->size() == 1 && can_be_equal(*shape, {Dim(1)});
  if (!is_first) {
    shape_of_rank(context, index, 2, "batch, positions");
    check_shape(context, index, {batch, positions});
  }
}

void infer_rotary_embedding(InferContext& context) {
  context.set_output(0, context.element(0), context.input(0).type.shape);
  const RotaryInputs inputs = rotary_inputs(context.node());
  const bool has_positions = context.has_input(inputs.positions);
  const Dim half = check_caches(context, inputs, has_positions ? 2 : 3);
  const Shape* input = context.shape(0);
  if (input == nullptr) return;
  if (input->size() != 3 && input->size() != 4) {
    context.fail_input(0, "expected 3 or 4 dimensions, found " + text(*input));
  }
  const int64_t rotated = context.node().attributes.get_int("rotary_embedding_dim");
  const auto head_size = rotary_head_size(context, *input, half, rotated);
  if (head_size) check_rotated_size(context, *head_size, half, rotated);
  const Dim& positions = (*input)[input->size() - 2];
  if (has_positions) {
    check_positions(context, inputs.positions, (*input)[0], positions);
  } else {
    check_dim(context, inputs.cosines, 0, (*input)[0]);
    check_dim(context, inputs.cosines, 1, positions);
  }
}

// --- Kernel --------------------------------------------------------------------------------------

void run_rotary_embedding(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const RotaryInputs places = rotary_inputs(call.node);
  Rotation rotation;
  rotation.cosines = call.inputs[places.cosines];
  rotation.sines = call.inputs[places.sines];
  rotation.size = 2 * rotation.cosines.dims.back();
  rotation.is_interleaved = call.node.attributes.get_int("interleaved") != 0;
  HeadSizes sizes = {.batch = input.dims[0]};
  HeadView source;
  MutableHeadView target;
  if (input.rank() == 4) {
    sizes.heads = input.dims[1];
    source = heads_first(input);
    target = heads_first(call.outputs[0]);
  } else {
    const int64_t* given = call.node.attributes.find_int("num_heads");
    sizes.heads = given != nullptr && *given > 0 ? *given : input.dims[2] / rotation.size;
    source = heads_last(input, sizes.heads);
    target = heads_last(call.outputs[0], sizes.heads);
  }
  sizes.positions = input.dims[input.dims.size() - 2];
  sizes.size = input.elements / (sizes.batch * sizes.heads * sizes.positions);
  if (!call.has_input(places.positions)) {
    return rotate_heads(call, rotation, source, sizes, target,
                        [&](int64_t b, int64_t s) { return b * sizes.positions + s; });
  }
  const TensorView& ids = call.inputs[places.positions];
  const int64_t rows = rotation.cosines.dims[0];
  const bool is_first = ids.rank() == 1;
  if (is_first) {
    const int64_t first = integer_at(ids, 0);
    if (first < 0 || first > rows - sizes.positions) {
      call.fail("expected a first position in [0, " + std::to_string(rows - sizes.positions) +
                "], found " + std::to_string(first));
    }
  }
  rotate_heads(call, rotation, source, sizes, target, [&](int64_t b, int64_t s) {
    if (is_first) return integer_at(ids, 0) + s;
    return index_at(call, ids, b * sizes.positions + s, rows);
  });
}

// Two products and a sum for each element.
int64_t rotary_flops(const Node& node, std::span<const Type> inputs,
                     std::span<const Type> outputs) {
  return multiply(flops_per_output(node, inputs, outputs), 3).value();
}

}  // namespace

std::vector<Op> rotary_embedding_ops() {
  Op op = {.name = "RotaryEmbedding",
           .versions = {23},
           .inputs = {{"X", "T"},
                      {"cos_cache", "T"},
                      {"sin_cache", "T"},
                      {"position_ids", "M", Arity::Optional}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kRotatedTypes}, {"M", kInt64Type}},
           .attributes = {{"interleaved", AttributeKind::Int, int64_t{0}},
                          {"num_heads", AttributeKind::Int},
                          {"rotary_embedding_dim", AttributeKind::Int, int64_t{0}}},
           .infer = infer_rotary_embedding,
           .flops = rotary_flops,
           .kernel = run_rotary_embedding};
  Op of_microsoft = op;
  of_microsoft.domain = kMicrosoftDomain;
  of_microsoft.versions = {1};
  of_microsoft.inputs = {
      {"input", "T"}, {"position_ids", "M"}, {"cos_cache", "T"}, {"sin_cache", "T"}};
  of_microsoft.outputs = {{"output", "T"}};
  // ONNX Runtime reads neither the scale nor whether the batch is ragged.
  of_microsoft.attributes.push_back({"is_packed_batching", AttributeKind::Int, int64_t{0}});
  of_microsoft.attributes.push_back({"scale", AttributeKind::Float, 1.0F});
  return {op, of_microsoft};
}

}  // namespace tessera::ops
