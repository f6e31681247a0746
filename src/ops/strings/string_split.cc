// StringSplit: each string cut at a separator.
// https://onnx.ai/onnx/operators/onnx__StringSplit.html
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

constexpr int64_t kNoLimit = INT64_MAX;

// The length of the white space at the beginning of `text`, in bytes: a character that Unicode
// calls white space, or a separator of ASCII (0x1C to 0x1F).
size_t space_at_begin(std::string_view text) {
  static constexpr std::string_view kSpaces[] = {
      "\t",           "\n",           "\v",           "\f",           "\r",
      "\x1C",         "\x1D",         "\x1E",         "\x1F",         " ",
      "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
      "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
      "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
      "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
  for (const std::string_view space : kSpaces) {
    if (text.starts_with(space)) return space.size();
  }
  return 0;
}

std::string_view without_leading_space(std::string_view text) {
  while (const size_t space = space_at_begin(text)) text.remove_prefix(space);
  return text;
}

std::string_view without_trailing_space(std::string_view text) {
  size_t end = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t space = space_at_begin(text.substr(begin));
    begin += space == 0 ? 1 : space;
    if (space == 0) end = begin;
  }
  return text.substr(0, end);
}

// Runs of white space separate; those at both ends separate nothing.
std::vector<std::string_view> split_at_space(std::string_view text, int64_t limit) {
  std::vector<std::string_view> pieces;
  for (text = without_leading_space(text); !text.empty(); text = without_leading_space(text)) {
    if (std::ssize(pieces) == limit) {
      pieces.push_back(without_trailing_space(text));
      break;
    }
    size_t end = 0;
    while (end < text.size() && space_at_begin(text.substr(end)) == 0) ++end;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       int64_t limit) {
  std::vector<std::string_view> pieces;
  while (std::ssize(pieces) < limit) {
    const size_t found = text.find(separator);
    if (found == std::string_view::npos) break;
    pieces.push_back(text.substr(0, found));
    text.remove_prefix(found + separator.size());
  }
  pieces.push_back(text);
  return pieces;
}

void infer_split_strings(InferContext& context) {
  context.set_output(1, DataType::Int64, context.input(0).type.shape);
  if (context.shape(0) == nullptr) return context.set_output(0, DataType::String);
  Shape shape = *context.shape(0);
  shape.push_back(unknown_dim(context, 0, shape.size()));
  context.set_output(0, DataType::String, std::move(shape));
}

void run_split_strings(const ValueCall& call) {
  const Attributes& attributes = call.node.attributes;
  const std::string* const delimiter = attributes.find_string("delimiter");
  const bool is_at_space = delimiter == nullptr || delimiter->empty();
  // Like a limit that is left out, a negative one is none.
  const int64_t* const given = attributes.find_int("maxsplit");
  const int64_t limit = given == nullptr || *given < 0 ? kNoLimit : *given;

  const Tensor& input = call.inputs[0];
  std::vector<std::vector<std::string_view>> all;
  int64_t width = 0;
  for (const std::string& text : input.as<std::string>()) {
    all.push_back(is_at_space ? split_at_space(text, limit) : split_at(text, *delimiter, limit));
    width = std::max<int64_t>(width, std::ssize(all.back()));
  }
  std::vector<int64_t> dims = input.dims();
  dims.push_back(width);
  Tensor pieces(DataType::String, std::move(dims));
  Tensor counts(DataType::Int64, input.dims());
  for (size_t index = 0; index < all.size(); ++index) {
    counts.mutable_as<int64_t>()[index] = std::ssize(all[index]);
    std::ranges::copy(
        all[index], pieces.mutable_as<std::string>().begin() + static_cast<int64_t>(index) * width);
  }
  call.outputs[0] = std::move(pieces);
  if (call.outputs.size() > 1) call.outputs[1] = std::move(counts);
}

}  // namespace

std::vector<Op> string_split_ops() {
  return {{.name = "StringSplit",
           .versions = {20},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}, {"Z", "T3"}},
           .type_variables = {{"T1", kStringType}, {"T2", kStringType}, {"T3", kInt64Type}},
           .attributes = {{"delimiter", AttributeKind::String}, {"maxsplit", AttributeKind::Int}},
           .infer = infer_split_strings,
           .value_kernel = run_split_strings}};
}

}  // namespace tessera::ops
