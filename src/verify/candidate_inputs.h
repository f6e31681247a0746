// The inputs of the runs of a candidate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/stored_fields.h"
#include "verify/check_candidate.h"
#include "verify/stored_tensor.h"

namespace tessera::verification {

// How a run uses one of its inputs.
struct InputUse {
  bool is_written = false;      // an output shares its memory
  bool has_strides = false;     // with gaps between rows, if the port accepts strides
  int64_t alignment_bytes = 1;  // at least
  uint8_t fill = kGarbage;      // content of the gaps
};

// An input as one run receives it.
struct RunInput {
  StoredTensor stored;
  // The contents before the run. For large inputs only a checksum is kept; if the pages are
  // read-only, neither is kept.
  std::vector<char> contents = {};
  std::optional<cache::Checksum> checksum = std::nullopt;

  // "" if the contents are unchanged.
  std::string explain_change() const;
};

// The inputs of one candidate. Large inputs and inputs in read-only pages are made once and shared
// by all runs that do not write to them. Every run gets its own copy of other inputs, because small
// ones reveal reads beyond the end and wrong assumptions about alignment.
class CandidateInputs {
 public:
  // Converts the expected values of `trial` to the layouts that the candidate wants, and packs
  // them; errors of packs go to `report`. `trial` must outlive this object. Throws Error on
  // failure. Tensors that are equal in `others`, of the same candidate, are shared with it.
  CandidateInputs(const CandidateTrial& trial, Report& report,
                  const CandidateInputs* others = nullptr);

  int64_t bytes(size_t input) const { return made_[input].stored.memory->bytes(); }
  RunInput for_run(size_t input, const InputUse& use) const;

 private:
  StoredTensor pack(const tessera_pack& pack, const StoredTensor& plain, Report& report) const;
  bool is_shared(size_t input, const InputUse& use) const;

  const CandidateTrial& trial_;
  std::vector<RunInput> made_;
};

}  // namespace tessera::verification
