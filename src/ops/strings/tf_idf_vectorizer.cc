// TfIdfVectorizer: how often each of a list of n-grams occurs.
// https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/number_index.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr int64_t kNoWord = NumberIndex::kNone;

enum class Weighting : uint8_t { Tf, Idf, TfIdf };

std::optional<Weighting> weighting_of(const Node& node) {
  const std::string& mode = node.attributes.get_string("mode");
  if (mode == "TF") return Weighting::Tf;
  if (mode == "IDF") return Weighting::Idf;
  if (mode == "TFIDF") return Weighting::TfIdf;
  return std::nullopt;
}

int64_t output_length(const Node& node) {
  const std::vector<int64_t>& indexes = node.attributes.get_ints("ngram_indexes");
  return indexes.empty() ? 0 : *std::ranges::max_element(indexes) + 1;
}

// The pool is one list of words after another: `counts[n - 1]` is the position in it where those of
// n words begin.
void check_pool(const InferContext& context, int64_t pool_size) {
  const std::vector<int64_t>& counts = context.node().attributes.get_ints("ngram_counts");
  int64_t ngrams = 0;
  for (size_t index = 0; index < counts.size(); ++index) {
    const int64_t end = index + 1 < counts.size() ? counts[index + 1] : pool_size;
    const auto words = static_cast<int64_t>(index) + 1;
    if (counts[index] < 0 || end < counts[index] || (end - counts[index]) % words != 0 ||
        (index == 0 && counts[index] != 0)) {
      context.fail("attribute 'ngram_counts': expected where the " + std::to_string(words) +
                   "-grams begin in a pool of " + std::to_string(pool_size) + ", found " +
                   std::to_string(counts[index]) + " to " + std::to_string(end));
    }
    ngrams += (end - counts[index]) / words;
  }
  const std::vector<int64_t>& indexes = context.node().attributes.get_ints("ngram_indexes");
  if (std::ssize(indexes) != ngrams) {
    context.fail("attribute 'ngram_indexes': expected one for each of " + std::to_string(ngrams) +
                 " n-grams, found " + std::to_string(indexes.size()));
  }
  constexpr int64_t kMaxOutput = int64_t{1} << 32;
  for (const int64_t index : indexes) {
    if (index >= 0 && index < kMaxOutput) continue;
    context.fail("attribute 'ngram_indexes': expected positions in the output, found " +
                 std::to_string(index));
  }
  const std::vector<float>* weights = context.node().attributes.find_floats("weights");
  if (weights != nullptr && weights->size() != indexes.size()) {
    context.fail("attribute 'weights': expected " + std::to_string(indexes.size()) +
                 ", one for each n-gram, found " + std::to_string(weights->size()));
  }
}

void check_attributes_of_ngrams(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  if (!weighting_of(context.node())) {
    context.fail("attribute 'mode': expected TF, IDF or TFIDF, found '" +
                 attributes.get_string("mode") + "'");
  }
  const int64_t shortest = attributes.get_int("min_gram_length");
  const int64_t longest = attributes.get_int("max_gram_length");
  if (shortest < 1 || longest < shortest) {
    context.fail("expected lengths of n-grams of at least 1, the smallest first, found " +
                 std::to_string(shortest) + " and " + std::to_string(longest));
  }
  if (attributes.get_int("max_skip_count") < 0) {
    context.fail("attribute 'max_skip_count': expected at least 0, found " +
                 std::to_string(attributes.get_int("max_skip_count")));
  }
  const std::vector<std::string>* words = attributes.find_strings("pool_strings");
  const std::vector<int64_t>* numbers = attributes.find_ints("pool_int64s");
  if ((words == nullptr) == (numbers == nullptr)) {
    context.fail("expected 'pool_strings' or 'pool_int64s', found " +
                 std::string(words == nullptr ? "neither" : "both"));
  }
  const bool is_text = context.element(0) == DataType::String;
  if (context.element(0) != DataType::Undefined && is_text != (words != nullptr)) {
    context.fail_input(0, "expected elements like those of the pool, found " +
                              std::string(name(context.element(0))));
  }
  check_pool(context, words != nullptr ? std::ssize(*words) : std::ssize(*numbers));
}

void infer_vectorizer(InferContext& context) {
  check_attributes_of_ngrams(context);
  const Dim length = output_length(context.node());
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, DataType::Float32);
  if (shape->size() != 1 && shape->size() != 2) {
    context.fail_input(0, "expected a shape of [C] or [N, C], found " + text(*shape));
  }
  Shape output = *shape;
  output.back() = length;
  context.set_output(0, DataType::Float32, std::move(output));
}

// The n-grams of a node as a trie of numbered words.
class NGrams {
 public:
  explicit NGrams(const Node& node)
      : weighting_(*weighting_of(node)),
        shortest_(node.attributes.get_int("min_gram_length")),
        longest_(node.attributes.get_int("max_gram_length")),
        max_skip_(node.attributes.get_int("max_skip_count")),
        length_(output_length(node)),
        indexes_(node.attributes.get_ints("ngram_indexes")) {
    if (const auto* weights = node.attributes.find_floats("weights")) weights_ = *weights;
    std::vector<int64_t> pool;
    if (const auto* words = node.attributes.find_strings("pool_strings")) {
      for (const std::string& word : *words) {
        pool.push_back(words_.try_emplace(word, std::ssize(words_)).first->second);
      }
      word_count_ = words_.size();
    } else {
      for (const int64_t number : *node.attributes.find_ints("pool_int64s")) {
        pool.push_back(numbers_.add(static_cast<uint64_t>(number), numbers_.count()));
      }
      word_count_ = static_cast<size_t>(numbers_.count());
    }
    add_all(node.attributes.get_ints("ngram_counts"), pool);
  }

  int64_t length() const { return length_; }

  // What one thread needs to count the n-grams of a row.
  struct Counter {
    Counter(const NGrams& ngrams, size_t words) : counts(ngrams.indexes_.size()) {
      row.reserve(words);
      found.reserve(counts.size());
    }

    std::vector<int64_t> row;   // its words, as they are numbered
    std::vector<float> counts;  // by n-gram; 0 between rows
    std::vector<size_t> found;  // n-grams with another count
  };

  // Adds to `output`.
  void count(const Tensor& input, size_t begin, size_t count, Counter& counter,
             std::span<float> output) const {
    set_row(input, begin, count, counter.row);
    const std::span<const int64_t> row = counter.row;
    for (int64_t distance = 1; distance <= max_skip_ + 1; ++distance) {
      // One word skips none, so it is counted once.
      const int64_t shortest = distance == 1 ? shortest_ : std::max<int64_t>(2, shortest_);
      // Beyond the row, no n-gram of two words fits.
      if (distance > std::max<int64_t>(1, std::ssize(row))) break;
      for (size_t first = 0; first < row.size(); ++first) {
        count_from(row, first, static_cast<size_t>(distance), shortest, counter);
      }
    }
    for (const size_t ngram : counter.found) {
      output[static_cast<size_t>(indexes_[ngram])] += weighted(ngram, counter.counts[ngram]);
      counter.counts[ngram] = 0;
    }
    counter.found.clear();
  }

 private:
  // The words of a row of the input.
  void set_row(const Tensor& input, size_t begin, size_t count, std::vector<int64_t>& row) const {
    row.clear();
    if (input.is_strings()) {
      for (const std::string& word : input.as<std::string>().subspan(begin, count)) {
        const auto found = words_.find(word);
        row.push_back(found == words_.end() ? kNoWord : found->second);
      }
      return;
    }
    const auto add_all = [&](auto numbers) {
      for (const int64_t number : numbers.subspan(begin, count)) {
        row.push_back(numbers_.find(static_cast<uint64_t>(number)));
      }
    };
    if (input.type() == DataType::Int32) return add_all(input.as<int32_t>());
    add_all(input.as<int64_t>());
  }

  // The key of a step from an entry of the trie to the entry of the n-gram with one more word.
  uint64_t step_key(size_t entry, int64_t word) const {
    return entry * word_count_ + static_cast<size_t>(word);
  }

  void add_all(const std::vector<int64_t>& counts, std::span<const int64_t> pool) {
    size_t ngram = 0;
    for (size_t index = 0; index < counts.size(); ++index) {
      const auto end =
          index + 1 < counts.size() ? static_cast<size_t>(counts[index + 1]) : pool.size();
      const size_t words = index + 1;
      for (auto begin = static_cast<size_t>(counts[index]); begin < end; begin += words) {
        add(pool.subspan(begin, words), ngram++);
      }
    }
  }

  void add(std::span<const int64_t> words, size_t ngram) {
    size_t entry = 0;
    for (const int64_t word : words) {
      const auto made = std::ssize(ngrams_);
      entry = static_cast<size_t>(steps_.add(step_key(entry, word), made));
      if (static_cast<int64_t>(entry) == made) ngrams_.emplace_back();
    }
    ngrams_[entry].push_back(ngram);
  }

  void count_from(std::span<const int64_t> row, size_t begin, size_t distance, int64_t shortest,
                  Counter& counter) const {
    size_t entry = 0;
    int64_t words = 0;
    for (size_t index = begin; index < row.size() && words < longest_; index += distance) {
      if (row[index] == kNoWord) return;
      const int64_t next = steps_.find(step_key(entry, row[index]));
      if (next == NumberIndex::kNone) return;
      entry = static_cast<size_t>(next);
      if (++words < shortest) continue;
      for (const size_t ngram : ngrams_[entry]) {
        if (counter.counts[ngram] == 0) counter.found.push_back(ngram);
        counter.counts[ngram] += 1;
      }
    }
  }

  float weighted(size_t ngram, float count) const {
    const float weight = weights_.empty() ? 1 : weights_[ngram];
    switch (weighting_) {
      case Weighting::Tf:
        return count;
      case Weighting::Idf:
        return count > 0 ? weight : 0;
      case Weighting::TfIdf:
        return count * weight;
    }
    return count;
  }

  Weighting weighting_;
  int64_t shortest_;
  int64_t longest_;
  int64_t max_skip_;
  int64_t length_;
  std::vector<int64_t> indexes_;
  std::vector<float> weights_;
  // The words of the pool are numbered: they are one or the other.
  std::unordered_map<std::string, int64_t> words_;
  NumberIndex numbers_;
  size_t word_count_ = 0;
  // A trie: the n-grams that end at each entry, and the next entry by step_key(). Entry 0 is the
  // beginning.
  std::vector<std::vector<size_t>> ngrams_ = std::vector<std::vector<size_t>>(1);
  NumberIndex steps_;
};

void run_vectorizer(const ValueCall& call) {
  const auto ngrams = call.prepared<NGrams>([&] { return NGrams(call.node); });
  const Tensor& input = call.inputs[0];
  if (input.rank() != 1 && input.rank() != 2) {
    call.fail("expected a shape of [C] or [N, C], found " + dims_text(input.dims()));
  }
  std::vector<int64_t> dims = input.dims();
  const auto words = static_cast<size_t>(dims.back());
  const auto length = static_cast<size_t>(ngrams->length());
  dims.back() = ngrams->length();
  Tensor output(DataType::Float32, std::move(dims));
  const std::span<float> all = output.mutable_as<float>();
  const int64_t rows = input.rank() == 2 ? input.dims()[0] : 1;
  const int64_t grain =
      std::max<int64_t>(1, 8 * kElementGrain / static_cast<int64_t>(length + 16 * words + 1));
  ThreadPool serial(1);
  ThreadPool& pool = call.pool == nullptr ? serial : *call.pool;
  std::vector<NGrams::Counter> counters;
  for (int64_t slot = 0; slot < slot_count(pool, rows, grain); ++slot) {
    counters.emplace_back(*ngrams, words);
  }
  const auto run = [&](int64_t slot, int64_t begin, int64_t end) {
    for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row) {
      const std::span<float> output_row = all.subspan(row * length, length);
      std::ranges::fill(output_row, 0.0F);
      ngrams->count(input, row * words, words, counters[static_cast<size_t>(slot)], output_row);
    }
  };
  parallel_for_in_slots(pool, rows, grain, run);
  call.outputs[0] = std::move(output);
}

}  // namespace

std::vector<Op> tf_idf_vectorizer_ops() {
  constexpr TypeSet kWordTypes = {DataType::String, DataType::Int32, DataType::Int64};
  const auto required = [](const char* name, AttributeKind kind) {
    return AttributeSchema{name, kind, std::nullopt, 1, kAnyVersion, true};
  };
  return {{.name = "TfIdfVectorizer",
           .versions = {9},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T1"}},
           .type_variables = {{"T", kWordTypes}, {"T1", TypeSet{DataType::Float32}}},
           .attributes = {required("max_gram_length", AttributeKind::Int),
                          required("max_skip_count", AttributeKind::Int),
                          required("min_gram_length", AttributeKind::Int),
                          required("mode", AttributeKind::String),
                          required("ngram_counts", AttributeKind::Ints),
                          required("ngram_indexes", AttributeKind::Ints),
                          {"pool_int64s", AttributeKind::Ints},
                          {"pool_strings", AttributeKind::Strings},
                          {"weights", AttributeKind::Floats}},
           .infer = infer_vectorizer,
           .value_kernel = run_vectorizer}};
}

}  // namespace tessera::ops
