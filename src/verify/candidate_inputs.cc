#include "verify/candidate_inputs.h"

#include <memory>
#include <utility>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "verify/compare_tensors.h"

namespace tessera::verification {
namespace {

// Inputs of this size or more are not copied for each run.
constexpr int64_t kLargeBytes = int64_t{1} << 20;

RunInput remembered(StoredTensor stored) {
  const std::span<const char> contents = stored.memory->contents();
  if (stored.memory->bytes() >= kLargeBytes) {
    return {.stored = std::move(stored), .checksum = cache::checksum_of(contents)};
  }
  return {.stored = std::move(stored), .contents = {contents.begin(), contents.end()}};
}

}  // namespace

std::string RunInput::explain_change() const {
  const std::span<const char> now = stored.memory->contents();
  if (checksum) {
    return cache::checksum_of(now) == *checksum ? "" : "its bytes have changed";
  }
  return contents.empty() ? "" : explain_byte_difference(contents, now);
}

CandidateInputs::CandidateInputs(const CandidateTrial& trial, Report& report,
                                 const CandidateInputs* others)
    : trial_(trial) {
  for (const CandidateInput& port : trial.candidate.inputs) {
    const auto value = static_cast<size_t>(port.value.index);
    const Tensor& tensor = trial.expected.values[value];
    if (others != nullptr && others->trial_.expected.values[value].data() == tensor.data()) {
      made_.push_back(others->made_[made_.size()]);
      continue;
    }
    const bool is_fenced = trial.pages != nullptr;
    const StoredTensor plain = is_fenced ? store_in_guard_pages(tensor) : store(tensor);
    StoredTensor input = port.pack != nullptr ? pack(*port.pack, plain, report)
                                              : to_layout(trial.layouts, port.layout, plain,
                                                          trial.pool, trial.pages);
    if (trial.packs != nullptr) {
      trial.packs->push_back(port.pack != nullptr ? input.memory : nullptr);
    }
    if (is_fenced) {
      input.memory->forbid_writing();
      made_.push_back({.stored = std::move(input)});
    } else {
      made_.push_back(remembered(std::move(input)));
    }
  }
}

StoredTensor CandidateInputs::pack(const tessera_pack& pack, const StoredTensor& plain,
                                   Report& report) const {
  StoredTensor packed = plain;
  packed.memory =
      std::make_shared<GuardedMemory>(pack.bytes, TESSERA_ALIGNMENT_BYTES, kGarbage, trial_.pages);
  const bool is_fenced = trial_.pages != nullptr;
  const RunInput source = is_fenced ? RunInput{.stored = plain} : remembered(plain);
  RunContext context(trial_.pool);
  const tessera_buffer from = plain.abi();
  Status status;
  trial_.pool.execute([&] {
    status = call_plugin([&](tessera_error* error) {
      return context.checked(
          pack.pack(pack.self, context.abi(), &from, packed.memory->data(), pack.bytes, error),
          error);
    });
  });
  std::string wrong = status.is_fine() ? "" : "it fails: " + status.message;
  if (wrong.empty()) wrong = packed.memory->explain_damage();
  if (wrong.empty()) wrong = plain.memory->explain_damage();
  if (wrong.empty() && !source.explain_change().empty()) wrong = "it changes its source";
  report.expect("packs", trial_.location,
                wrong.empty() ? "" : "pack '" + std::string(pack.id) + "': " + wrong);
  return packed;
}

bool CandidateInputs::is_shared(size_t input, const InputUse& use) const {
  const bool is_large = bytes(input) >= kLargeBytes;
  return !use.is_written && (is_large || trial_.pages != nullptr) &&
         use.alignment_bytes <= TESSERA_ALIGNMENT_BYTES;
}

RunInput CandidateInputs::for_run(size_t input, const InputUse& use) const {
  const CandidateInput& port = trial_.candidate.inputs[input];
  const StoredTensor& made = made_[input].stored;
  if (use.has_strides && port.accepts_strides && port.pack == nullptr) {
    std::optional<StoredTensor> strided =
        spread(trial_.layouts, made, use.fill, port.alignment_bytes);
    if (strided) return remembered(std::move(*strided));
  }
  if (is_shared(input, use)) return made_[input];
  StoredTensor copy = made;
  copy.memory =
      std::make_shared<GuardedMemory>(made.memory->contents(), use.alignment_bytes, trial_.pages);
  return remembered(std::move(copy));
}

}  // namespace tessera::verification
