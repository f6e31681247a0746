#include "cli/plans/memory_report.h"

#include <algorithm>
#include <numeric>

#include "cli/output/quantities.h"
#include "cli/output/span.h"

namespace tessera::cli {
namespace {

constexpr size_t kShownBlocks = 20;
constexpr size_t kMemoryLabelColumns = 14;

double ratio_of(const MemoryDescription& memory) {
  return memory.lower_bound_bytes == 0 ? 1
                                       : static_cast<double>(memory.arena_bytes) /
                                             static_cast<double>(memory.lower_bound_bytes);
}

std::string exact_text(int64_t bytes) {
  return count_text(bytes, "byte") + (bytes < 1024 ? "" : " (" + bytes_text(bytes) + ")");
}

}  // namespace

MemoryReport memory_report_of(const Executor& executor) {
  const PlanDescription& plan = executor.plan();
  MemoryReport report{.model = {},
                      .memory = plan.memory,
                      .steps = static_cast<int64_t>(plan.steps.size()),
                      .library_bytes = plan.library_bytes};
  for (const StageRecord& stage : executor.stages()) {
    if (stage.name == "plan") report.plan_ms += milliseconds(stage.duration);
  }
  return report;
}

namespace {

std::string memory_blocks_text(const MemoryDescription& memory, const TextStyle& style) {
  std::vector<size_t> order(memory.blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return memory.blocks[left].bytes > memory.blocks[right].bytes;
  });
  TextTable table({{"largest buffers", Align::Left, true},
                   {"type", Align::Left, true},
                   {"steps", Align::Right},
                   {"bytes", Align::Right},
                   {"offset", Align::Right}});
  for (size_t index = 0; index < std::min(order.size(), kShownBlocks); ++index) {
    const MemoryBlock& block = memory.blocks[order[index]];
    table.add_row({block.name, block.is_workspace ? "workspace" : block.text,
                   std::to_string(block.lower) + "-" + std::to_string(block.upper - 1),
                   std::to_string(block.bytes), std::to_string(block.offset)});
  }
  std::string text = order.empty() ? "" : "\n" + table.text(style);
  if (order.size() > kShownBlocks) {
    text += "and " + std::to_string(order.size() - kShownBlocks) + " more (--json, --svg FILE)\n";
  }
  return text;
}

}  // namespace

std::string memory_text(const MemoryReport& report, const TextStyle& style) {
  const MemoryDescription& memory = report.memory;
  std::string text;
  const auto add = [&](const std::string& label, const std::string& line) {
    text += labelled(label, line, kMemoryLabelColumns, style);
  };
  add("arena", exact_text(memory.arena_bytes) + " for intermediate values and workspaces" +
                   (memory.is_proven_smallest ? ", proven the smallest" : ""));
  add("lower bound", exact_text(memory.lower_bound_bytes) + " live at one step, at most");
  add("ratio", decimal_text(ratio_of(memory), 4) + ", arena to lower bound");
  add("not shared", exact_text(memory.naive_bytes) + " if no two values shared memory");
  add("padding", exact_text(memory.padding_bytes) + " that blocked layouts add to the elements");
  add("weights", exact_text(memory.weight_bytes) + " that steps read, packed or not");
  add("libraries", exact_text(report.library_bytes) + " inside the libraries");
  add("outputs", exact_text(memory.output_bytes) + " that are new in each run");
  add("total", exact_text(memory.total_bytes) + ", which --memory-budget limits");
  for (const DeviceMemoryDescription& device : memory.devices) {
    add(device.device, exact_text(device.arena_bytes) + " for intermediate values and workspaces" +
                           (device.is_proven_smallest ? ", proven the smallest" : "") + "; " +
                           exact_text(device.weight_bytes) + " of weights");
  }
  add("planning", time_text(report.plan_ms / 1000) + " for " + count_text(report.steps, "step"));
  text += memory_blocks_text(memory, style);
  return text;
}

Json memory_figures_json(const MemoryDescription& memory, int64_t library_bytes) {
  return {{"arena_bytes", memory.arena_bytes},
          {"lower_bound_bytes", memory.lower_bound_bytes},
          {"weight_bytes", memory.weight_bytes},
          {"naive_bytes", memory.naive_bytes},
          {"library_bytes", library_bytes}};
}

Json memory_json(const MemoryReport& report) {
  Json blocks = Json::array();
  for (const MemoryBlock& block : report.memory.blocks) {
    blocks.push_back(fields_json(block, {{"last_step", block.upper - 1}}));
  }
  Json json = {{"model", report.model}};
  json.update(fields_json(report.memory, {{"library_bytes", report.library_bytes},
                                          {"ratio", ratio_of(report.memory)},
                                          {"plan_us", 1000 * report.plan_ms},
                                          {"step_count", report.steps},
                                          {"blocks", std::move(blocks)}}));
  return json;
}

}  // namespace tessera::cli
