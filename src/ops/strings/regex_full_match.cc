// RegexFullMatch: whether whole strings match a regular expression of RE2.
// https://onnx.ai/onnx/operators/onnx__RegexFullMatch.html
#include <re2/re2.h>

#include <algorithm>
#include <string>

#include "ops/op.h"

namespace tessera::ops {
namespace {

// The standard names no default; without a pattern only the empty string matches.
RE2 pattern_of(const Node& node) {
  const std::string* const pattern = node.attributes.find_string("pattern");
  RE2::Options options;
  options.set_log_errors(false);
  return {pattern == nullptr ? "" : *pattern, options};
}

void infer_match(InferContext& context) {
  const RE2 pattern = pattern_of(context.node());
  if (!pattern.ok()) {
    context.fail("attribute 'pattern': expected a regular expression of RE2, found '" +
                 pattern.pattern() + "': " + pattern.error());
  }
  context.set_output(0, DataType::Bool, context.input(0).type.shape);
}

void run_match(const ValueCall& call) {
  const auto pattern = call.prepared<RE2>([&] { return pattern_of(call.node); });
  const Tensor& input = call.inputs[0];
  Tensor output(DataType::Bool, input.dims());
  std::ranges::transform(input.as<std::string>(), output.mutable_as<bool>().begin(),
                         [&](const std::string& text) { return RE2::FullMatch(text, *pattern); });
  call.outputs[0] = std::move(output);
}

}  // namespace

std::vector<Op> regex_full_match_ops() {
  return {{.name = "RegexFullMatch",
           .versions = {20},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}},
           .type_variables = {{"T1", kStringType}, {"T2", kBoolType}},
           .attributes = {{"pattern", AttributeKind::String}},
           .infer = infer_match,
           .value_kernel = run_match}};
}

}  // namespace tessera::ops
