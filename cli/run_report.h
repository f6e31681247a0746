// The results of `tessera run`: text for the terminal, JSON, and output files.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare.h"
#include "cli/json_output.h"
#include "cli/span.h"
#include "cli/staged_files.h"
#include "cli/text_table.h"

namespace tessera::cli {

struct NamedTensor {
  std::string name;
  Tensor tensor;
  std::string node;     // the node that computes it; "" for inputs and if not requested
  std::string backend;  // of the step that computes it; "" if not requested
};

struct NamedComparison {
  std::string name;
  DataType type = DataType::Undefined;
  Comparison comparison;
};

struct RunTimes {
  Span load;
  Span bind;
  Span run;
};

struct RunReport {
  std::string model;
  std::vector<NamedTensor> outputs;
  bool has_output_files = false;  // output_<index>.npy
  RunTimes times;
  int threads = 0;
  std::string new_cache;  // the cache file that binding wrote its measurements to; "" if none
  std::vector<NamedComparison> comparisons;  // one for each --expect

  bool is_match() const;
};

std::string report_text(const RunReport& report, const TextStyle& style);
Json report_json(const RunReport& report);

// Writes <kind>_<index>.npy for each tensor, and <kind>s.json, an array that maps files to names,
// because names may contain slashes and other characters that file names cannot. `with_nodes`: adds
// the node that computes each tensor, and its backend if known.
void write_tensors(const std::filesystem::path& folder, const std::string& kind,
                   const std::vector<NamedTensor>& tensors, bool with_nodes, StagedFiles& files);

}  // namespace tessera::cli
