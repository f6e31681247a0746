// NGramRepeatBlock: scores in which each token has -infinity that would repeat an n-gram.
#include <algorithm>
#include <limits>

#include "ops/contrib/contrib.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

void infer_n_gram_repeat(InferContext& context) {
  const int64_t length = context.node().attributes.get_int("ngram_size");
  if (length < 1)
    context.fail("expected an 'ngram_size' of at least 1, found " + std::to_string(length));
  check_rank(context, 0, 2);
  check_rank(context, 1, 2);
  const Shape* ids = context.shape(0);
  const Shape* scores = context.shape(1);
  if (ids != nullptr && scores != nullptr) check_shape(context, 1, {ids->front(), scores->back()});
  context.set_output(0, context.element(1), context.input(1).type.shape);
}

// Blocks the token behind each earlier occurrence of the last tokens but one of `ids`.
void block_repeated(const KernelCall& call, std::span<const int64_t> ids, std::span<float> scores) {
  const auto length = static_cast<uint64_t>(call.node.attributes.get_int("ngram_size"));
  if (length > ids.size()) return;
  const auto before = static_cast<size_t>(length) - 1;
  const std::span<const int64_t> prefix = ids.last(before);
  for (size_t start = 0; start + before < ids.size(); ++start) {
    if (!std::ranges::equal(ids.subspan(start, before), prefix)) continue;
    const int64_t token = ids[start + before];
    if (token < 0 || token >= std::ssize(scores)) {
      call.fail("expected tokens in [0, " + std::to_string(scores.size()) +
                ") as input 'scores' has, found " + std::to_string(token));
    }
    scores[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
}

void run_n_gram_repeat(const KernelCall& call) {
  const auto ids = call.inputs[0].as<int64_t>();
  const auto scores = call.outputs[0].as<float>();
  std::ranges::copy(call.inputs[1].as<float>(), scores.begin());
  const auto length = static_cast<size_t>(call.inputs[0].dims[1]);
  const auto tokens = static_cast<size_t>(call.inputs[1].dims[1]);
  call.pool.parallel_for(call.inputs[0].dims[0], 1, [&](int64_t begin, int64_t end) {
    for (auto item = static_cast<size_t>(begin); item < static_cast<size_t>(end); ++item) {
      block_repeated(call, ids.subspan(item * length, length),
                     scores.subspan(item * tokens, tokens));
    }
  });
}

}  // namespace

std::vector<Op> n_gram_repeat_block_ops() {
  return {{.name = "NGramRepeatBlock",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input_ids", "Tid"}, {"scores", "T"}},
           .outputs = {{"scores_out", "T"}},
           .type_variables = {{"Tid", kInt64Type}, {"T", {DataType::Float32}}},
           .attributes = {{"ngram_size", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
           .infer = infer_n_gram_repeat,
           .flops = no_flops,
           .kernel = run_n_gram_repeat}};
}

}  // namespace tessera::ops
