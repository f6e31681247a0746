#include "import/onnx/survey.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "import/onnx/names/op_lookup.h"
#include "import/onnx/names/used_names.h"
#include "import/onnx/types.h"
#include "import/onnx/wire/byte_source.h"
#include "import/onnx/wire/wire_scan.h"
#include "ops/schema.h"

namespace tessera {
namespace {

using onnx_import::ByteSource;
using onnx_import::data_type_of;
using onnx_import::normalized_domain;
using onnx_import::onnx_type_name;
using onnx_import::Operator;
using onnx_import::Opsets;

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

constexpr size_t kMaxPlaces = 100;

// MissingPart::kind, in the order in which parts are listed.
constexpr std::string_view kVersion = "version";
constexpr std::string_view kOperator = "operator";
constexpr std::string_view kValueType = "value_type";
constexpr std::string_view kElementType = "element_type";

int rank_of(const MissingPart& part) {
  constexpr std::string_view kKinds[] = {kVersion, kOperator, kValueType, kElementType};
  return static_cast<int>(std::ranges::find(kKinds, part.kind) - std::begin(kKinds));
}

// The place of a graph in the file, and the operator sets of its nodes.
struct Site {
  std::string where;  // "function 'f', node 'if1' (If), then_branch, " or ""
  Opsets opsets;
};

std::string name_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return node.op_type();
}

std::string location_of(const onnx::NodeProto& node) {
  return "node '" + name_of(node) + "' (" + node.op_type() + ")";
}

// Unlike read_opsets(), accepts all versions.
Opsets all_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  Opsets opsets;
  for (const auto& entry : imports) opsets[normalized_domain(entry.domain())] = entry.version();
  return opsets;
}

// Attributes that are the number of an element type.
bool names_element_type(const onnx::NodeProto& node, const onnx::AttributeProto& attribute) {
  constexpr std::string_view kNames[] = {"to", "dtype", "output_dtype"};
  return normalized_domain(node.domain()).empty() && attribute.has_i() &&
         std::ranges::find(kNames, attribute.name()) != std::end(kNames);
}

class Survey {
 public:
  Survey(const onnx::ModelProto& model, const ops::Registry& registry) : registry_(registry) {
    description_.ir_version = model.ir_version();
    description_.producer = model.producer_name();
    if (!model.producer_version().empty()) description_.producer += " " + model.producer_version();
    description_.opsets = all_opsets(model.opset_import());
    onnx_import::add_implied_opset(model.ir_version(), description_.opsets);
    for (const onnx::FunctionProto& function : model.functions()) {
      functions_.emplace(
          FunctionKey(normalized_domain(function.domain()), function.name(), function.overload()),
          &function);
    }
    add_versions();
    add_values(model.graph());
    add_graph(model.graph(), {"", description_.opsets});
    for (; !called_.empty(); called_.pop_front()) {
      const onnx::FunctionProto& function = *called_.front();
      Opsets opsets = all_opsets(function.opset_import());
      // The model's operator sets apply to domains that the function does not import.
      opsets.insert(description_.opsets.begin(), description_.opsets.end());
      add_nodes(function.node(), {"function '" + function.name() + "', ", opsets});
    }
  }

  ModelInspection take() {
    std::ranges::stable_sort(missing_, [](const auto& left, const auto& right) {
      return std::pair(rank_of(left), -left.count) < std::pair(rank_of(right), -right.count);
    });
    return {std::move(description_), std::move(missing_)};
  }

 private:
  MissingPart& add(std::string_view kind, const Operator& what, const std::string& reason,
                   const std::string& place) {
    const auto [entry, is_new] = indices_.try_emplace(
        std::tuple(std::string(kind), what.domain, what.name, reason), missing_.size());
    if (is_new) {
      missing_.push_back(
          {.kind = std::string(kind), .name = what.name, .domain = what.domain, .reason = reason});
    }
    MissingPart& part = missing_[entry->second];
    ++part.count;
    if (part.places.size() < kMaxPlaces) part.places.push_back(place);
    return part;
  }

  void add_versions() {
    const auto opset = description_.opsets.find("");
    const int64_t ir = description_.ir_version;
    if (ir > onnx::IR_VERSION) {
      add(kVersion, {"", "IR version " + std::to_string(ir)},
          "IR version " + std::to_string(ir) + " is not in this build, whose newest is " +
              std::to_string(onnx::IR_VERSION),
          "the model");
    }
    if (opset == description_.opsets.end()) return;
    if (opset->second >= ops::kOldestOpset && opset->second <= ops::kNewestOpset) return;
    add(kVersion, {"", "version " + std::to_string(opset->second)},
        "version " + std::to_string(opset->second) +
            " of ai.onnx is not in this build, which has " + std::to_string(ops::kOldestOpset) +
            " to " + std::to_string(ops::kNewestOpset),
        "the model");
  }

  // The inputs and outputs of the model, for the description.
  void add_values(const onnx::GraphProto& graph) {
    std::set<std::string> constants;
    for (const auto& tensor : graph.initializer()) constants.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) constants.insert(tensor.values().name());
    for (const auto& input : graph.input()) {
      if (!constants.contains(input.name())) description_.inputs.push_back(declared(input));
    }
    for (const auto& output : graph.output()) description_.outputs.push_back(declared(output));
  }

  // Whether load() accepts the type of an input that nothing reads.
  static bool is_readable(const onnx::ValueInfoProto& proto) {
    DimNames names;
    try {
      (void)onnx_import::type_of(proto.type(), "", proto.name(), names);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  ValueDescription declared(const onnx::ValueInfoProto& proto) {
    ValueDescription value;
    value.name = proto.name();
    try {
      const Type type = onnx_import::type_of(proto.type(), "", proto.name(), dim_names_);
      if (type.is_tensor()) value.type = type.element;
      value.text = text(type);
      if (!type.shape) return value;
      value.shape.emplace();
      for (const Dim& dim : *type.shape) {
        value.shape->push_back(dim.is_known() ? Dimension{dim.value(), ""}
                                              : Dimension{std::nullopt, shown_text(dim)});
      }
    } catch (const Error&) {
      value.text = "unknown";  // one of the missing types
    }
    return value;
  }

  void add_graph(const onnx::GraphProto& graph, const Site& site) {
    // A value that no node reads or makes is not needed.
    std::unordered_set<std::string_view> used = onnx_import::used_names(graph);
    for (const auto& input : graph.input()) {
      if (!used.contains(input.name()) && is_readable(input)) continue;
      add_type(input.type(), site.where + "graph input '" + input.name() + "'");
    }
    for (const auto& output : graph.output()) {
      add_type(output.type(), site.where + "graph output '" + output.name() + "'");
    }
    for (const auto& value : graph.value_info()) {
      if (!used.contains(value.name())) continue;
      add_type(value.type(), site.where + "value '" + value.name() + "'");
    }
    // The values of inputs are read with them.
    for (const auto& input : graph.input()) used.insert(input.name());
    for (const auto& tensor : graph.initializer()) {
      if (!used.contains(tensor.name())) continue;
      add_element(tensor.data_type(), site.where + "initializer '" + tensor.name() + "'");
    }
    for (const auto& tensor : graph.sparse_initializer()) {
      if (!used.contains(tensor.values().name())) continue;
      add_element(tensor.values().data_type(),
                  site.where + "sparse initializer '" + tensor.values().name() + "'");
    }
    add_nodes(graph.node(), site);
  }

  void add_element(int onnx_type, const std::string& place) {
    const std::optional<DataType> type = data_type_of(onnx_type);
    const bool is_known = onnx_type == onnx::TensorProto::UNDEFINED || type.has_value();
    if (is_known) return;
    const std::string name = onnx_type_name(onnx_type);
    add(kElementType, {"", name}, "elements of " + name + " are not in this build", place);
  }

  void add_value_type(const std::string& name, const std::string& place) {
    add(kValueType, {"", name}, name + "s are not in this build", place);
  }

  void add_type(const onnx::TypeProto& type, const std::string& place, int depth = 0) {
    if (depth > onnx_import::kMaxNestedTypes) return;
    switch (type.value_case()) {
      case onnx::TypeProto::kTensorType:
        return add_element(type.tensor_type().elem_type(), place);
      case onnx::TypeProto::kSequenceType:
        return add_type(type.sequence_type().elem_type(), place, depth + 1);
      case onnx::TypeProto::kOptionalType:
        return add_type(type.optional_type().elem_type(), place, depth + 1);
      case onnx::TypeProto::kMapType:
        add_element(type.map_type().key_type(), place);
        return add_type(type.map_type().value_type(), place, depth + 1);
      case onnx::TypeProto::kSparseTensorType:
        add_value_type("sparse tensor", place);
        return add_element(type.sparse_tensor_type().elem_type(), place);
      case onnx::TypeProto::kOpaqueType:
        return add_value_type("opaque value", place);
      case onnx::TypeProto::VALUE_NOT_SET:
        return;
    }
  }

  void add_nodes(const Nodes& nodes, const Site& site) {
    for (const onnx::NodeProto& node : nodes) {
      const std::string domain = normalized_domain(node.domain());
      const auto function = functions_.find(FunctionKey(domain, node.op_type(), node.overload()));
      if (function == functions_.end()) {
        add_operator(node, domain, site);
      } else if (entered_.insert(function->second).second) {
        called_.push_back(function->second);
      }
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        add_attribute(node, attribute, site);
      }
    }
  }

  void add_operator(const onnx::NodeProto& node, const std::string& domain, const Site& site) {
    const std::optional<int64_t> opset = onnx_import::version_of_domain(site.opsets, domain);
    const Operator wanted{domain, node.op_type()};
    const std::string reason = explain_missing(registry_, wanted, site.opsets);
    if (!reason.empty()) {
      add(kOperator, wanted, reason, site.where + location_of(node)).opset = opset;
    }
    NodeDescription described;
    described.name = name_of(node);
    described.op = node.op_type();
    described.domain = domain;
    const ops::Op* op = registry_.find(domain, node.op_type());
    if (op != nullptr && opset && *opset >= 1 && *opset <= ops::kAnyVersion) {
      described.version = ops::version_in(*op, static_cast<int>(*opset)).value_or(0);
    }
    const onnx_import::OldOp* old =
        onnx_import::find_old_op(registry_, domain, node.op_type(), opset.value_or(0));
    if (old != nullptr) described.version = old->version;
    description_.nodes.push_back(std::move(described));
  }

  void add_attribute(const onnx::NodeProto& node, const onnx::AttributeProto& attribute,
                     const Site& site) {
    const std::string place =
        site.where + location_of(node) + ", attribute '" + attribute.name() + "'";
    if (names_element_type(node, attribute)) add_element(static_cast<int>(attribute.i()), place);
    if (node.op_type() == "Cast" && attribute.name() == "to" && attribute.has_s()) {
      const auto type = onnx_import::onnx_type_named(attribute.s());
      if (type) add_element(*type, place);
    }
    if (attribute.has_t()) add_element(attribute.t().data_type(), place);
    for (const auto& tensor : attribute.tensors()) add_element(tensor.data_type(), place);
    if (attribute.has_tp()) add_type(attribute.tp(), place);
    for (const auto& type : attribute.type_protos()) add_type(type, place);
    const bool is_constant = node.op_type() == "Constant";
    if (is_constant && attribute.name().starts_with("value_string")) {
      add_element(onnx::TensorProto::STRING, place);
    }
    if (attribute.has_sparse_tensor() && !is_constant) add_value_type("sparse tensor", place);
    const Site inside{site.where + location_of(node) + ", " + attribute.name() + ", ", site.opsets};
    if (attribute.has_g()) add_graph(attribute.g(), inside);
    for (const onnx::GraphProto& graph : attribute.graphs()) {
      add_value_type("list of graph", place);
      add_graph(graph, inside);
    }
  }

  const ops::Registry& registry_;
  ModelDescription description_;
  std::vector<MissingPart> missing_;
  DimNames dim_names_;
  std::map<FunctionKey, const onnx::FunctionProto*> functions_;
  std::set<const onnx::FunctionProto*> entered_;
  std::deque<const onnx::FunctionProto*> called_;  // to be surveyed
  // By kind, domain, name and reason.
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> indices_;
};

ModelInspection survey(const ByteSource& source, const ops::Registry& registry) {
  const onnx::ModelProto model = onnx_import::scan_model(source).message;
  return Survey(model, registry).take();
}

// "12 nodes" or "1 place".
std::string count_text(const MissingPart& part) {
  const bool is_operator = part.kind == kOperator;
  return std::to_string(part.count) + (is_operator ? " node" : " place") +
         (part.count == 1 ? "" : "s");
}

std::string part_text(const MissingPart& part) {
  if (part.kind == kVersion) return part.reason;
  return part.reason + " (" + count_text(part) + (part.count == 1 ? ": " : ", the first is ") +
         part.places.front() + ")";
}

}  // namespace

ModelInspection survey_onnx(const std::filesystem::path& file, const ops::Registry& registry) {
  return survey(ByteSource::open(file), registry);
}

ModelInspection survey_onnx_bytes(std::string_view bytes, const ops::Registry& registry) {
  return survey(ByteSource::over(bytes), registry);
}

Error with_missing(const Error& error, const std::string& location,
                   const std::vector<MissingPart>& missing) {
  // The text of an error must fit a terminal.
  constexpr size_t kMaxShown = 8;
  const auto is_named = [&](const MissingPart& part) {
    // "version 29" is "found 29" in an error.
    const std::string text =
        part.kind == kVersion ? "found " + part.name.substr(part.name.rfind(' ') + 1) : part.name;
    return error.message().find(text) != std::string::npos;
  };
  const bool is_refusal = error.kind() == ErrorKind::Unsupported;
  const bool is_covered = is_refusal && std::ranges::any_of(missing, is_named);
  const bool is_one = missing.size() == 1 && missing.front().count == 1;
  if (missing.empty() || (is_one && is_covered)) return error;
  const std::string place = error.where() == location ? "" : error.where() + ": ";
  std::string message = is_covered ? "" : place + error.message() + "; besides, ";
  if (missing.size() > 1) {
    message += "it needs " + std::to_string(missing.size()) + " things that are missing: ";
  }
  for (size_t index = 0; index < std::min(missing.size(), kMaxShown); ++index) {
    message += (index == 0 ? "" : "; ") + part_text(missing[index]);
  }
  if (missing.size() > kMaxShown) {
    message += "; and " + std::to_string(missing.size() - kMaxShown) +
               " more, which 'tessera inspect' lists";
  }
  return {error.kind(), location, message};
}

void throw_missing(const Error& error, const std::string& location,
                   const std::function<ModelInspection()>& survey) {
  ModelInspection inspection;
  try {
    inspection = survey();
  } catch (const Error&) {
    // Something else is wrong with the file, too.
    throw Error(error);
  }
  if (inspection.missing.empty()) throw Error(error);
  const Error all = with_missing(error, location, inspection.missing);
  throw MissingParts(all, std::move(inspection));
}

}  // namespace tessera
