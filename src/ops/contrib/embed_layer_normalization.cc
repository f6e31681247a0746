// EmbedLayerNormalization: the sum of the embeddings of words, positions and segments, normalised
// over its last axis; and the number of words that a mask keeps.
#include <algorithm>

#include "ops/contrib/contrib.h"
#include "ops/contrib/row_normalization.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

enum EmbedInput : uint8_t {
  kWordIds,
  kSegmentIds,
  kWords,
  kPositions,
  kSegments,
  kScale,
  kShift,
  kMask,
  kPositionIds
};

// An embedding is [rows, hidden size]; scale and shift have that size.
void check_embeddings(const InferContext& context, const Dim& hidden) {
  for (const size_t index : {kPositions, kSegments}) {
    if (context.has_input(index) && context.shape(index) != nullptr) {
      check_shape(context, index, {context.shape(index)->front(), hidden});
    }
  }
  for (const size_t index : {kScale, kShift}) check_shape(context, index, {hidden});
}

// The ids of positions may be those of one sequence for all.
void check_position_ids(const InferContext& context, const Shape& ids) {
  if (!context.has_input(kPositionIds) || context.shape(kPositionIds) == nullptr) return;
  const Shape& given = *context.shape(kPositionIds);
  if (given.front() == Dim(1)) return check_shape(context, kPositionIds, {Dim(1), ids[1]});
  check_shape(context, kPositionIds, ids);
}

void infer_embed(InferContext& context) {
  for (const size_t index :
       {kWordIds, kSegmentIds, kWords, kPositions, kSegments, kMask, kPositionIds}) {
    check_rank(context, index, 2);
  }
  if (context.has_input(kSegmentIds) != context.has_input(kSegments)) {
    context.fail("expected both 'segment_ids' and 'segment_embedding' or neither, found one");
  }
  const Shape* ids = context.shape(kWordIds);
  const Shape* words = context.shape(kWords);
  const DataType type = context.element(kWords);
  if (words != nullptr) check_embeddings(context, words->back());
  context.set_output(1, DataType::Int32);
  if (ids != nullptr) {
    check_shape(context, kSegmentIds, *ids);
    check_shape(context, kMask, *ids);
    check_position_ids(context, *ids);
    context.set_output(1, DataType::Int32, Shape{ids->front()});
  }
  std::optional<Shape> shape;
  if (ids != nullptr && words != nullptr) shape = Shape{(*ids)[0], (*ids)[1], words->back()};
  context.set_output(0, type, shape);
  context.set_output(2, type, shape);
}

// The first element of the embedding of an id. fail()s if there is no such id.
int64_t embedding_of(const KernelCall& call, size_t embedding, int64_t id) {
  const auto dims = call.inputs[embedding].dims;
  if (id < 0 || id >= dims[0]) {
    call.fail("expected ids in [0, " + std::to_string(dims[0]) + ") for input " +
              std::to_string(embedding) + ", found " + std::to_string(id));
  }
  return id * dims[1];
}

void count_words(const KernelCall& call) {
  const auto counts = call.outputs[1].as<int32_t>();
  const int64_t length = call.inputs[kWordIds].dims[1];
  for (size_t sequence = 0; sequence < counts.size(); ++sequence) {
    if (!call.has_input(kMask)) {
      counts[sequence] = 0;
      continue;
    }
    const auto mask = call.inputs[kMask].as<int32_t>().subspan(
        sequence * static_cast<size_t>(length), static_cast<size_t>(length));
    counts[sequence] = static_cast<int32_t>(std::ranges::count(mask, 1));
  }
}

// Adds the embedding that position `position` of input `ids` selects.
template <class T>
void add_embedding(const KernelCall& call, size_t embedding, int64_t id, std::span<double> line) {
  const T* source = call.inputs[embedding].as<T>().data() + embedding_of(call, embedding, id);
  for (size_t column = 0; column < line.size(); ++column) line[column] += to_double(source[column]);
}

int32_t id_at(const KernelCall& call, size_t ids, int64_t position) {
  return call.inputs[ids].as<int32_t>()[static_cast<size_t>(position)];
}

template <class T>
void normalize_embeddings(const KernelCall& call) {
  const auto ids = call.inputs[kWordIds].dims;
  const int64_t columns = call.inputs[kWords].dims[1];
  const std::pmr::vector<double> scale = to_doubles(call.inputs[kScale], call.scratch);
  const std::pmr::vector<double> shift = to_doubles(call.inputs[kShift], call.scratch);
  const bool has_one_line = call.has_input(kPositionIds) && call.inputs[kPositionIds].dims[0] == 1;
  T* target = call.outputs[0].as<T>().data();
  T* sums = call.has_output(2) ? call.outputs[2].as<T>().data() : nullptr;
  const auto read = [&](int64_t row, std::span<double> line) {
    std::ranges::fill(line, 0.0);
    const int64_t place = has_one_line ? row % ids[1] : row;
    const int64_t position =
        call.has_input(kPositionIds) ? id_at(call, kPositionIds, place) : row % ids[1];
    add_embedding<T>(call, kWords, id_at(call, kWordIds, row), line);
    add_embedding<T>(call, kPositions, position, line);
    if (call.has_input(kSegmentIds)) {
      add_embedding<T>(call, kSegments, id_at(call, kSegmentIds, row), line);
    }
    if (sums == nullptr) return;
    std::ranges::transform(line, sums + row * columns, from_double<T>);
  };
  const auto write = [&](int64_t row, std::span<const double> line) {
    for (size_t column = 0; column < line.size(); ++column) {
      target[row * columns + static_cast<int64_t>(column)] =
          from_double<T>(line[column] * scale[column] + shift[column]);
    }
  };
  const RowNormalization normalization = {.rows = ids[0] * ids[1],
                                          .columns = columns,
                                          .epsilon = call.node.attributes.get_float("epsilon")};
  normalize_lines(call, normalization, read, write);
}

void run_embed(const KernelCall& call) {
  if (call.has_output(1)) count_words(call);
  visit_floating(call.inputs[kWords].type,
                 [&](auto tag) { normalize_embeddings<typename decltype(tag)::type>(call); });
}

}  // namespace

std::vector<Op> embed_layer_normalization_ops() {
  return {{.name = "EmbedLayerNormalization",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input_ids", "T1"},
                      {"segment_ids", "T1", Arity::Optional},
                      {"word_embedding", "T"},
                      {"position_embedding", "T"},
                      {"segment_embedding", "T", Arity::Optional},
                      {"gamma", "T"},
                      {"beta", "T"},
                      {"mask", "T1", Arity::Optional},
                      {"position_ids", "T1", Arity::Optional}},
           .outputs = {{"output", "T"},
                       {"mask_index", "T1", Arity::Optional},
                       {"embedding_sum", "T", Arity::Optional}},
           .type_variables = {{"T1", {DataType::Int32}}, {"T", kFloatTypes}},
           // mask_index_type says what a file declares about mask_index, which has one type here.
           .attributes = {{"epsilon", AttributeKind::Float, 1e-12F},
                          {"mask_index_type", AttributeKind::Int, std::nullopt}},
           .infer = infer_embed,
           .flops = normalization_flops,
           .kernel = run_embed}};
}

}  // namespace tessera::ops
