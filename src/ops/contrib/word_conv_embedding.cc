// WordConvEmbedding: a vector for each word: the maxima over the places of a window that slides
// over the embeddings of its characters, of a convolution and tanh.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <vector>

#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/matmul/dense_operand.h"
#include "ops/matmul/matrix_product.h"

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

// How many characters of a word count: a window may reach behind its end.
int64_t used_length(std::span<const int32_t> word, int64_t width) {
  const int64_t length = word_length(word);
  return length == 0 ? 0 : std::max(length, width);
}

void check_characters(const KernelCall& call, std::span<const int32_t> used) {
  const int64_t characters = call.inputs[kCharacters].dims[0];
  for (const int32_t character : used) {
    if (character >= 0 && character < characters) continue;
    call.fail("expected characters in [0, " + std::to_string(characters) + "), found " +
              std::to_string(character));
  }
}

// The convolutions at all places of some words: [words, places, filters].
void convolve_words(const KernelCall& call, std::span<const int32_t> words, int64_t length,
                    std::span<double> sums) {
  const auto filter_dims = call.inputs[kFilters].dims;
  const int64_t filters = filter_dims[0];
  const int64_t size = filter_dims[3];
  const int64_t depth = filter_dims[2] * size;
  const int64_t places = length - filter_dims[2] + 1;
  const float* table = call.inputs[kCharacters].as<float>().data();
  const int64_t characters = call.inputs[kCharacters].dims[0];
  const auto read_place = [&](int64_t, int64_t row, int64_t begin, int64_t count, double* target) {
    const int32_t* taps = words.data() + row / places * length + row % places;
    for (int64_t done = 0; done < count;) {
      const int32_t character = taps[(begin + done) / size];
      const int64_t place = (begin + done) % size;
      const int64_t length_here = std::min(size - place, count - done);
      // What is behind the end of a word may be anything.
      if (character >= 0 && character < characters) {
        std::copy_n(table + character * size + place, length_here, target + done);
      } else {
        std::fill_n(target + done, length_here, 0.0);
      }
      done += length_here;
    }
  };
  const auto store = [&](int64_t, int64_t row, int64_t filter, int64_t count, const double* found) {
    std::copy_n(found, count, sums.data() + row * filters + filter);
  };
  const ReadDense<double, float> read_filters = {call.inputs[kFilters].as<float>().data(), depth};
  multiply_matrices<double>(call, {.rows = std::ssize(words) / length * places,
                                   .columns = filters,
                                   .depth = depth,
                                   .left = {read_place, true},
                                   .right = {read_filters, true},
                                   .store = store});
}

// Sets the embedding of one word from the convolutions at the first `places`.
void embed_word(std::span<const double> sums, int64_t places, std::span<const float> bias,
                std::span<float> result) {
  for (size_t filter = 0; filter < result.size(); ++filter) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t place = 0; place < places; ++place) {
      largest = std::max(largest, sums[static_cast<size_t>(place) * result.size() + filter]);
    }
    const bool is_empty = places < 1;
    result[filter] =
        is_empty ? 0.0F : static_cast<float>(std::tanh(largest + double{bias[filter]}));
  }
}

void run_word_embedding(const KernelCall& call) {
  constexpr int64_t kWordsAtOnce = 64;
  const auto words = call.inputs[kWordCharacters].as<int32_t>();
  const auto results = call.outputs[0].as<float>();
  if (results.empty()) return;
  const auto bias = call.inputs[kFilterBias].as<float>();
  const int64_t width = call.inputs[kFilters].dims[2];
  const auto length = static_cast<size_t>(call.inputs[kWordCharacters].dims[1]);
  const auto size = static_cast<size_t>(call.outputs[0].dims[1]);
  const size_t sums_of_word = (length - static_cast<size_t>(width) + 1) * size;
  const int64_t count = call.outputs[0].dims[0];
  std::pmr::vector<double> sums(static_cast<size_t>(std::min(count, kWordsAtOnce)) * sums_of_word,
                                &call.scratch);
  const auto word_at = [&](int64_t word) {
    return words.subspan(static_cast<size_t>(word) * length, length);
  };
  for (int64_t first = 0; first < count; first += kWordsAtOnce) {
    const int64_t end = std::min(count, first + kWordsAtOnce);
    for (int64_t word = first; word < end; ++word) {
      const int64_t used = used_length(word_at(word), width);
      check_characters(call, word_at(word).first(static_cast<size_t>(used)));
    }
    const auto some = static_cast<size_t>(end - first) * length;
    convolve_words(call, words.subspan(static_cast<size_t>(first) * length, some),
                   static_cast<int64_t>(length), sums);
    call.pool.parallel_for(end - first, 1, [&](int64_t begin, int64_t stop) {
      for (int64_t index = begin; index < stop; ++index) {
        embed_word(std::span(sums).subspan(static_cast<size_t>(index) * sums_of_word),
                   used_length(word_at(first + index), width) - width + 1, bias,
                   results.subspan(static_cast<size_t>(first + index) * size, size));
      }
    });
  }
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
