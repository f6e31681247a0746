// Calls a plug-in's type rule and checks its answer.
#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "backend/contract/attribute_view.h"
#include "backend/plugin_ops/plugin_op.h"
#include "ops/shape_rules.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr const char* kWhat = "type rule";

class RuleCall {
 public:
  RuleCall(const PluginOp& op, ops::InferContext& context)
      : op_(op), context_(context), attributes_(context.node().attributes) {
    const size_t input_count = std::max(context.input_count(), fixed_count(op.inputs()));
    dims_.resize(input_count);
    elements_.resize(input_count);
    for (size_t index = 0; index < input_count; ++index) {
      types_.push_back(input_type(index));
      constants_.push_back(input_constant(index));
    }
    output_count_ = std::max(context.output_count(), fixed_count(op.outputs()));
    given_.resize(output_count_);
  }

  void run() {
    tessera_infer_context shown = {};
    shown.struct_size = sizeof(shown);
    shown.input_count = static_cast<int32_t>(types_.size());
    shown.output_count = static_cast<int32_t>(output_count_);
    shown.host_state = this;
    shown.inputs = types_.data();
    shown.constants = constants_.data();
    shown.attribute = [](const tessera_infer_context* context, const char* name) {
      return of(context).attributes_.find(name);
    };
    shown.set_output = [](tessera_infer_context* context, int32_t output,
                          const tessera_type* type) { of(context).accept(output, type); };
    const Status status = call_plugin(
        [&](tessera_error* error) { return op_.abi.infer(op_.abi.self, &shown, error); });
    throw_on_failure(op_, context_.node(), kWhat, status);
    if (!fault_.empty()) fail(fault_);
    for (size_t index = 0; index < context_.output_count(); ++index) check(index);
  }

 private:
  static RuleCall& of(const tessera_infer_context* context) {
    return *static_cast<RuleCall*>(context->host_state);
  }

  [[noreturn]] void fail(const std::string& fault) const {
    throw_fault(op_, context_.node(), kWhat, fault);
  }

  tessera_type input_type(size_t index) {
    tessera_type type = {TESSERA_UNDEFINED, -1, nullptr};
    if (!context_.has_input(index)) return type;
    const Type& known = context_.input(index).type;
    type.data_type = static_cast<int32_t>(known.element);
    if (!known.shape) return type;
    for (const Dim& dim : *known.shape) dims_[index].push_back(dim.is_known() ? dim.value() : -1);
    type.rank = static_cast<int32_t>(dims_[index].size());
    type.dims = dims_[index].data();
    return type;
  }

  const void* input_constant(size_t index) {
    if (!context_.has_input(index)) return nullptr;
    if (const Tensor* constant = context_.constant(index)) return constant->data();
    // Shape arithmetic may know the elements although there is no tensor.
    std::optional<std::vector<int64_t>> known = context_.known_integers(index);
    if (!known || context_.element(index) != DataType::Int64) return nullptr;
    elements_[index] = std::move(*known);
    return elements_[index].data();
  }

  // The plug-in calls this, so it must not throw.
  void accept(int32_t output, const tessera_type* type) noexcept {
    try {
      if (output < 0 || static_cast<size_t>(output) >= output_count_) {
        fault_ = "it gave a type for output " + std::to_string(output) + " of " +
                 std::to_string(output_count_);
      } else if (type == nullptr) {
        fault_ = "it gave a null pointer as the type of output " + std::to_string(output);
      } else {
        accept(static_cast<size_t>(output), *type);
      }
    } catch (const std::exception&) {
      // If there is no memory for the error text, the output stays without a type, which check()
      // detects.
      return;
    }
  }

  void accept(size_t output, const tessera_type& type) {
    const auto says = [&](const std::string& what) {
      fault_ = "it gave output " + std::to_string(output) + " " + what;
    };
    if (type.data_type < TESSERA_UNDEFINED || type.data_type > TESSERA_STRING) {
      return says("the data type " + std::to_string(type.data_type) + ", which does not exist");
    }
    if (type.rank < -1 || type.rank > ops::kMaxDimensions) {
      return says("the rank " + std::to_string(type.rank));
    }
    if (type.rank > 0 && type.dims == nullptr) {
      return says("the rank " + std::to_string(type.rank) + " without dimensions");
    }
    given_[output] = true;
    std::optional<Shape> shape;
    if (type.rank >= 0) {
      shape.emplace();
      for (const int64_t dim : table_of(type.dims, type.rank)) {
        if (dim < -1) return says("the dimension " + std::to_string(dim));
        const size_t axis = shape->size();
        shape->push_back(dim >= 0 ? Dim(dim) : unknown_dim(output, axis, type.rank));
      }
    }
    context_.set_output(output, static_cast<DataType>(type.data_type), std::move(shape));
  }

  // For an elementwise op, a dimension on which all inputs agree is unchanged.
  Dim unknown_dim(size_t output, size_t axis, int32_t rank) const {
    std::optional<Dim> common;
    for (size_t index = 0; index < context_.input_count() && is_elementwise(); ++index) {
      if (!context_.has_input(index)) continue;
      const Shape* shape = context_.shape(index);
      const bool fits = shape != nullptr && shape->size() == static_cast<size_t>(rank);
      if (!fits || (common && *common != (*shape)[axis])) {
        return ops::unknown_dim(context_, output, axis);
      }
      common = (*shape)[axis];
    }
    return common ? *common : ops::unknown_dim(context_, output, axis);
  }

  void check(size_t output) {
    if (context_.node().outputs[output].is_none()) return;
    const std::string name = "output " + std::to_string(output);
    if (!given_[output]) fail("it gave " + name + " no type");
    const Type& type = context_.outputs()[output].type;
    if (type.element == DataType::Undefined) {
      if (has_unknown_input()) return;
      fail("it gave " + name + " no data type");
    }
    const std::span<const tessera_parameter> parameters = op_.outputs();
    const ops::TypeSet types =
        type_set_of(parameters[std::min(output, parameters.size() - 1)].data_types);
    if (!types.contains(type.element)) {
      fail("it gave " + name + " elements of " + std::string(name_of(type.element)) +
           ", but the op declares " + types.text());
    }
    check_size(name, type);
    if (is_elementwise()) check_elementwise(name, type);
  }

  bool has_unknown_input() const {
    for (size_t index = 0; index < context_.input_count(); ++index) {
      if (context_.has_input(index) && context_.element(index) == DataType::Undefined) return true;
    }
    return false;
  }

  static std::string_view name_of(DataType type) { return tessera::name(type); }

  void check_size(const std::string& name, const Type& type) const {
    if (!type.is_known_tensor()) return;
    try {
      tensor_bytes(type.element, dims_from(*type.shape));
    } catch (const Error& error) {
      fail("it gave " + name + " a shape that cannot be: " + error.message());
    }
  }

  void check_elementwise(const std::string& name, const Type& type) const {
    const Shape* common = nullptr;
    for (size_t index = 0; index < context_.input_count(); ++index) {
      if (!context_.has_input(index)) continue;
      const Shape* shape = context_.shape(index);
      if (shape == nullptr || (common != nullptr && *common != *shape)) return;
      common = shape;
    }
    if (common == nullptr || !type.shape || *type.shape == *common) return;
    fail("the op is elementwise and its inputs have the shape " + text(*common) + ", but it gave " +
         name + " the shape " + text(*type.shape));
  }

  bool is_elementwise() const { return op_.abi.is_elementwise != 0; }

  const PluginOp& op_;
  ops::InferContext& context_;
  AttributeViews attributes_;
  std::vector<std::vector<int64_t>> dims_;  // of the inputs; unknown ones are -1
  std::vector<std::vector<int64_t>>
      elements_;  // of the inputs that have known elements but no tensor
  std::vector<tessera_type> types_;
  std::vector<const void*> constants_;
  size_t output_count_ = 0;
  std::vector<bool> given_;  // by output
  std::string fault_;
};

}  // namespace

void run_type_rule(const PluginOp& op, ops::InferContext& context) { RuleCall(op, context).run(); }

}  // namespace tessera
