// The SVG image that memory_report.h declares.
#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/output/quantities.h"
#include "cli/output/span.h"
#include "cli/output/text_table.h"
#include "cli/plans/memory_report.h"

namespace tessera::cli {
namespace {

// Sizes in the image, in SVG user units.
constexpr double kWidth = 1200;
constexpr double kHeight = 720;
constexpr double kLeft = 80;
constexpr double kRight = 20;
constexpr double kTop = 84;
constexpr double kBottom = 50;
constexpr double kLetterWidth = 6.6;  // the width of most letters at the labels' font size
constexpr double kLabelHeight = 15;
constexpr double kMaxTicks = 10;
constexpr size_t kTitleColumns = 40;

constexpr const char* kStyle =
    "svg{background:#fff}text{fill:#1b1f24}.soft{fill:#56606b}.block{stroke:#333;stroke-width:.4}"
    ".block:hover{fill-opacity:.6}.label{fill:#111;font-size:11px;pointer-events:none}"
    ".grid{stroke:#d5dae0}.bound{stroke:#c00;stroke-width:1.5}.boundtext{fill:#c00}"
    "@media(prefers-color-scheme:dark){svg{background:#14171b}text{fill:#e6e9ed}.soft{fill:#a3aeb9}"
    ".grid{stroke:#353c45}.bound{stroke:#ff8a80}.boundtext{fill:#ff8a80}.label{fill:#111}}";

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

std::string number(double value) { return decimal_text(value, 2); }

std::string attribute(const std::string& name, double value) {
  return " " + name + "=\"" + number(value) + "\"";
}

std::string text_at(double x, double y, const std::string& attributes, const std::string& text) {
  return "<text" + attribute("x", x) + attribute("y", y) + attributes + ">" +
         xml_text(printable(text)) + "</text>\n";
}

std::string line_svg(const std::string& style, std::array<double, 2> from, std::array<double, 2> to,
                     const std::string& title = "") {
  return "<line class=\"" + style + "\"" + attribute("x1", from[0]) + attribute("y1", from[1]) +
         attribute("x2", to[0]) + attribute("y2", to[1]) +
         (title.empty() ? "/>\n" : "><title>" + title + "</title></line>\n");
}

std::string bytes_of_block_text(int64_t bytes) {
  return std::to_string(bytes) + " bytes (" + bytes_text(bytes) + ")";
}

std::string block_name(const MemoryBlock& block) {
  return (block.is_workspace ? "workspace of " : "") + printable(block.name);
}

std::string title_of(const MemoryBlock& block) {
  return block_name(block) + (block.text.empty() ? "" : "\n" + printable(block.text)) + "\n" +
         bytes_of_block_text(block.bytes) + " at " + std::to_string(block.offset) + "\nsteps " +
         std::to_string(block.lower) + " to " + std::to_string(block.upper - 1);
}

// Gives blocks different colours; workspaces are grey.
std::string colour_of(const MemoryBlock& block, size_t index) {
  if (block.is_workspace) return "#9aa0a6";
  return "hsl(" + std::to_string(index * 137 % 360) + ",55%,72%)";
}

// Converts steps and addresses to coordinates of the image.
class Scale {
 public:
  explicit Scale(const MemoryReport& report)
      : step_width_((kWidth - kLeft - kRight) /
                    static_cast<double>(std::max<int64_t>(report.steps, 1))),
        byte_height_((kHeight - kTop - kBottom) /
                     static_cast<double>(std::max<int64_t>(report.memory.arena_bytes, 1))) {}

  double x(int64_t step) const { return kLeft + step_width_ * static_cast<double>(step); }
  double y(int64_t address) const {
    return kHeight - kBottom - byte_height_ * static_cast<double>(address);
  }

 private:
  double step_width_;
  double byte_height_;
};

// The block's name, and its size if there is room. The label is an inner svg element, which clips
// text that is wider than estimated, so that no label extends beyond its block.
std::string label_svg(const MemoryBlock& block, double x, double y, double width, double height) {
  const auto columns = static_cast<size_t>(std::max(0.0, (width - 8) / kLetterWidth));
  if (columns < 4 || height < kLabelHeight) return "";
  std::string text = "<svg" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
                     attribute("height", height) + " class=\"label\">";
  text += text_at(4, 12, " class=\"label\"", shorten(block_name(block), columns));
  const std::string size = bytes_text(block.bytes);
  if (height >= 2 * kLabelHeight && size.size() <= columns) {
    text += text_at(4, 12 + kLabelHeight, " class=\"label\"", size);
  }
  return text + "</svg>\n";
}

std::string block_svg(const MemoryBlock& block, size_t index, const Scale& scale) {
  const double x = scale.x(block.lower);
  const double y = scale.y(block.offset + block.bytes);
  const double width = scale.x(block.upper) - x;
  const double height = scale.y(block.offset) - y;
  return R"(<rect class="block")" + attribute("x", x) + attribute("y", y) +
         attribute("width", width) + attribute("height", height) + " fill=\"" +
         colour_of(block, index) + "\"><title>" + xml_text(title_of(block)) + "</title></rect>\n" +
         label_svg(block, x, y, width, height);
}

// The smallest of 1, 2 and 5 times a power of ten, or the smallest power of two, that results in
// few ticks up to `most`.
int64_t tick_of(int64_t most, bool is_binary) {
  int64_t tick = 1;
  for (int round = 0; static_cast<double>(most) / static_cast<double>(tick) > kMaxTicks; ++round) {
    tick = is_binary || round % 3 != 1 ? 2 * tick : tick / 2 * 5;
  }
  return tick;
}

std::string axes_svg(const MemoryReport& report, const Scale& scale) {
  std::string text;
  const double bottom = kHeight - kBottom;
  const int64_t bytes = report.memory.arena_bytes;
  const int64_t byte_tick = tick_of(bytes, /*is_binary=*/true);
  for (int64_t at = 0; at <= bytes; at += byte_tick) {
    text += line_svg("grid", {kLeft - 5, scale.y(at)}, {kWidth - kRight, scale.y(at)});
    text +=
        text_at(kLeft - 9, scale.y(at) + 4, R"( class="soft" text-anchor="end")", bytes_text(at));
  }
  const int64_t step_tick = tick_of(report.steps, /*is_binary=*/false);
  for (int64_t at = 0; at < report.steps; at += step_tick) {
    text += line_svg("grid", {scale.x(at), bottom}, {scale.x(at), bottom + 5});
    text += text_at(scale.x(at), bottom + 18, " class=\"soft\"", std::to_string(at));
  }
  return text + text_at(kLeft, kHeight - 12, " class=\"soft\"",
                        "step of the plan, from the first on the left to the last");
}

std::string heading_svg(const MemoryReport& report) {
  const MemoryDescription& memory = report.memory;
  const std::string model = std::filesystem::path(report.model).filename().string();
  const std::string whose = model.empty() ? "" : " of " + shorten(printable(model), kTitleColumns);
  const std::string bound =
      memory.is_proven_smallest
          ? ", the smallest possible (proven)"
          : "; at least " + bytes_of_block_text(memory.lower_bound_bytes) + " are needed at once";
  return text_at(16, 26, R"( font-size="18" font-weight="600")",
                 "Memory for intermediate values" + whose) +
         text_at(16, 47, "",
                 bytes_of_block_text(memory.arena_bytes) + bound +
                     ". Without sharing it would be " + bytes_text(memory.naive_bytes) + ".") +
         text_at(
             16, 66, " class=\"soft\"",
             "Each rectangle is a value: as wide as the steps that need it, as high as its size. "
             "Grey ones are workspaces of steps. Point at one to see more.");
}

}  // namespace

std::string memory_svg(const MemoryReport& report) {
  const Scale scale(report);
  std::string text = R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 )" + number(kWidth) +
                     " " + number(kHeight) +
                     R"(" font-family="system-ui, sans-serif" font-size="13" role="img">
<style>)" + kStyle + "</style>\n";
  text += heading_svg(report) + axes_svg(report, scale);
  for (size_t index = 0; index < report.memory.blocks.size(); ++index) {
    text += block_svg(report.memory.blocks[index], index, scale);
  }
  const int64_t bound = report.memory.lower_bound_bytes;
  const double y = scale.y(bound);
  text += line_svg("bound\" stroke-dasharray=\"6 4", {kLeft, y}, {kWidth - kRight, y},
                   "lower bound: " + bytes_of_block_text(bound));
  return text +
         text_at(kWidth - kRight, y - 5, R"( class="boundtext" text-anchor="end")",
                 "needed at once: " + bytes_text(bound)) +
         "</svg>\n";
}

}  // namespace tessera::cli
