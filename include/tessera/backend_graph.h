// The objects that the host passes to a plug-in, in C++: the graph, buffers, the context of a run.
// Included by tessera/backend.h, which authors include.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/backend_abi.h"

namespace tessera::plugin {

// Ends a call with a kind (TESSERA_UNSUPPORTED, ...) and a message for users.
class Failure : public std::runtime_error {
 public:
  Failure(int32_t kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  int32_t kind() const { return kind_; }

 private:
  int32_t kind_;
};

namespace detail {

// Writes a reason into the caller's memory, cut if it is too long.
inline int32_t report(tessera_error* error, int32_t kind, const char* message) noexcept {
  if (error != nullptr) {
    error->kind = kind;
    std::strncpy(error->message, message, sizeof(error->message) - 1);
    error->message[sizeof(error->message) - 1] = '\0';
  }
  return kind;
}

// Runs `body` and turns any exception into a status.
template <class Body>
int32_t guarded(tessera_error* error, const Body& body) noexcept {
  try {
    body();
    return TESSERA_OK;
  } catch (const Failure& failure) {
    return report(error, failure.kind(), failure.what());
  } catch (const std::bad_alloc&) {
    return report(error, TESSERA_OUT_OF_MEMORY, "no memory left");
  } catch (const std::exception& exception) {
    return report(error, TESSERA_INTERNAL, exception.what());
  } catch (...) {
    return report(error, TESSERA_INTERNAL, "threw something that is no std::exception");
  }
}

inline void throw_on_failure(int32_t status, const tessera_error& error) {
  if (status != TESSERA_OK) throw Failure(status, error.message);
}

inline tessera_error empty_error() {
  tessera_error error;
  error.struct_size = sizeof(error);
  error.kind = TESSERA_OK;
  // To clear the whole message would cost a thousand bytes for each parallel loop of a kernel.
  error.message[0] = '\0';
  return error;
}

inline void append_bytes(void* user, const void* bytes, size_t size) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), size);
}

}  // namespace detail

// --- Provided by the host ----------------------------------------------------------------------

// The size of one element of a data type in bytes; 0 for types without a fixed size.
inline int64_t element_bytes(int32_t data_type) {
  switch (data_type) {
    case TESSERA_BOOL:
    case TESSERA_INT8:
    case TESSERA_UINT8:
    case TESSERA_FLOAT8E4M3FN:
    case TESSERA_FLOAT8E4M3FNUZ:
    case TESSERA_FLOAT8E5M2:
    case TESSERA_FLOAT8E5M2FNUZ:
    case TESSERA_FLOAT8E8M0:
    case TESSERA_FLOAT4E2M1:
    case TESSERA_INT4:
    case TESSERA_UINT4:
    case TESSERA_INT2:
    case TESSERA_UINT2:
      return 1;
    case TESSERA_INT16:
    case TESSERA_UINT16:
    case TESSERA_FLOAT16:
    case TESSERA_BFLOAT16:
      return 2;
    case TESSERA_INT32:
    case TESSERA_UINT32:
    case TESSERA_FLOAT32:
      return 4;
    case TESSERA_INT64:
    case TESSERA_UINT64:
    case TESSERA_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

// The logical type of a tensor. A rank or dimension of -1 is not known before running.
struct Type {
  int32_t data_type = TESSERA_UNDEFINED;
  int32_t rank = -1;
  std::vector<int64_t> dims;

  Type() = default;
  Type(int32_t element, std::vector<int64_t> sizes)
      : data_type(element), rank(static_cast<int32_t>(sizes.size())), dims(std::move(sizes)) {}
  explicit Type(const tessera_type& type) : data_type(type.data_type), rank(type.rank) {
    if (rank > 0) dims.assign(type.dims, type.dims + rank);
  }

  bool is_known() const {
    return rank >= 0 && std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim >= 0; });
  }
  // Requires is_known().
  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    return count;
  }
  // The size in dense storage. Requires is_known().
  int64_t dense_bytes() const { return elements() * element_bytes(data_type); }
  // "2x3x?"; for the text of refusals.
  std::string shape_text() const {
    if (rank < 0) return "any rank";
    std::string text;
    for (const int64_t dim : dims) {
      if (!text.empty()) text += 'x';
      text += dim < 0 ? std::string("?") : std::to_string(dim);
    }
    return text.empty() ? "scalar" : text;
  }
  tessera_type view() const { return {data_type, rank, dims.data()}; }
  bool operator==(const Type&) const = default;
};

class Node;

// An input, output or constant of a node. Copying is inexpensive; valid as long as the graph. A
// value that is left out has no name, an unknown type and no elements.
class Value {
 public:
  Value(const tessera_value* value, int32_t id) : value_(value), id_(id) {}

  bool is_present() const { return value_ != nullptr; }  // false: left out
  int32_t id() const { return id_; }
  std::string name() const { return is_present() ? value_->name : ""; }
  Type type() const { return is_present() ? Type(value_->type) : Type(); }
  // The type of a value of a small type (TESSERA_FLOAT8E4M3FN and above), whose type() is unknown.
  Type small_type() const {
    constexpr size_t kBytes = offsetof(tessera_value, small_type) + sizeof(void*);
    const bool has_type =
        is_present() && value_->struct_size >= kBytes && value_->small_type != nullptr;
    return has_type ? Type(*value_->small_type) : Type();
  }
  bool is_input() const { return has_flag(TESSERA_VALUE_INPUT); }
  bool is_constant() const { return has_flag(TESSERA_VALUE_CONSTANT); }
  // An output of the graph or fetched: the group that computes it must have it as an output.
  bool is_needed() const { return has_flag(TESSERA_VALUE_NEEDED); }
  bool is_state() const { return has_flag(TESSERA_VALUE_STATE); }
  // The elements of a constant; null if the value is no constant, or if they were released.
  const void* constant() const { return is_present() ? value_->constant : nullptr; }
  // Same as constant(), as a span of `T`; empty if `T` does not have the size of an element.
  template <class T>
  std::span<const T> constant_as() const {
    if (constant() == nullptr || element_bytes(value_->type.data_type) != sizeof(T)) return {};
    return {static_cast<const T*>(constant()), static_cast<size_t>(type().elements())};
  }
  // The sparse layout in which it may be stored (TESSERA_DENSE: none), and the maximum number of
  // elements or rows that it can store in that layout.
  int32_t sparse_format() const {
    return is_present() ? value_->sparse_format : int32_t{TESSERA_DENSE};
  }
  int64_t sparse_capacity() const { return is_present() ? value_->sparse_capacity : 0; }
  // The node that computes it, or -1.
  int32_t producer() const { return is_present() ? value_->producer : -1; }
  // The nodes that read it, one entry for each input of a node that reads it.
  std::span<const int32_t> consumers() const {
    if (!is_present()) return {};
    return {value_->consumers, static_cast<size_t>(value_->consumer_count)};
  }

 private:
  bool has_flag(uint32_t flag) const { return value_ != nullptr && (value_->flags & flag) != 0; }

  const tessera_value* value_;
  int32_t id_;
};

// The attributes of one node; `find` looks them up.
class Attributes {
 public:
  using Find = std::function<const tessera_attribute*(const char* name)>;
  explicit Attributes(Find find) : find_(std::move(find)) {}

  const tessera_attribute* find(const char* name) const { return find_(name); }
  bool has(const char* name) const { return find_(name) != nullptr; }
  // Returns the attribute, or `otherwise` if the node has no attribute with this name and kind.
  int64_t get_int(const char* name, int64_t otherwise = 0) const {
    const tessera_attribute* found = of_kind(name, TESSERA_ATTRIBUTE_INT);
    return found == nullptr ? otherwise : found->int_value;
  }
  float get_float(const char* name, float otherwise = 0) const {
    const tessera_attribute* found = of_kind(name, TESSERA_ATTRIBUTE_FLOAT);
    return found == nullptr ? otherwise : found->float_value;
  }
  std::string get_string(const char* name, const std::string& otherwise = "") const {
    const tessera_attribute* found = of_kind(name, TESSERA_ATTRIBUTE_STRING);
    return found == nullptr ? otherwise : found->string_value;
  }
  std::vector<int64_t> get_ints(const char* name, std::vector<int64_t> otherwise = {}) const {
    const tessera_attribute* found = of_kind(name, TESSERA_ATTRIBUTE_INTS);
    if (found == nullptr) return otherwise;
    return {found->ints, found->ints + found->count};
  }
  std::vector<float> get_floats(const char* name) const {
    const tessera_attribute* found = of_kind(name, TESSERA_ATTRIBUTE_FLOATS);
    if (found == nullptr) return {};
    return {found->floats, found->floats + found->count};
  }
  std::vector<std::string> get_strings(const char* name) const {
    const tessera_attribute* found = of_kind(name, TESSERA_ATTRIBUTE_STRINGS);
    if (found == nullptr) return {};
    return {found->strings, found->strings + found->count};
  }

 private:
  const tessera_attribute* of_kind(const char* name, int32_t kind) const {
    const tessera_attribute* found = find_(name);
    return found != nullptr && found->kind == kind ? found : nullptr;
  }

  Find find_;
};

// The graph for which the host asks for candidates. Copying is inexpensive.
class Graph {
 public:
  Graph(const tessera_host* host, const tessera_graph* graph) : host_(host), graph_(graph) {}

  int32_t node_count() const { return host_->node_count(graph_); }
  int32_t value_count() const { return host_->value_count(graph_); }
  // Throws Failure if there is no such node.
  Node node(int32_t id) const;
  // All nodes, in an order in which they can run.
  std::vector<Node> nodes() const;
  // Returns a value that is not present if no value has this id.
  Value value(int32_t id) const { return {id < 0 ? nullptr : host_->value(graph_, id), id}; }
  const tessera_attribute* attribute(int32_t node, const char* name) const {
    return host_->attribute(graph_, node, name);
  }

  // All matches of `pattern`, each as the node of each step, in the pattern's order. Throws Failure
  // if the pattern cannot be parsed.
  std::vector<std::vector<int32_t>> match(const std::string& pattern) const {
    std::vector<std::vector<int32_t>> matches;
    tessera_error error = detail::empty_error();
    const int32_t status = host_->match(
        graph_, pattern.c_str(),
        [](void* user, const int32_t* nodes, int32_t count) {
          static_cast<std::vector<std::vector<int32_t>>*>(user)->emplace_back(nodes, nodes + count);
        },
        &matches, &error);
    detail::throw_on_failure(status, error);
    return matches;
  }

  // The group as the bytes of an ONNX model.
  std::string group_as_onnx(std::span<const int32_t> nodes) const {
    std::string bytes;
    tessera_error error = detail::empty_error();
    const int32_t status =
        host_->group_as_onnx(graph_, nodes.data(), static_cast<int32_t>(nodes.size()),
                             detail::append_bytes, &bytes, &error);
    detail::throw_on_failure(status, error);
    return bytes;
  }

  // Same as group_as_onnx(), with `constants` as further inputs after those of the group. Throws
  // Failure (TESSERA_UNSUPPORTED) if the host is too old for this.
  std::string open_group_as_onnx(std::span<const int32_t> nodes,
                                 std::span<const int32_t> constants) const {
    if (host_->struct_size < offsetof(tessera_host, open_group_as_onnx) + sizeof(void*)) {
      throw Failure(TESSERA_UNSUPPORTED, "this host gives no group without its constants");
    }
    std::string bytes;
    tessera_error error = detail::empty_error();
    const int32_t status = host_->open_group_as_onnx(
        graph_, nodes.data(), static_cast<int32_t>(nodes.size()), constants.data(),
        static_cast<int32_t>(constants.size()), detail::append_bytes, &bytes, &error);
    detail::throw_on_failure(status, error);
    return bytes;
  }

  const tessera_host* host() const { return host_; }
  const tessera_graph* handle() const { return graph_; }

 private:
  const tessera_host* host_;
  const tessera_graph* graph_;
};

// One operator of the graph. Copying is inexpensive; valid as long as the graph.
class Node {
 public:
  Node(Graph graph, int32_t id) : graph_(graph), id_(id) {
    node_ = graph.host()->node(graph.handle(), id);
    if (node_ == nullptr) {
      throw Failure(TESSERA_INTERNAL, std::string("the graph has no node ") + std::to_string(id));
    }
  }

  int32_t id() const { return id_; }
  std::string_view name() const { return node_->name; }
  std::string_view op() const { return node_->op; }
  std::string_view domain() const { return node_->domain; }
  int32_t version() const { return node_->version; }
  size_t input_count() const { return static_cast<size_t>(node_->input_count); }
  size_t output_count() const { return static_cast<size_t>(node_->output_count); }
  // Returns a value that is not present if the index is past the last input or output, or if that
  // one is left out.
  Value input(size_t index) const {
    return graph_.value(index < input_count() ? node_->inputs[index] : -1);
  }
  Value output(size_t index) const {
    return graph_.value(index < output_count() ? node_->outputs[index] : -1);
  }
  bool has_bodies() const { return node_->body_count > 0; }
  bool is_random() const { return node_->is_random != 0; }
  int64_t flops() const { return node_->flops; }
  int64_t bytes() const { return node_->bytes; }
  Attributes attributes() const {
    return Attributes(
        [graph = graph_, id = id_](const char* name) { return graph.attribute(id, name); });
  }

 private:
  Graph graph_;
  int32_t id_;
  const tessera_node* node_;
};

inline Node Graph::node(int32_t id) const { return {*this, id}; }

inline std::vector<Node> Graph::nodes() const {
  std::vector<Node> all;
  all.reserve(static_cast<size_t>(node_count()));
  for (int32_t id = 0; id < node_count(); ++id) all.push_back(node(id));
  return all;
}

// A tensor in memory; see tessera_buffer.
struct Buffer : tessera_buffer {
  bool is_present() const { return data != nullptr; }
  std::span<const int64_t> sizes() const { return {dims, static_cast<size_t>(rank)}; }
  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t dim : sizes()) count *= dim;
    return count;
  }
  Type type() const { return {data_type, {dims, dims + rank}}; }
  // The elements, if they are dense. A kernel reads through inputs and writes through outputs only.
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  // Whether it is in memory of a device; if so, where.
  bool is_on_device() const { return device != 0; }
  const tessera_device_position& position() const {
    return *static_cast<const tessera_device_position*>(data);
  }
};
static_assert(sizeof(Buffer) == sizeof(tessera_buffer));

// Services of the host for a running kernel; see tessera_run_context.
class RunContext {
 public:
  explicit RunContext(tessera_run_context* context) : context_(context) {}

  int32_t threads() const { return context_->threads; }
  bool is_training() const { return context_->is_training != 0; }
  bool is_bulk() const { return context_->is_bulk != 0; }
  // Null on the host's processor. A kernel with a queue only enqueues.
  void* queue() const { return context_->queue; }
  void* workspace() const { return context_->workspace; }
  // With a queue: the workspace in memory of the device.
  const tessera_device_position& workspace_position() const {
    return *static_cast<const tessera_device_position*>(context_->workspace);
  }
  int64_t workspace_bytes() const { return context_->workspace_bytes; }
  uint64_t random_seed() const { return context_->random_seed; }

  // Calls body(begin, end) on pieces of [0, count), on the host's threads, and returns after all
  // pieces are done. If pieces throw, it throws a Failure with the text of the first exception. It
  // cannot pass on the exception object, because an exception cannot cross from host to plug-in if
  // they use different C++ libraries.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, const Body& body) {
    if (count <= 0) return;
    // A call of the host is not needed for one piece or one thread.
    if (context_->threads == 1 || count <= grain) {
      body(int64_t{0}, count);
      return;
    }
    struct Call {
      const Body& body;
      std::atomic_flag has_failed = ATOMIC_FLAG_INIT;
      int32_t status = TESSERA_OK;
      tessera_error error = detail::empty_error();
    } call{body};
    context_->parallel_for(
        context_, count, grain,
        [](void* argument, int64_t begin, int64_t end) {
          Call& made = *static_cast<Call*>(argument);
          tessera_error error = detail::empty_error();
          const int32_t status = detail::guarded(&error, [&] { made.body(begin, end); });
          if (status == TESSERA_OK || made.has_failed.test_and_set()) return;
          made.status = status;
          made.error = error;
        },
        &call);
    detail::throw_on_failure(call.status, call.error);
  }

  // Returns memory for an output whose size is known only in the run. Throws Failure
  // (TESSERA_OUT_OF_MEMORY) if there is none.
  void* allocate_output(int32_t output, std::span<const int64_t> dims) {
    void* memory =
        context_->allocate_output(context_, output, static_cast<int32_t>(dims.size()), dims.data());
    if (memory == nullptr) throw Failure(TESSERA_OUT_OF_MEMORY, "no memory for an output");
    return memory;
  }

  tessera_run_context* handle() const { return context_; }

 private:
  tessera_run_context* context_;
};

}  // namespace tessera::plugin
