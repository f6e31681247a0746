// WordConvEmbedding: a vector for each word: the maxima over the places of a window that slides
// over the embeddings of its characters, of a convolution and tanh.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

enum WordInput : uint8_t { kWordCharacters, kFilters, kFilterBias, kCharacters };

void check_word_size(const InferContext& context, const char* attribute, const Dim& found) {
  const int64_t* const expected = context.node().attributes.find_int(attribute);
  if (expected == nullptr || !found.is_known() || found == Dim(*expected)) return;
  context.fail(std::string("attribute '") + attribute + "': expected " + found.text() +
               " as the inputs have, found " + std::to_string(*expected));
}

void infer_word_embedding(InferContext& context) {
  check_rank(context, kWordCharacters, 2);
  check_rank(context, kFilters, 4);
  check_rank(context, kCharacters, 2);
  const Shape* words = context.shape(kWordCharacters);
  const Shape* filters = context.shape(kFilters);
  const Shape* characters = context.shape(kCharacters);
  context.set_output(0, context.element(kFilters));
  if (filters == nullptr) return;
  const Dim& width = (*filters)[2];
  check_shape(context, kFilters, {(*filters)[0], Dim(1), width, (*filters)[3]});
  check_shape(context, kFilterBias, {(*filters)[0]});
  check_word_size(context, "embedding_size", (*filters)[0]);
  check_word_size(context, "conv_window_size", width);
  check_word_size(context, "char_embedding_size", (*filters)[3]);
  if (characters != nullptr) {
    check_shape(context, kCharacters, {characters->front(), (*filters)[3]});
  }
  if (words == nullptr) return;
  const Dim& length = words->back();
  if (length.is_known() && width.is_known() &&
      (length.value() < width.value() || width == Dim(0))) {
    context.fail_input(kFilters, "expected windows of 1 to " + length.text() +
                                     " characters, found [" + text(*filters) + "]");
  }
  context.set_output(0, context.element(kFilters), Shape{words->front(), filters->front()});
}

// The number of characters of a word; their numbers are positive. A word that begins with another
// number is empty.
int64_t word_length(std::span<const int32_t> word) {
  if (word.empty() || word.front() <= 0) return 0;
  return std::ranges::count_if(word, [](int32_t character) { return character > 0; });
}

// Sets the embedding of one word.
void embed_word(const KernelCall& call, std::span<const int32_t> word, std::span<float> result) {
  const auto filter_dims = call.inputs[kFilters].dims;
  const int64_t width = filter_dims[2];
  const int64_t size = filter_dims[3];
  const float* filters = call.inputs[kFilters].as<float>().data();
  const float* bias = call.inputs[kFilterBias].as<float>().data();
  const float* table = call.inputs[kCharacters].as<float>().data();
  const int64_t characters = call.inputs[kCharacters].dims[0];
  const int64_t length = word_length(word);
  std::ranges::fill(result, 0.0F);
  if (length == 0) return;
  const int64_t used = std::max(length, width);
  for (const int32_t character : word.first(static_cast<size_t>(used))) {
    if (character >= 0 && character < characters) continue;
    call.fail("expected characters in [0, " + std::to_string(characters) + "), found " +
              std::to_string(character));
  }
  for (size_t filter = 0; filter < result.size(); ++filter) {
    const float* weights = filters + static_cast<int64_t>(filter) * width * size;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t place = 0; place + width <= used; ++place) {
      double sum = bias[filter];
      for (int64_t tap = 0; tap < width; ++tap) {
        const float* embedding = table + word[static_cast<size_t>(place + tap)] * size;
        for (int64_t index = 0; index < size; ++index) {
          sum += static_cast<double>(embedding[index]) *
                 static_cast<double>(weights[tap * size + index]);
        }
      }
      largest = std::max(largest, sum);
    }
    result[filter] = static_cast<float>(std::tanh(largest));
  }
}

void run_word_embedding(const KernelCall& call) {
  const auto words = call.inputs[kWordCharacters].as<int32_t>();
  const auto results = call.outputs[0].as<float>();
  if (results.empty()) return;
  const auto length = static_cast<size_t>(call.inputs[kWordCharacters].dims[1]);
  const auto size = static_cast<size_t>(call.outputs[0].dims[1]);
  call.pool.parallel_for(call.outputs[0].dims[0], 1, [&](int64_t begin, int64_t end) {
    for (auto word = static_cast<size_t>(begin); word < static_cast<size_t>(end); ++word) {
      embed_word(call, words.subspan(word * length, length), results.subspan(word * size, size));
    }
  });
}

}  // namespace

std::vector<Op> word_conv_embedding_ops() {
  return {{.name = "WordConvEmbedding",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"Sequence", "T"}, {"W", "T1"}, {"B", "T1"}, {"C", "T1"}},
           .outputs = {{"Y", "T1"}},
           .type_variables = {{"T", {DataType::Int32}}, {"T1", {DataType::Float32}}},
           .attributes = {{"char_embedding_size", AttributeKind::Int},
                          {"conv_window_size", AttributeKind::Int},
                          {"embedding_size", AttributeKind::Int}},
           .infer = infer_word_embedding,
           .kernel = run_word_embedding}};
}

}  // namespace tessera::ops
