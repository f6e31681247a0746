#include "verify/check_candidate.h"

#include <cstring>
#include <string>

#include "verify/stored_tensor.h"

namespace tessera::verification {
namespace {

// Copies `part` of `whole` to a tensor of its own.
StoredTensor cut_out(const LayoutTable& layouts, const StoredTensor& whole, const StoragePart& part,
                     LayoutId layout, const TensorType& type) {
  StoredTensor cut = make_storage(layouts, layout, type);
  const char* begin = whole.memory->data() + part.offset_bytes;
  if (part.is_dense()) {
    std::memcpy(cut.memory->data(), begin, static_cast<size_t>(cut.memory->bytes()));
    return cut;
  }
  StoredTensor strided = whole;
  strided.type = type;
  strided.layout = layout;
  strided.strides = part.strides;
  return gathered(layouts, strided, part.offset_bytes);
}

}  // namespace

void check_view(const CandidateTrial& trial, ThreadPool& pool, Report& report) {
  const Candidate& candidate = trial.candidate;
  const auto expected = [&](ValueId id) -> const Tensor& {
    return trial.expected.values[static_cast<size_t>(id.index)];
  };
  const auto check = [&](const StoredTensor& whole, const auto& port) {
    const Tensor& wanted = expected(port.value);
    const StoredTensor part =
        cut_out(trial.layouts, whole, port.part, port.layout, type_of(wanted));
    const StoredTensor plain = to_layout(trial.layouts, kDefaultLayout, part, pool);
    std::string wrong = explain_byte_difference(
        {static_cast<const char*>(wanted.data()), static_cast<size_t>(wanted.bytes())},
        plain.memory->contents());
    if (wrong.empty() && port.layout != kDefaultLayout && trial.layouts.is_dense(port.layout)) {
      wrong = explain_padding(part, padding_of(trial.layouts, port.layout, part.type, pool));
    }
    report.expect("views", trial.location, wrong);
  };
  const auto stored = [&](ValueId value, LayoutId layout) {
    return to_layout(trial.layouts, layout, store(expected(value)), pool);
  };
  if (candidate.is_joint()) {
    const StoredTensor whole = stored(candidate.outputs[0].value, candidate.outputs[0].layout);
    for (const CandidateInput& port : candidate.inputs) check(whole, port);
  } else {
    const StoredTensor whole = stored(candidate.inputs[0].value, candidate.inputs[0].layout);
    for (const CandidateOutput& port : candidate.outputs) check(whole, port);
  }
}

}  // namespace tessera::verification
