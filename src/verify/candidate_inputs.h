// What the runs of a candidate read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/stored_fields.h"
#include "verify/check_candidate.h"
#include "verify/stored_tensor.h"

namespace tessera::verification {

// How a run wants one of its inputs.
struct InputUse {
  bool is_written = false;      // an output lies in it
  bool has_strides = false;     // with gaps between its rows, where the port accepts strides
  int64_t alignment_bytes = 1;  // at least
  uint8_t fill = kGarbage;      // of the gaps
};

// An input as one run gets it.
struct RunInput {
  StoredTensor stored;
  // What it held before the run. Of large ones only a checksum is kept; neither is where the pages
  // forbid writing.
  std::vector<char> contents = {};
  std::optional<cache::Checksum> checksum = std::nullopt;

  // "" where it still holds that.
  std::string explain_change() const;
};

// The inputs of one candidate. Large ones and fenced ones are made once and shared by all runs that
// do not write to them; of the others each run gets a copy, since small ones are where a kernel's
// reading past an end, or its counting on alignment, is to be found.
class CandidateInputs {
 public:
  // Converts what `trial` expects to the layouts that the candidate wants and packs it; what a pack
  // does wrong is told to `report`. `trial` must outlive this. Throws Error where it fails. What is
  // the same tensor as in `others`, of the same candidate, is taken from there.
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
