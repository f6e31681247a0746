#include "cli/memory_report.h"

#include <algorithm>
#include <numeric>

#include "cli/span.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

constexpr size_t kShownBlocks = 20;
constexpr size_t kLabelColumns = 14;

// Of the picture, in its own units.
constexpr double kWidth = 1200;
constexpr double kHeight = 640;
constexpr double kMargin = 40;

double ratio_of(const MemoryDescription& memory) {
  return memory.lower_bound_bytes == 0 ? 1
                                       : static_cast<double>(memory.arena_bytes) /
                                             static_cast<double>(memory.lower_bound_bytes);
}

std::string line(const std::string& label, const std::string& text) {
  return label + std::string(kLabelColumns - label.size(), ' ') + text + "\n";
}

std::string exact_text(int64_t bytes) {
  return std::to_string(bytes) + " bytes (" + bytes_text(bytes) + ")";
}

std::string xml_text(const std::string& text) {
  std::string safe;
  for (const char sign : text) {
    switch (sign) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += sign;
    }
  }
  return safe;
}

std::string title_of(const MemoryBlock& block) {
  return (block.is_workspace ? "workspace of " : "") + printable(block.name) +
         (block.text.empty() ? "" : "\n" + printable(block.text)) + "\n" + exact_text(block.bytes) +
         " at " + std::to_string(block.offset) + "\nsteps " + std::to_string(block.lower) + " to " +
         std::to_string(block.upper - 1);
}

std::string number(double value) { return decimal_text(value, 2); }

std::string attribute(const std::string& name, double value) {
  return " " + name + "=\"" + number(value) + "\"";
}

// Colours that differ from block to block; workspaces are grey.
std::string colour_of(const MemoryBlock& block, size_t index) {
  if (block.is_workspace) return "#9aa0a6";
  return "hsl(" + std::to_string(index * 137 % 360) + ",55%,65%)";
}

// Where steps and addresses lie in the picture.
class Scale {
 public:
  explicit Scale(const MemoryReport& report)
      : step_width_((kWidth - 2 * kMargin) /
                    static_cast<double>(std::max<int64_t>(report.steps, 1))),
        byte_height_((kHeight - 2 * kMargin) /
                     static_cast<double>(std::max<int64_t>(report.memory.arena_bytes, 1))) {}

  double x(int step) const { return kMargin + step_width_ * step; }
  double y(int64_t address) const {
    return kHeight - kMargin - byte_height_ * static_cast<double>(address);
  }

 private:
  double step_width_;
  double byte_height_;
};

std::string block_svg(const MemoryBlock& block, size_t index, const Scale& scale) {
  const double top = scale.y(block.offset + block.bytes);
  return R"(<rect class="block")" + attribute("x", scale.x(block.lower)) + attribute("y", top) +
         attribute("width", scale.x(block.upper) - scale.x(block.lower)) +
         attribute("height", scale.y(block.offset) - top) + " fill=\"" + colour_of(block, index) +
         "\"><title>" + xml_text(title_of(block)) + "</title></rect>\n";
}

}  // namespace

MemoryReport memory_report_of(const Executor& executor) {
  const PlanDescription& plan = executor.plan();
  MemoryReport report{.memory = plan.memory,
                      .steps = static_cast<int64_t>(plan.steps.size()),
                      .library_bytes = plan.library_bytes};
  for (const StageRecord& stage : executor.stages()) {
    if (stage.name == "plan") report.plan_ms += milliseconds(stage.duration);
  }
  return report;
}

std::string memory_text(const MemoryReport& report) {
  const MemoryDescription& memory = report.memory;
  std::string text =
      line("arena", exact_text(memory.arena_bytes) + " for inner values and workspaces") +
      line("lower bound", exact_text(memory.lower_bound_bytes) + " live at once") +
      line("ratio", decimal_text(ratio_of(memory), 4) +
                        (memory.is_proven_smallest ? ", proven the smallest" : "")) +
      line("naive", exact_text(memory.naive_bytes) + " without sharing") +
      line("padding", exact_text(memory.padding_bytes) + " of those, beside the elements") +
      line("weights", exact_text(memory.weight_bytes) + " read by steps, packed or not") +
      line("libraries", exact_text(report.library_bytes) + " that they keep to themselves") +
      line("outputs", exact_text(memory.output_bytes) + " that are new in each run") +
      line("in all", exact_text(memory.total_bytes) + ", what --memory-budget limits") +
      line("planned in",
           decimal_text(report.plan_ms, 2) + " ms, " + std::to_string(report.steps) + " steps");
  std::vector<size_t> order(memory.blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return memory.blocks[left].bytes > memory.blocks[right].bytes;
  });
  TextTable table({{"largest", Align::Left, true},
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
  if (!order.empty()) text += "\n" + table.text();
  if (order.size() > kShownBlocks) {
    text += "and " + std::to_string(order.size() - kShownBlocks) + " more (--json, --svg)\n";
  }
  return text;
}

Json memory_figures_json(const MemoryDescription& memory, int64_t library_bytes) {
  return {{"arena_bytes", memory.arena_bytes},
          {"lower_bound_bytes", memory.lower_bound_bytes},
          {"weights_bytes", memory.weight_bytes},
          {"naive_bytes", memory.naive_bytes},
          {"backend_bytes", library_bytes}};
}

Json memory_json(const MemoryReport& report) {
  Json json = memory_figures_json(report.memory, report.library_bytes);
  json["ratio"] = ratio_of(report.memory);
  json["proven"] = report.memory.is_proven_smallest;
  json["padding_bytes"] = report.memory.padding_bytes;
  json["output_bytes"] = report.memory.output_bytes;
  json["total_bytes"] = report.memory.total_bytes;
  json["plan_ms"] = report.plan_ms;
  json["steps"] = report.steps;
  json["blocks"] = Json::array();
  for (const MemoryBlock& block : report.memory.blocks) {
    json["blocks"].push_back({{"name", block.name},
                              {"type", block.text},
                              {"workspace", block.is_workspace},
                              {"lower", block.lower},
                              {"upper", block.upper},
                              {"bytes", block.bytes},
                              {"offset", block.offset}});
  }
  return json;
}

std::string memory_svg(const MemoryReport& report) {
  const MemoryDescription& memory = report.memory;
  const Scale scale(report);
  std::string text = R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 )" + number(kWidth) +
                     " " + number(kHeight) + R"(" font-family="sans-serif" font-size="12">
<style>rect.block{stroke:#444;stroke-width:0.3}rect.block:hover{fill-opacity:0.6}</style>
<rect width="100%" height="100%" fill="white"/>
)";
  for (size_t index = 0; index < memory.blocks.size(); ++index) {
    text += block_svg(memory.blocks[index], index, scale);
  }
  const double bound = scale.y(memory.lower_bound_bytes);
  text += "<line" + attribute("x1", kMargin) + attribute("x2", kWidth - kMargin) +
          attribute("y1", bound) + attribute("y2", bound) +
          R"( stroke="#c00" stroke-dasharray="6 4"><title>lower bound: )" +
          exact_text(memory.lower_bound_bytes) + "</title></line>\n";
  text += "<text" + attribute("x", kMargin) + attribute("y", kMargin - 12) + ">arena " +
          exact_text(memory.arena_bytes) + ", lower bound " + exact_text(memory.lower_bound_bytes) +
          "</text>\n";
  text += "<text" + attribute("x", kMargin) + attribute("y", kHeight - kMargin + 20) + ">" +
          std::to_string(report.steps) + " steps from left to right; addresses upwards</text>\n";
  return text + "</svg>\n";
}

}  // namespace tessera::cli
