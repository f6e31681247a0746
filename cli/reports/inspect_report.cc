#include "cli/reports/inspect_report.h"

#include <algorithm>

#include "cli/output/quantities.h"

namespace tessera::cli {
namespace {

constexpr size_t kInspectLabelColumns = 12;
// The maximum number of sentences for one pass. A large model has thousands; --json prints all.
constexpr size_t kShownChanges = 50;

std::string domain_text(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

std::string opsets_text(const ModelDescription& model) {
  std::string text;
  for (const auto& [domain, version] : model.opsets) {
    text += (text.empty() ? "" : ", ") + domain_text(domain) + " " + std::to_string(version);
  }
  return text;
}

constexpr const char* kUnknownNumber = "?";

// Op types with their counts, most frequent first: "Conv 26, Relu 26, ...".
std::string op_counts_text(const std::vector<NodeDescription>& nodes) {
  std::map<std::string, int64_t> counts;
  for (const NodeDescription& node : nodes) ++counts[node.op];
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  std::string text;
  for (const auto& [op, count] : sorted) {
    text += (text.empty() ? "" : ", ") + op + " " + std::to_string(count);
  }
  return text;
}

std::string header_text(const ModelDescription& model, const InspectParts& parts,
                        const TextStyle& style) {
  constexpr const char* kUnknown = "unknown until every shape is known: use --shape";
  const auto line = [&](const std::string& label, const std::string& text) {
    return labelled(label, text, kInspectLabelColumns, style);
  };
  std::string text = line("file", model.file);
  text += line("IR version", std::to_string(model.ir_version));
  text += line("producer", model.producer.empty() ? "unknown" : model.producer);
  text += line("opsets", opsets_text(model));
  const size_t in_file = model.passes.empty() ? model.nodes.size() : model.passes[0].nodes_before;
  const std::string before =
      in_file == model.nodes.size()
          ? ""
          : " (" + std::to_string(in_file) + " in the file; --passes says what changed)";
  text += line("nodes",
               std::to_string(model.nodes.size()) + before + ": " + op_counts_text(model.nodes));
  if (!parts.is_loaded) return text;
  text +=
      line("weights", std::to_string(model.weights.size()) + ", " + bytes_text(model.weight_bytes));
  text += line("FLOPs", model.flops ? quantity_text(static_cast<double>(*model.flops)) : kUnknown);
  text += line("peak memory", model.peak_bytes
                                  ? bytes_text(*model.peak_bytes) +
                                        " of intermediate values at once, in the order below"
                                  : kUnknown);
  return text;
}

std::string values_text(const std::string& title, const std::vector<ValueDescription>& values,
                        const TextStyle& style) {
  TextTable table({{title, Align::Left, true}, {"type", Align::Left, true}, {""}});
  for (const ValueDescription& value : values) {
    table.add_row({value.name, value.text, value.is_read ? "" : "unused, may be left out"});
  }
  return "\n" + table.text(style);
}

std::string nodes_text(const std::vector<NodeDescription>& nodes, const TextStyle& style) {
  TextTable table({{"node", Align::Left, true},
                   {"op", Align::Left, true},
                   {"opset", Align::Right},
                   {"output"},  // never shortened: part of a shape would be another shape
                   {"FLOPs", Align::Right},
                   {"read+written", Align::Right}});
  for (const NodeDescription& node : nodes) {
    std::string outputs;
    for (const ValueDescription& output : node.outputs) {
      if (!output.name.empty()) outputs += (outputs.empty() ? "" : ", ") + output.text;
    }
    const std::string domain = node.domain.empty() ? "" : node.domain + ".";
    table.add_row({node.name, domain + node.op, std::to_string(node.version), outputs,
                   node.flops ? quantity_text(static_cast<double>(*node.flops)) : kUnknownNumber,
                   node.bytes ? bytes_text(*node.bytes) : kUnknownNumber});
  }
  return "\n" + table.text(style);
}

std::string passes_text(const std::vector<PassDescription>& passes, const TextStyle& style) {
  TextTable table({{"pass", Align::Left, true},
                   {"nodes before", Align::Right},
                   {"after", Align::Right},
                   {"changes", Align::Right},
                   {"time", Align::Right}});
  for (const PassDescription& pass : passes) {
    table.add_row({pass.name, std::to_string(pass.nodes_before), std::to_string(pass.nodes_after),
                   std::to_string(pass.changes.size()), time_text(pass.seconds)});
  }
  std::string text = "\n" + table.text(style);
  for (const PassDescription& pass : passes) {
    if (pass.changes.empty()) continue;
    text += "\n" + fitted(pass.name, style) + "\n";
    for (size_t index = 0; index < std::min(pass.changes.size(), kShownChanges); ++index) {
      text += wrapped(pass.changes[index], style, "  ");
    }
    if (pass.changes.size() > kShownChanges) {
      text += "  and " + std::to_string(pass.changes.size() - kShownChanges) +
              " more (--json shows all)\n";
    }
  }
  return text;
}

Json inputs_json(const std::vector<ValueDescription>& inputs) {
  Json json = Json::array();
  for (const ValueDescription& input : inputs) {
    Json entry = fields_json(input);
    entry["is_read"] = input.is_read;
    entry["index_count"] = optional_json(input.index_limit);
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string inspect_text(const ModelDescription& model, const InspectParts& parts,
                         const TextStyle& style) {
  std::string text = header_text(model, parts, style);
  if (!model.inputs.empty()) text += values_text("input", model.inputs, style);
  if (!model.outputs.empty()) text += values_text("output", model.outputs, style);
  if (parts.has_weights && !model.weights.empty()) {
    text += values_text("weight", model.weights, style);
  }
  if (!model.nodes.empty()) text += nodes_text(model.nodes, style);
  if (parts.has_passes) text += passes_text(model.passes, style);
  return text;
}

std::string missing_text(const std::vector<MissingPart>& missing, const TextStyle& style) {
  if (missing.empty()) return "";
  TextTable table(
      {{"missing", Align::Left, true}, {"uses", Align::Right}, {"first", Align::Left, true}});
  for (const MissingPart& part : missing) {
    table.add_row(
        {part.reason, std::to_string(part.count), part.places.empty() ? "" : part.places.front()});
  }
  return "\n" + table.text(style);
}

Json inspect_json(const ModelDescription& model, const InspectParts& parts) {
  Json opsets = Json::array();
  for (const auto& [domain, version] : model.opsets) {
    opsets.push_back({{"domain", domain}, {"opset_version", version}});
  }
  Json json = fields_json(model, {{"opsets", std::move(opsets)},
                                  {"inputs", inputs_json(model.inputs)},
                                  {"weight_count", model.weights.size()}});
  if (!parts.has_weights) json.erase("weights");
  if (!parts.has_passes) json.erase("passes");
  return json;
}

}  // namespace tessera::cli
