#include "cli/inspect_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/text_table.h"

namespace tessera::cli {
namespace {

constexpr size_t kLabelColumns = 12;
// Sentences about one pass; a large model has thousands, which --json gives.
constexpr size_t kShownChanges = 50;

std::string line(const std::string& label, const std::string& text) {
  const std::string gap(kLabelColumns - std::min(kLabelColumns - 1, label.size()), ' ');
  return label + gap + shorten(printable(text), kTextColumns - kLabelColumns) + "\n";
}

std::string domain_text(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

std::string opsets_text(const ModelDescription& model) {
  std::string text;
  for (const auto& [domain, version] : model.opsets) {
    text += (text.empty() ? "" : ", ") + domain_text(domain) + " " + std::to_string(version);
  }
  return text;
}

std::string quantity_or_unknown(const std::optional<int64_t>& number) {
  return number ? quantity_text(static_cast<double>(*number)) : "?";
}

// "Conv 26, Relu 26, ...": the most frequent first.
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

std::string header_text(const ModelDescription& model) {
  constexpr const char* kUnknown = "unknown until every shape is: use --shape";
  std::string text = line("file", model.file);
  text += line("IR version", std::to_string(model.ir_version));
  text += line("producer", model.producer.empty() ? "unknown" : model.producer);
  text += line("opsets", opsets_text(model));
  text += line("nodes", std::to_string(model.nodes.size()) + ": " + op_counts_text(model.nodes));
  text +=
      line("weights", std::to_string(model.weights.size()) + ", " + bytes_text(model.weight_bytes));
  text += line("FLOPs", model.flops ? quantity_text(static_cast<double>(*model.flops)) : kUnknown);
  text += line("peak memory", model.peak_bytes
                                  ? bytes_text(*model.peak_bytes) + " of inner values at once"
                                  : kUnknown);
  return text;
}

std::string values_text(const std::string& title, const std::vector<ValueDescription>& values) {
  TextTable table({{title, Align::Left, true}, {"type", Align::Left, true}, {""}});
  for (const ValueDescription& value : values) {
    table.add_row({value.name, value.text, value.is_read ? "" : "not read, need not be given"});
  }
  return "\n" + table.text();
}

std::string nodes_text(const std::vector<NodeDescription>& nodes) {
  TextTable table({{"node", Align::Left, true},
                   {"op", Align::Left, true},
                   {"output", Align::Left, true},
                   {"FLOPs", Align::Right},
                   {"bytes", Align::Right}});
  for (const NodeDescription& node : nodes) {
    std::string outputs;
    for (const ValueDescription& output : node.outputs) {
      if (!output.name.empty()) outputs += (outputs.empty() ? "" : ", ") + output.text;
    }
    const std::string domain = node.domain.empty() ? "" : node.domain + ".";
    table.add_row({node.name, domain + node.op + "-" + std::to_string(node.version), outputs,
                   quantity_or_unknown(node.flops), quantity_or_unknown(node.bytes)});
  }
  return "\n" + table.text();
}

std::string milliseconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", seconds * 1000);
  return text.data();
}

std::string passes_text(const std::vector<PassDescription>& passes) {
  TextTable table({{"pass", Align::Left, true},
                   {"nodes before", Align::Right},
                   {"after", Align::Right},
                   {"changes", Align::Right},
                   {"ms", Align::Right}});
  for (const PassDescription& pass : passes) {
    table.add_row({pass.name, std::to_string(pass.nodes_before), std::to_string(pass.nodes_after),
                   std::to_string(pass.changes.size()), milliseconds_text(pass.seconds)});
  }
  std::string text = "\n" + table.text();
  for (const PassDescription& pass : passes) {
    if (pass.changes.empty()) continue;
    text += "\n" + shorten(printable(pass.name), kTextColumns) + "\n";
    for (size_t index = 0; index < std::min(pass.changes.size(), kShownChanges); ++index) {
      text += "  " + shorten(printable(pass.changes[index]), kTextColumns - 2) + "\n";
    }
    if (pass.changes.size() > kShownChanges) {
      text += "  and " + std::to_string(pass.changes.size() - kShownChanges) + " more (--json)\n";
    }
  }
  return text;
}

Json optional_json(const std::optional<int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json inputs_json(const std::vector<ValueDescription>& inputs) {
  Json json = Json::array();
  for (const ValueDescription& input : inputs) {
    Json entry = to_json(input);
    entry["is_read"] = input.is_read;
    if (input.index_limit) entry["index_limit"] = *input.index_limit;
    json.push_back(std::move(entry));
  }
  return json;
}

Json node_json(const NodeDescription& node) {
  Json json = {{"name", node.name},
               {"op", node.op},
               {"domain", node.domain},
               {"version", node.version},
               {"inputs", to_json(node.inputs)},
               {"outputs", to_json(node.outputs)},
               {"flops", optional_json(node.flops)},
               {"bytes", optional_json(node.bytes)}};
  if (!node.inference_only.empty()) json["inference_only"] = node.inference_only;
  return json;
}

Json passes_json(const std::vector<PassDescription>& passes) {
  Json json = Json::array();
  for (const PassDescription& pass : passes) {
    json.push_back({{"name", pass.name},
                    {"nodes_before", pass.nodes_before},
                    {"nodes_after", pass.nodes_after},
                    {"milliseconds", pass.seconds * 1000},
                    {"changes", pass.changes}});
  }
  return json;
}

}  // namespace

std::string inspect_text(const ModelDescription& model, const InspectParts& parts) {
  std::string text = header_text(model);
  if (!model.inputs.empty()) text += values_text("input", model.inputs);
  if (!model.outputs.empty()) text += values_text("output", model.outputs);
  if (parts.has_weights && !model.weights.empty()) text += values_text("weight", model.weights);
  if (!model.nodes.empty()) text += nodes_text(model.nodes);
  if (parts.has_passes) text += passes_text(model.passes);
  return text;
}

Json inspect_json(const ModelDescription& model, const InspectParts& parts) {
  Json opsets = Json::object();
  for (const auto& [domain, version] : model.opsets) opsets[domain] = version;
  Json nodes = Json::array();
  for (const NodeDescription& node : model.nodes) nodes.push_back(node_json(node));
  Json json = {{"file", model.file},
               {"ir_version", model.ir_version},
               {"producer", model.producer},
               {"opsets", std::move(opsets)},
               {"inputs", inputs_json(model.inputs)},
               {"outputs", to_json(model.outputs)},
               {"weight_count", model.weights.size()},
               {"weight_bytes", model.weight_bytes},
               {"flops", optional_json(model.flops)},
               {"peak_bytes", optional_json(model.peak_bytes)},
               {"nodes", std::move(nodes)}};
  if (parts.has_weights) json["weights"] = to_json(model.weights);
  if (parts.has_passes) json["passes"] = passes_json(model.passes);
  return json;
}

}  // namespace tessera::cli
