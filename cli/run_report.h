// What `tessera run` has to say: on the terminal, in JSON, and in the files it writes.
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
  std::string node;     // what makes it; "" for inputs and where nobody asked
  std::string backend;  // of the step that makes it; "" where nobody asked
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
  std::string new_cache;  // the file that binding kept what it measured in; "" for none
  std::vector<NamedComparison> comparisons;  // one for each --expect

  bool is_match() const;
};

std::string report_text(const RunReport& report, const TextStyle& style);
Json report_json(const RunReport& report);

// Writes <kind>_<index>.npy for each tensor, and <kind>s.json, an array that says which is which:
// names may hold slashes or anything else that no file name can. `with_nodes`: with the node that
// makes each, and with the backend where it is known.
void write_tensors(const std::filesystem::path& folder, const std::string& kind,
                   const std::vector<NamedTensor>& tensors, bool with_nodes, StagedFiles& files);

}  // namespace tessera::cli
