// The cases that tessera_bench_native times: one row for each kernel, in a table of its family.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera::bench {

inline constexpr auto kFloat = DataType::Float32;

// A graph with the elements of its inputs, built from top to bottom.
class CaseGraph {
 public:
  CaseGraph(const ops::Registry& registry, int opset) : registry_(registry), opset_(opset) {}

  // Random elements between `low` and `high`.
  CaseGraph& input(const std::string& name, DataType type, std::vector<int64_t> dims,
                   double low = 0.1, double high = 1);
  CaseGraph& input(const std::string& name, Tensor tensor);
  CaseGraph& constant(const std::string& name, Tensor tensor);
  CaseGraph& node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, Attributes attributes = {});
  CaseGraph& output(const std::string& name);

  const Graph& graph() const { return graph_; }
  const std::map<std::string, Tensor>& fed() const { return fed_; }

 private:
  ValueId value(const std::string& name);

  const ops::Registry& registry_;
  int opset_;
  Graph graph_;
  std::map<std::string, ValueId> ids_;
  std::map<std::string, Tensor> fed_;
};

// The limit with which a kernel is compared.
enum class Limit : uint8_t {
  Copy,  // the fastest copy that reads and writes the same number of bytes in total
  Read,  // a loop that reads the same number of bytes: for kernels that write very little
};

struct BandwidthCase {
  std::string name;
  // `bytes` is the approximate size of the largest tensor.
  std::function<void(CaseGraph& graph, int64_t bytes)> make;
  Limit limit = Limit::Copy;
  std::string layout = "row_major";  // of the first input and output
  std::string algorithm = "";        // of the candidate; "": any
  bool is_in_place = false;          // if the kernel supports it
  std::string converted_to = "";     // if the input is only converted from `layout` to this one
  int opset = 21;
};

// One table for each family.
std::vector<BandwidthCase> conversion_cases();
std::vector<BandwidthCase> copy_cases();
std::vector<BandwidthCase> element_cases();
std::vector<BandwidthCase> reduction_cases();

// The numbers in an argument: "1,64".
std::vector<double> numbers_in(const std::string& text);

// Sizes that end in `inner`, for `bytes` of elements of this size.
std::vector<int64_t> dims_of(int64_t bytes, int64_t element_bytes,
                             const std::vector<int64_t>& inner = {});

}  // namespace tessera::bench
