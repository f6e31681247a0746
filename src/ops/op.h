// The device-independent definition of an operator: schema, type and shape rule, traits, work, and
// the reference kernel. Each op (or tight family) has a file of its own and a line in op_list.inc;
// CONTRIBUTING.md tells how to add one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads/parallel.h"
#include "graph/graph.h"

namespace tessera::ops {

// --- Schema -------------------------------------------------------------------------------------

// A set of element types, as a bit mask.
class TypeSet {
 public:
  constexpr TypeSet(std::initializer_list<DataType> types) {
    for (const DataType type : types) bits_ |= bit(type);
  }
  constexpr bool contains(DataType type) const { return (bits_ & bit(type)) != 0; }
  constexpr TypeSet operator|(TypeSet other) const {
    other.bits_ |= bits_;
    return other;
  }
  std::string text() const;  // "float16, float32 or float64"

 private:
  static constexpr uint32_t bit(DataType type) { return 1U << static_cast<uint32_t>(type); }
  uint32_t bits_ = 0;
};

inline constexpr TypeSet kFloatTypes = {DataType::Float16, DataType::BFloat16, DataType::Float32,
                                        DataType::Float64};
inline constexpr TypeSet kSignedIntegerTypes = {DataType::Int8, DataType::Int16, DataType::Int32,
                                                DataType::Int64};
inline constexpr TypeSet kUnsignedIntegerTypes = {DataType::UInt8, DataType::UInt16,
                                                  DataType::UInt32, DataType::UInt64};
inline constexpr TypeSet kIntegerTypes = kSignedIntegerTypes | kUnsignedIntegerTypes;
inline constexpr TypeSet kNumericTypes = kIntegerTypes | kFloatTypes;
inline constexpr TypeSet kBoolType = {DataType::Bool};
inline constexpr TypeSet kAllTypes = kNumericTypes | kBoolType;
inline constexpr TypeSet kIndexTypes = {DataType::Int32, DataType::Int64};
inline constexpr TypeSet kInt64Type = {DataType::Int64};
inline constexpr TypeSet kStringType = {DataType::String};
// For ops that only move, repeat or compare elements.
inline constexpr TypeSet kAllTypesAndStrings = kAllTypes | kStringType;
// The small types are in none of these sets: few ops take them, and each from a version on.
inline constexpr TypeSet kFloat8Types = {DataType::Float8E4M3FN, DataType::Float8E4M3FNUZ,
                                         DataType::Float8E5M2, DataType::Float8E5M2FNUZ};
inline constexpr TypeSet kInt4Types = {DataType::Int4, DataType::UInt4};
inline constexpr TypeSet kFloat4Type = {DataType::Float4E2M1};
inline constexpr TypeSet kPowerType = {DataType::Float8E8M0};
inline constexpr TypeSet kInt2Types = {DataType::Int2, DataType::UInt2};

constexpr int kAnyVersion = 1000;

enum class Arity : uint8_t { Required, Optional, Variadic };

// An input or output. Only the last one may be variadic.
struct Parameter {
  std::string name;           // "X", its name in ONNX
  std::string type_variable;  // "T": parameters with the same variable have the same element type
  Arity arity = Arity::Required;
  int since = 1;              // the first version of the op that has it
  int until = kAnyVersion;    // the last version that has it
  bool may_be_empty = false;  // a variadic input of which a node may have none
};

// Types that a type variable has from a version of the op on.
struct AddedTypes {
  int since = 1;
  TypeSet types = {};
};

struct TypeVariable {
  std::string name;
  TypeSet types;
  std::vector<AddedTypes> added = {};

  TypeSet types_in(int version) const;
};

// The small types as the operator sets added them to most of the ops that take any; to an op that
// took none before version `since`, all that existed then.
std::vector<AddedTypes> small_types_since(int since);

struct AttributeSchema {
  std::string name;
  AttributeKind kind;
  std::optional<Attribute> default_value;  // import adds it if missing
  int since = 1;
  int until = kAnyVersion;
  bool is_required = false;
};

// --- Type and shape rule -------------------------------------------------------------------------

// The known properties of one input. All pointers are valid while the rule runs.
struct InferInput {
  bool is_present = false;           // false if an optional input is omitted
  Type type;                         // may be partly unknown
  const Tensor* constant = nullptr;  // the elements, if constant (or known at run time)
  // The elements of a small integer tensor as far as they are known. Also set if `constant` is a
  // small integer tensor, so rules that read shapes need only this.
  std::optional<std::vector<Dim>> elements;
};

struct InferOutput {
  Type type;
  std::optional<std::vector<Dim>> elements;
};

struct Op;

// A rule reads `node` and `inputs` and sets `outputs`. The element types of the inputs have been
// checked against the schema. A rule must accept symbols and unknown ranks and infer what it can.
// If it knows every input's type and the constants it needs, it must give complete types.
class InferContext {
 public:
  // All must outlive this.
  InferContext(const Op& op, const Node& node, std::span<const InferInput> inputs)
      : op_(op), node_(node), inputs_(inputs), outputs_(node.outputs.size()) {}

  const Node& node() const { return node_; }
  int version() const { return node_.version; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }

  bool has_input(size_t index) const { return index < inputs_.size() && inputs_[index].is_present; }
  // For reading its type, and for elements that the rule only passes on (set_elements()).
  const InferInput& input(size_t index) const { return inputs_[index]; }
  DataType element(size_t index) const { return inputs_[index].type.element; }
  // nullptr if the rank is unknown.
  const Shape* shape(size_t index) const;
  // The elements of an input that decide sizes or validity; null or nullopt if they are unknown.
  // The query is recorded: see has_unresolved_inputs().
  const Tensor* constant(size_t index) const;
  const std::optional<std::vector<Dim>>& elements(size_t index) const;
  // Same as elements(), for an integer input; nullopt unless every element is a known number.
  std::optional<std::vector<int64_t>> known_integers(size_t index) const;
  // Whether the rule asked for elements that are not known yet. If so, its answer may change, or
  // become an error, when it is asked again at run time.
  bool has_unresolved_inputs() const { return has_open_question_; }
  // The inputs for which the rule called constant(): a bit for each, of which the last one stands
  // for all others, too.
  static uint64_t bit_of(size_t index) { return uint64_t{1} << std::min<size_t>(index, 63); }
  uint64_t constants_read() const { return constants_read_; }

  // Ignores indices beyond the node's outputs and omitted outputs.
  void set_output(size_t index, DataType element, std::optional<Shape> shape = std::nullopt);
  void set_elements(size_t index, std::optional<std::vector<Dim>> elements);
  std::vector<InferOutput>& outputs() { return outputs_; }

  // `axis` normalised to [0, rank). fail()s if it is outside of [-rank, rank).
  int64_t normalized_axis(int64_t axis, int64_t rank) const;

  // Throws InvalidModel at this node ("node 'conv1' (Conv)") or at one of its inputs ("node 'conv1'
  // (Conv), input 'W'"). `message` says what was expected and what was found.
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_input(size_t index, const std::string& message) const;
  // Throws Unsupported at this node: for legal models without a kernel.
  [[noreturn]] void fail_unsupported(const std::string& message) const;

 private:
  const Op& op_;
  const Node& node_;
  std::span<const InferInput> inputs_;
  std::vector<InferOutput> outputs_;
  mutable bool has_open_question_ = false;
  mutable uint64_t constants_read_ = 0;
};

// std::function, because rules of ops from plug-ins capture state. Must be thread-safe.
using InferRule = std::function<void(InferContext& context)>;

// --- Work ----------------------------------------------------------------------------------------

// Floating-point operations of a node whose types are all known; a multiply-add counts as 2.
using FlopsRule = int64_t (*)(const Node& node, std::span<const Type> inputs,
                              std::span<const Type> outputs);
int64_t no_flops(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs);
// One operation per element of the first output.
int64_t flops_per_output(const Node& node, std::span<const Type> inputs,
                         std::span<const Type> outputs);
// One operation per element of the first input.
int64_t flops_per_input(const Node& node, std::span<const Type> inputs,
                        std::span<const Type> outputs);

// --- Reference kernel ----------------------------------------------------------------------------

// The elements of one task of an elementwise loop.
inline constexpr int64_t kElementGrain = 8192;

// A non-owning view of a dense row-major array. An omitted optional one is_empty().
struct TensorView {
  DataType type = DataType::Undefined;
  std::span<const int64_t> dims;
  const void* data = nullptr;
  int64_t elements = 0;

  bool is_empty() const { return data == nullptr; }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data), static_cast<size_t>(elements)};
  }
};

struct MutableTensorView {
  DataType type = DataType::Undefined;
  std::span<const int64_t> dims;
  void* data = nullptr;
  int64_t elements = 0;

  bool is_empty() const { return data == nullptr; }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data), static_cast<size_t>(elements)};
  }
};

// One call of a kernel. Inputs and outputs are in the node's order. Output shapes are those that
// the rule gave; inputs and outputs never overlap.
//
// Kernels must not allocate, so that a run never calls the system's allocator. Temporary memory
// comes from `scratch`, as std::pmr::vector; it is thread-safe. The body of a parallel loop uses
// SmallVector instead, or memory allocated before the loop (base/threads/parallel_slots.h):
// otherwise the amount of memory would depend on how many bodies run at once.
struct KernelCall {
  const Node& node;
  std::span<const TensorView> inputs;
  std::span<const MutableTensorView> outputs;
  ThreadPool& pool;
  std::pmr::memory_resource& scratch;
  const void* prepared = nullptr;  // what PreparedKernel::prepare made of the node

  bool has_input(size_t index) const { return index < inputs.size() && !inputs[index].is_empty(); }
  bool has_output(size_t index) const {
    return index < outputs.size() && !outputs[index].is_empty();
  }
  // Throws InvalidArgument at this node: for errors found only at run time (an index out of range).
  [[noreturn]] void fail(const std::string& message) const;
};

using ReferenceKernel = std::function<void(const KernelCall& call)>;

// What kernels need of a node alone, such as a table of its attributes: made once, when the node is
// made ready to run. `inputs` are the types of its inputs' elements. Throws InvalidModel
// for attributes that are too long for a type rule to check.
using PrepareRule =
    std::function<std::shared_ptr<const void>(const Node& node, std::span<const DataType> inputs)>;

// A reference kernel whose calls get what `prepare` made.
struct PreparedKernel {
  PrepareRule prepare;
  ReferenceKernel run;

  void operator()(const KernelCall& call) const { run(call); }
};

// --- Kernel of values ----------------------------------------------------------------------------

// Runs of one nested graph whose inputs and outputs have the same sizes each time.
class RepeatedRuns {
 public:
  virtual ~RepeatedRuns() = default;

  // `inputs` and `outputs` are the addresses of the elements, in the order of the graph's. An
  // output must not overlap an input. Throws Cancelled if the run is to end.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs) = 0;
};

// The nested graphs of one node, ready to run.
class BodyRunner {
 public:
  virtual ~BodyRunner() = default;

  // Runs the nested graph at index `body` of Node::bodies. `inputs` are in the order of its graph's
  // inputs; the runner knows its captures. Returns its outputs, which may share the elements of
  // inputs and captures. Throws Cancelled if the run is to end.
  virtual std::vector<Tensor> run(size_t body, std::span<const Tensor> inputs) = 0;

  // For runs after one on `inputs` that gave `outputs`, of the same sizes: they cost less. Null if
  // the sizes may change. The result must not be used after another run of this runner.
  virtual std::unique_ptr<RepeatedRuns> repeat(size_t body, std::span<const Tensor> inputs,
                                               std::span<const Tensor> outputs) {
    (void)body, (void)inputs, (void)outputs;
    return nullptr;
  }
};

// One call of a kernel that takes and gives whole values instead of elements in memory that was
// planned: of lists and strings, and of nodes with nested graphs. A value is a tensor, a list of
// tensors (Tensor::sequence()), or nothing: an input or output that the node leaves out, or an
// optional without a content.
struct ValueCall {
  const Node& node;
  // Their elements may be gone after the call: an output that shares them must be owned().
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;     // for the kernel to set
  BodyRunner* bodies = nullptr;  // null if the node has no nested graphs
  int64_t max_iterations = 0;    // of a loop; 0: no limit
  // Where the caller keeps what prepare_node(), or an earlier call for the same node, made; null:
  // nowhere.
  std::shared_ptr<const void>* kept = nullptr;
  ThreadPool* pool = nullptr;  // null: only this thread

  bool has_input(size_t index) const { return index < inputs.size() && !inputs[index].is_empty(); }
  // What the kernel makes of the node alone, such as a table of its attributes: by make(), in the
  // first of several calls. Each kernel prepares at most one object.
  template <class T, class Make>
  std::shared_ptr<const T> prepared(const Make& make) const {
    if (kept == nullptr) return std::shared_ptr<const T>(new T(make()));
    if (*kept == nullptr) *kept = std::shared_ptr<const T>(new T(make()));
    return std::static_pointer_cast<const T>(*kept);
  }
  // Throws InvalidArgument at this node.
  [[noreturn]] void fail(const std::string& message) const;
};

using ValueKernel = std::function<void(const ValueCall& call)>;

// The types that a node gives to the inputs of one of its nested graphs.
struct BodyTypes {
  std::vector<Type> inputs;  // by input of the nested graph; unknown ones are as it declares them
  // An output of the nested graph whose value is an input of its next run.
  struct Carried {
    size_t input = 0;
    size_t output = 0;
  };
  std::vector<Carried> carried = {};
};

// Throws InvalidModel if the nested graph cannot be that of `node`: it has another number of inputs
// or outputs. `inputs` are those of the node.
using BodyRule = BodyTypes (*)(const Node& node, std::span<const Type> inputs, size_t body);

// --- Error bound ---------------------------------------------------------------------------------

// The largest error that any kernel of an op may have. `exact` is the result in real arithmetic for
// the same inputs, epsilon is the distance from 1 to the next number of the output's type, and
// ulp(x) is the distance from x to the next number. Results of less than 128 times the smallest
// normal number may be off by as much, because kernels flush denormals.
//
//   |found - exact| <= ulps * ulp(exact)
//                    + terms * epsilon * the op's result for the magnitudes of its inputs
//                    + the largest change of the result if elements of inputs change by
//                      inputs * epsilon of themselves
//                    + logs * epsilon * |exact * ln(|exact|)|
//                    + absolute * epsilon
//
// Outputs that are not floating-point must be equal, unless a change of one floating-point input by
// twice its share gives the other result: so the integers of a quantised op may differ by one where
// a number is near the middle between two.
struct ErrorBound {
  double ulps = 0;
  double terms = 0;  // of a sum of terms
  double inputs = 0;
  double logs = 0;  // of exp() of a number that is rounded first
  double absolute = 0;
  const char* source = "";  // why this bound

  bool is_exact() const {
    return ulps == 0 && terms == 0 && inputs == 0 && logs == 0 && absolute == 0;
  }
};

// --- The op --------------------------------------------------------------------------------------

enum Trait : uint32_t {
  kNoTrait = 0,
  kElementwise = 1 << 0,  // each output element depends only on the input elements at its own index
  kRowWise = 1 << 1,      // each row along the last axis (or `axis`) is independent of the others
  kView = 1 << 2,         // the same elements in the same order with other dimensions
  kRandom = 1 << 3,       // two runs differ: never folded, never computed twice
  kKeepsZero = 1 << 4,    // of one input: zeros give zeros, so sparse inputs give sparse outputs
  kSizedByData = 1 << 5,  // output sizes depend on elements of an input that is not an integer list
  kProduct = 1 << 6,  // matrix products and convolutions: sums of products of two inputs' elements
  kConvolution = 1 << 7,  // products for which algorithms with fewer operations exist
  // |f(x)| <= f(|x|): for bounds of magnitudes, the op returns a bound of its result. Views too.
  kBoundsMagnitude = 1 << 8,
  // Elementwise without broadcasting, and |f(a) - f(b)| is at most about |a - b|.
  kNonExpansive = 1 << 9,
};

struct Op {
  std::string name = {};    // "Conv"
  std::string domain = {};  // "" is ONNX's own
  // Every version of the op's definition, ascending, up to the newest known operator set.
  std::vector<int> versions = {};
  std::vector<Parameter> inputs = {};
  std::vector<Parameter> outputs = {};
  std::vector<TypeVariable> type_variables = {};
  std::vector<AttributeSchema> attributes = {};
  // Attributes that hold nested graphs ("then_branch"). A node has all of them, as Node::bodies. If
  // the op has a reference kernel too, which is for nodes without nested graphs, it may omit some.
  std::vector<std::string> bodies = {};
  uint32_t traits = kNoTrait;
  // For ONNX's ops, this is a row of error_bounds.cc. nullopt: none is stated (ops of plug-ins).
  std::optional<ErrorBound> error_bound = std::nullopt;
  InferRule infer = nullptr;
  FlopsRule flops = flops_per_output;
  ReferenceKernel kernel = nullptr;
  // For nodes that take or give lists or strings, and for nodes with nested graphs: see
  // runs_on_values().
  ValueKernel value_kernel = nullptr;
  // If it has `bodies`: null if these have no inputs but captures.
  BodyRule body_rule = nullptr;
  // The last version, for ops that ONNX has removed (Upsample: 9).
  int last_version = kAnyVersion;
};

// Whether `node` runs on whole values: if `op` has only a value kernel, if the node has nested
// graphs, or if an input or output is no tensor of numbers or bools.
bool runs_on_values(const Op& op, const Graph& graph, const Node& node);

// What the op's reference kernel, if it is a PreparedKernel, wants to be made of `node`, also if it
// runs on values; else null. `inputs` are the node's.
std::shared_ptr<const void> prepare_node(const Op& op, const Node& node,
                                         std::span<const Tensor> inputs);
std::shared_ptr<const void> prepare_node(const Op& op, const Graph& graph, const Node& node);

// Runs such a node: by its value kernel, or, for an op without one that takes strings, by its
// reference kernel on their ranks.
void run_on_values(const Op& op, const ValueCall& call);

// The error bounds that ONNX's ops state (error_bounds.cc). docs/accuracy.md lists them beside what
// each backend and other runtimes reach. The bound of an op of ONNX's own domain. Exact for names
// without a row.
ErrorBound error_bound_of(std::string_view op);

// `op` with that bound; an op of another domain only if it has a row.
Op with_error_bound(Op op);

}  // namespace tessera::ops
