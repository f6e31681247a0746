// Fused groups in OpenCL C: the host finds them, tessera/backend_fusion_c.h prints them.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "offers.h"
#include "tessera/backend_fusion_c.h"

namespace tessera::opencl {

using plugin::CKernel;
using plugin::Failure;
using plugin::FusedGroup;
using plugin::Instruction;

namespace {

constexpr const char* kAlgorithm = "fused";

// PoCL converts the argument of a rounding function to an integer, which is not defined for NaN and
// for large numbers. If such an argument is a constant, LLVM leaves out what depends on it. From
// the limits on, all numbers are integers.
constexpr const char* kFusedPrelude = R"(
#pragma OPENCL FP_CONTRACT OFF
#define ROUNDED(function, x, limit) \
  (fabs(x) < (limit) ? function(fabs(x) < (limit) ? (x) : 0) : (x))
#define FLOOR_FLOAT32(x) ROUNDED(floor, x, 8388608.0f)
#define CEILING_FLOAT32(x) ROUNDED(ceil, x, 8388608.0f)
#define TRUNCATED_FLOAT32(x) ROUNDED(trunc, x, 8388608.0f)
#define ROUNDED_FLOAT32(x) ROUNDED(rint, x, 8388608.0f)
#define FLOOR_FLOAT64(x) ROUNDED(floor, x, 4503599627370496.0)
#define CEILING_FLOAT64(x) ROUNDED(ceil, x, 4503599627370496.0)
#define TRUNCATED_FLOAT64(x) ROUNDED(trunc, x, 4503599627370496.0)
#define ROUNDED_FLOAT64(x) ROUNDED(rint, x, 4503599627370496.0)
)";

// In float64, quotients and square roots of float32 are exact enough to be rounded a second time.
constexpr const char* kDivisionByFloat64 = R"(
float divide_float32(float a, float b) { return (float)((double)a / (double)b); }
float square_root_float32(float a) { return (float)sqrt((double)a); }
)";

bool is_division(const Instruction& instruction) {
  return instruction.operation == TESSERA_EXPRESSION_DIVIDE ||
         instruction.operation == TESSERA_EXPRESSION_SQUARE_ROOT;
}

// The names of types and functions in OpenCL C. Kernels have the prelude of launch.cc.
plugin::CDialect opencl_dialect(const DeviceFacts& facts) {
  const bool divides_by_float64 = !facts.divides_exactly && facts.has_float64;
  plugin::CDialect dialect = {
      .prelude = std::string(kFusedPrelude) + (divides_by_float64 ? kDivisionByFloat64 : ""),
      .kernel = "KERNEL void",
      .function = "",
      .global = "__global ",
      .local = "__local ",
      .barrier = "barrier(CLK_LOCAL_MEM_FENCE)",
      .group_number = "(int)get_group_id(0)",
      .item_number = "(int)get_local_id(0)",
      .multiply_high = "mul_hi",
      .offset_type = "ulong",
      .types = {"", "bool", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "",
                "", "float", "double"},
      .float32 = {.from_bits = "as_float",
                  .to_bits = "as_uint",
                  .square_root = "sqrt",
                  .fused_multiply_add = "fma",
                  .floor = "FLOOR_FLOAT32",
                  .ceiling = "CEILING_FLOAT32",
                  .truncate = "TRUNCATED_FLOAT32",
                  .round = "ROUNDED_FLOAT32"},
      .float64 = {}};
  dialect.float64 = dialect.float32;
  dialect.float64.from_bits = "as_double";
  dialect.float64.to_bits = "as_ulong";
  dialect.float64.floor = "FLOOR_FLOAT64";
  dialect.float64.ceiling = "CEILING_FLOAT64";
  dialect.float64.truncate = "TRUNCATED_FLOAT64";
  dialect.float64.round = "ROUNDED_FLOAT64";
  if (divides_by_float64) {
    dialect.float32.divide = "divide_float32";
    dialect.float32.square_root = "square_root_float32";
  }
  return dialect;
}

// Why the device cannot compute the group exactly, or "".
std::string explain_inexact(const FusedGroup& group, const DeviceFacts& facts) {
  for (const Instruction& instruction : group.instructions) {
    if (instruction.data_type == TESSERA_FLOAT64 && !facts.has_float64) {
      return "the device has no float64";
    }
    if (is_division(instruction) && instruction.data_type == TESSERA_FLOAT32 &&
        !facts.has_float64 && !facts.divides_exactly) {
      return "the device cannot divide exactly";
    }
  }
  return "";
}

// Bytes of all arguments.
int64_t argument_bytes(const CKernel& kernel) {
  constexpr size_t kPortBytes = sizeof(cl_mem) + sizeof(cl_ulong);
  return static_cast<int64_t>(kPortBytes *
                                  (kernel.input_ports.size() + kernel.output_ports.size()) +
                              sizeof(int32_t) * kernel.numbers.size());
}

Launch launch_of(const FusedGroup& group, const CKernel& kernel, const DeviceFacts& facts) {
  Launch launch;
  launch.source = plugin::c_source(group, kernel, opencl_dialect(facts));
  launch.name = "fused";
  for (const int32_t port : kernel.input_ports) {
    launch.arguments.emplace_back(
        Place{.kind = Place::Kind::Input, .port = static_cast<size_t>(port)});
  }
  for (const int32_t port : kernel.output_ports) {
    launch.arguments.emplace_back(
        Place{.kind = Place::Kind::Output, .port = static_cast<size_t>(port)});
  }
  std::vector<int32_t> numbers;
  for (const auto& [name, value] : kernel.numbers) numbers.push_back(value);
  launch.arguments.emplace_back(std::move(numbers));
  launch.groups = kernel.groups;
  launch.group_items = kernel.group_items;
  launch.is_exact = true;
  return launch;
}

void offer_group(const Offers& offers, const FusedGroup& group, const char* algorithm) {
  const plugin::Graph& graph = offers.context().graph();
  for (const int32_t value : group.inputs) require_size(graph.value(value));
  for (const int32_t value : group.outputs) require_size(graph.value(value));
  const std::string reason = explain_inexact(group, offers.facts());
  if (!reason.empty()) throw Failure(TESSERA_UNSUPPORTED, reason);
  const CKernel kernel = plugin::c_kernel(group, plugin::loop_nests(group, "").at(0),
                                          {.row_items = offers.facts().is_cpu ? 16 : 256});
  if (argument_bytes(kernel) > offers.facts().max_argument_bytes) {
    throw Failure(TESSERA_UNSUPPORTED, "the group needs more arguments than kernels can have");
  }
  add_candidate(
      offers, plugin::fused_candidate(graph, group, algorithm, {offers.layout(), offers.layout()}),
      {1, static_cast<double>(group.flops), static_cast<double>(group.bytes)},
      [group = std::make_shared<const FusedGroup>(group), kernel, facts = offers.facts()] {
        return Work{.steps = {launch_of(*group, kernel, facts)}, .expression = group->text};
      });
}

void refuse(const Offers& offers, const std::vector<int32_t>& nodes, const Failure& failure) {
  for (const int32_t node : nodes) offers.context().refuse(node, failure.what());
}

// The groups that the host considers; none if it is too old to know groups.
std::vector<FusedGroup> considered_groups(const Offers& offers) {
  const plugin::ProposeContext& context = offers.context();
  std::vector<FusedGroup> groups;
  if (!context.options().wanted) {
    try {
      return plugin::find_fused_groups(context.graph());
    } catch (const Failure&) {
      return {};
    }
  }
  for (const plugin::Wanted& wanted : *context.options().wanted) {
    if (wanted.algorithm != kAlgorithm) continue;
    try {
      groups.push_back(plugin::fuse_nodes(context.graph(), wanted.nodes));
    } catch (const Failure& failure) {
      refuse(offers, wanted.nodes, failure);
    }
  }
  return groups;
}

}  // namespace

void offer_fused_node(const Offers& offers, const plugin::Node& node) {
  const std::vector<int32_t> nodes = {node.id()};
  offer_group(offers, plugin::fuse_nodes(offers.context().graph(), nodes), "");
}

void propose_fused(const Offers& offers) {
  for (const FusedGroup& group : considered_groups(offers)) {
    try {
      offer_group(offers, group, kAlgorithm);
    } catch (const Failure& failure) {
      refuse(offers, group.nodes, failure);
    }
  }
}

}  // namespace tessera::opencl
