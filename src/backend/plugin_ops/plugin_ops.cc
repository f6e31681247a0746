#include "backend/plugin_ops/plugin_ops.h"

#include <algorithm>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "backend/contract/attribute_view.h"
#include "backend/contract/run_context.h"
#include "backend/plugin_ops/plugin_op.h"
#include "tessera/error.h"

namespace tessera {
namespace {

static_assert(static_cast<int>(DataType::Float32) == TESSERA_FLOAT32);
static_assert(static_cast<int>(DataType::String) == TESSERA_STRING);

std::vector<ops::Parameter> parameters_of(std::span<const tessera_parameter> parameters) {
  std::vector<ops::Parameter> result;
  for (const tessera_parameter& parameter : parameters) {
    result.push_back({.name = parameter.name,
                      .type_variable = parameter.type_variable,
                      .arity = static_cast<ops::Arity>(parameter.arity)});
  }
  return result;
}
static_assert(static_cast<int>(ops::Arity::Optional) == TESSERA_ARITY_OPTIONAL);
static_assert(static_cast<int>(ops::Arity::Variadic) == TESSERA_ARITY_VARIADIC);

AttributeKind kind_of(int32_t kind) { return static_cast<AttributeKind>(kind - 1); }
static_assert(static_cast<int>(AttributeKind::Int) + 1 == TESSERA_ATTRIBUTE_INT);
static_assert(static_cast<int>(AttributeKind::Tensor) + 1 == TESSERA_ATTRIBUTE_TENSOR);

Attribute attribute_of(const tessera_attribute& attribute) {
  const int32_t count = attribute.count;
  switch (attribute.kind) {
    case TESSERA_ATTRIBUTE_FLOAT:
      return attribute.float_value;
    case TESSERA_ATTRIBUTE_STRING:
      return std::string(attribute.string_value);
    case TESSERA_ATTRIBUTE_INTS:
      return std::vector<int64_t>(attribute.ints, attribute.ints + count);
    case TESSERA_ATTRIBUTE_FLOATS:
      return std::vector<float>(attribute.floats, attribute.floats + count);
    case TESSERA_ATTRIBUTE_STRINGS:
      return std::vector<std::string>(attribute.strings, attribute.strings + count);
    default:
      return attribute.int_value;
  }
}

template <class View>
tessera_buffer buffer_of(const View& view) {
  tessera_buffer buffer = {};
  if (view.is_empty()) return buffer;
  // The contract lets a kernel write through outputs only.
  buffer.data = const_cast<void*>(view.data);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  buffer.bytes = view.elements * element_bytes(view.type);
  buffer.data_type = static_cast<int32_t>(view.type);
  buffer.rank = static_cast<int32_t>(view.rank());
  buffer.dims = view.dims.data();
  return buffer;
}

void run_reference(const PluginOp& op, const ops::KernelCall& call) {
  std::pmr::vector<tessera_buffer> inputs(std::max(call.inputs.size(), fixed_count(op.inputs())),
                                          &call.scratch);
  std::ranges::transform(call.inputs, inputs.begin(), buffer_of<ops::TensorView>);
  std::pmr::vector<tessera_buffer> outputs(std::max(call.outputs.size(), fixed_count(op.outputs())),
                                           &call.scratch);
  std::ranges::transform(call.outputs, outputs.begin(), buffer_of<ops::MutableTensorView>);
  for (tessera_buffer& output : outputs) {
    output.request = output.data == nullptr ? TESSERA_REQUEST_NONE : TESSERA_REQUEST_WRITE;
  }

  AttributeViews attributes(call.node.attributes);
  tessera_node_context node = {};
  node.struct_size = sizeof(node);
  node.input_count = static_cast<int32_t>(inputs.size());
  node.output_count = static_cast<int32_t>(outputs.size());
  node.host_state = &attributes;
  node.attribute = [](const tessera_node_context* context, const char* name) {
    return static_cast<const AttributeViews*>(context->host_state)->find(name);
  };
  RunContext context(call.pool, call.scratch);
  const Status status = call_plugin([&](tessera_error* error) {
    return context.checked(
        op.abi.reference(op.abi.self, &node, context.abi(), inputs.data(), outputs.data(), error),
        error);
  });
  throw_on_failure(op, call.node, "reference kernel", status);
}

ops::Op make_op(const std::shared_ptr<const PluginOp>& held) {
  const tessera_op& abi = held->abi;
  ops::Op op;
  op.name = abi.name;
  op.domain = abi.domain;
  op.versions = {abi.version};
  op.inputs = parameters_of(held->inputs());
  op.outputs = parameters_of(held->outputs());
  std::map<std::string, uint32_t> variables;
  for (const auto& parameters : {held->inputs(), held->outputs()}) {
    for (const tessera_parameter& each : parameters) {
      variables[each.type_variable] = each.data_types;
    }
  }
  for (const auto& [name, bits] : variables) op.type_variables.push_back({name, type_set_of(bits)});
  for (const tessera_attribute_schema& schema : table_of(abi.attributes, abi.attribute_count)) {
    ops::AttributeSchema& made =
        op.attributes.emplace_back(schema.name, kind_of(schema.kind), std::nullopt);
    if (schema.default_value != nullptr) made.default_value = attribute_of(*schema.default_value);
    made.is_required = schema.is_required != 0;
  }
  if (abi.is_elementwise != 0) op.traits = ops::kElementwise;
  op.infer = [held](ops::InferContext& context) { run_type_rule(*held, context); };
  if (abi.reference != nullptr) {
    op.kernel = [held](const ops::KernelCall& call) { run_reference(*held, call); };
  }
  return op;
}

}  // namespace

ops::TypeSet type_set_of(uint32_t bits) {
  ops::TypeSet types = {};
  for (int type = TESSERA_BOOL; type <= TESSERA_STRING; ++type) {
    if ((bits & (1U << type)) != 0) types = types | ops::TypeSet{static_cast<DataType>(type)};
  }
  return types;
}

size_t fixed_count(std::span<const tessera_parameter> parameters) {
  const bool is_variadic = !parameters.empty() && parameters.back().arity == TESSERA_ARITY_VARIADIC;
  return parameters.size() - (is_variadic ? 1 : 0);
}

void throw_on_failure(const PluginOp& op, const Node& node, const char* what,
                      const Status& status) {
  if (status.is_fine()) return;
  if (status.code == TESSERA_INVALID_MODEL || status.code == TESSERA_INVALID_ARGUMENT ||
      status.code == TESSERA_UNSUPPORTED || status.code == TESSERA_OUT_OF_MEMORY) {
    throw Error(status.kind(), location_of(node),
                status.message + " (says the " + what + " of backend '" + op.backend + "')");
  }
  throw_fault(op, node, what, status.message);
}

void throw_fault(const PluginOp& op, const Node& node, const char* what, const std::string& fault) {
  throw Error(
      ErrorKind::DeviceFailed, location_of(node),
      std::string("the ") + what + " of backend '" + op.backend + "' is at fault: " + fault);
}

std::vector<ops::Op> make_ops(const tessera_backend& backend,
                              const std::shared_ptr<const void>& keeps_open) {
  std::vector<ops::Op> ops;
  std::set<std::pair<std::string, std::string>> names;
  for (const tessera_op& abi : table_of(backend.ops, backend.op_count)) {
    std::string reason = explain_illegal_op(abi);
    if (reason.empty() && !names.emplace(abi.domain, abi.name).second) {
      reason = std::string("op '") + abi.name + "': it is listed twice";
    }
    if (!reason.empty()) {
      throw Error(ErrorKind::Unsupported, std::string("backend '") + backend.name + "'", reason);
    }
    ops.push_back(
        make_op(std::make_shared<const PluginOp>(PluginOp{abi, backend.name, keeps_open})));
  }
  return ops;
}

}  // namespace tessera
