// StringNormalizer: words without stop words, in another case.
// https://onnx.ai/onnx/operators/onnx__StringNormalizer.html
#include <string>
#include <unordered_set>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strings/letter_case.h"

namespace tessera::ops {
namespace {

enum class CaseChange : uint8_t { None, Lower, Upper };

std::optional<CaseChange> case_change_of(const Node& node) {
  const std::string& name = node.attributes.get_string("case_change_action");
  if (name == "NONE") return CaseChange::None;
  if (name == "LOWER") return CaseChange::Lower;
  if (name == "UPPER") return CaseChange::Upper;
  return std::nullopt;
}

// A list of words, or one row of them.
bool is_list_of_words(std::span<const int64_t> dims) {
  return dims.size() == 1 || (dims.size() == 2 && dims[0] == 1);
}

void infer_normalization(InferContext& context) {
  if (!case_change_of(context.node())) {
    context.fail("attribute 'case_change_action': expected NONE, LOWER or UPPER, found '" +
                 context.node().attributes.get_string("case_change_action") + "'");
  }
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, DataType::String);
  const bool is_row = shape->size() == 2 && (!shape->front().is_known() || shape->front() == 1);
  if (shape->size() != 1 && !is_row) {
    context.fail_input(0, "expected a shape of [C] or [1, C], found " + text(*shape));
  }
  Shape output = *shape;
  output.back() = unknown_dim(context, 0, output.size() - 1);
  context.set_output(0, DataType::String, std::move(output));
}

struct Normalization {
  explicit Normalization(const Node& node)
      : letter_case(node.attributes.has("locale") ? node.attributes.get_string("locale") : ""),
        change(*case_change_of(node)),
        is_case_sensitive(node.attributes.get_int("is_case_sensitive") != 0) {
    const std::vector<std::string>* const words = node.attributes.find_strings("stopwords");
    if (words == nullptr) return;
    for (const std::string& word : *words) stop_words.insert(compared(word));
  }

  std::string compared(const std::string& word) const {
    return is_case_sensitive ? word : letter_case.lower(word);
  }
  bool is_stop_word(const std::string& word) const {
    return !stop_words.empty() && stop_words.contains(compared(word));
  }
  std::string changed(const std::string& word) const {
    switch (change) {
      case CaseChange::None:
        return word;
      case CaseChange::Lower:
        return letter_case.lower(word);
      case CaseChange::Upper:
        return letter_case.upper(word);
    }
    return word;
  }

  LetterCase letter_case;
  CaseChange change;
  bool is_case_sensitive;
  std::unordered_set<std::string> stop_words;
};

void run_normalization(const ValueCall& call) {
  const auto normalization = call.prepared<Normalization>([&] { return Normalization(call.node); });
  const Tensor& input = call.inputs[0];
  if (!is_list_of_words(input.dims())) {
    call.fail("expected a shape of [C] or [1, C], found " + dims_text(input.dims()));
  }
  std::vector<std::string> words;
  for (const std::string& word : input.as<std::string>()) {
    if (!normalization->is_stop_word(word)) words.push_back(normalization->changed(word));
  }
  if (words.empty()) words.emplace_back();  // as the standard says
  std::vector<int64_t> dims = input.dims();
  dims.back() = std::ssize(words);
  call.outputs[0] = Tensor::strings(std::move(dims), std::move(words));
}

}  // namespace

std::vector<Op> string_normalizer_ops() {
  return {{.name = "StringNormalizer",
           .versions = {10},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kStringType}},
           .attributes = {{"case_change_action", AttributeKind::String, std::string("NONE")},
                          {"is_case_sensitive", AttributeKind::Int, int64_t{0}},
                          {"locale", AttributeKind::String},
                          {"stopwords", AttributeKind::Strings}},
           .infer = infer_normalization,
           .value_kernel = run_normalization}};
}

}  // namespace tessera::ops
