// The results of `tessera run`: text for the terminal, JSON, and output files, and comparisons of
// outputs with their expected values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/element.h"
#include "cli/output/json_output.h"
#include "cli/output/span.h"
#include "cli/output/staged_files.h"
#include "cli/output/text_table.h"
#include "tessera/tensor.h"

namespace tessera::cli {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-5;
};

// The result of comparing an output with its expected values.
struct Comparison {
  // How the tensors differ, if not by numbers: in type or shape, or in strings; else "".
  std::string other_difference;

  // The number of mismatches, and the worst one: the element that exceeds its tolerance the most.
  int64_t elements = 0;
  int64_t elements_off = 0;
  std::vector<int64_t> worst_indices;
  WideNumber actual = 0;
  WideNumber expected = 0;
  WideNumber difference = 0;  // |actual - expected|; NaN or infinite if an operand is
  WideNumber allowed = 0;     // absolute + relative * |expected|

  bool is_match() const { return other_difference.empty() && elements_off == 0; }
};

// Requires equal types and shapes, and for each element |actual - expected| <= absolute + relative
// * |expected|, as in numpy.allclose(). NaN matches NaN, and an infinity matches only itself.
Comparison compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// Describes a mismatch to the user in one or more lines; "" for a match.
std::string explain(const Comparison& comparison, DataType type);

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
