#include "test_graph.h"

#include <dlfcn.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "codegen/groups/fuse_nodes.h"

namespace tessera::opencl {

namespace {

constexpr char kGuard = '\x5a';

// Keeps what the C structs of a graph point to.
struct GraphStorage {
  tessera_graph graph;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
};

std::unique_ptr<GraphStorage> graph_of(const TestNode& node) {
  auto storage = std::make_unique<GraphStorage>();
  tessera_graph& graph = storage->graph;
  for (const TestTensor& input : node.inputs) {
    const auto id = static_cast<int32_t>(graph.values.size());
    storage->inputs.push_back(input.data_type == TESSERA_UNDEFINED ? -1 : id);
    tessera_value value = {.struct_size = sizeof(tessera_value), .name = "input", .producer = -1};
    value.type = {input.data_type, static_cast<int32_t>(input.dims.size()), input.dims.data()};
    value.flags = input.is_constant ? TESSERA_VALUE_CONSTANT : TESSERA_VALUE_INPUT;
    if (input.is_constant) value.constant = input.bytes.data();
    graph.values.push_back(value);
  }
  for (const plugin::Type& type : node.outputs) {
    storage->outputs.push_back(static_cast<int32_t>(graph.values.size()));
    tessera_value value = {.struct_size = sizeof(tessera_value),
                           .flags = TESSERA_VALUE_NEEDED,
                           .name = "output",
                           .type = type.view()};
    graph.values.push_back(value);
  }
  for (const auto& [name, value] : node.attributes) {
    tessera_attribute attribute = {.struct_size = sizeof(tessera_attribute)};
    if (const auto* number = std::get_if<int64_t>(&value)) {
      attribute.kind = TESSERA_ATTRIBUTE_INT;
      attribute.int_value = *number;
    } else if (const auto* real = std::get_if<float>(&value)) {
      attribute.kind = TESSERA_ATTRIBUTE_FLOAT;
      attribute.float_value = *real;
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      attribute.kind = TESSERA_ATTRIBUTE_STRING;
      attribute.string_value = text->c_str();
    } else {
      const auto& list = std::get<std::vector<int64_t>>(value);
      attribute.kind = TESSERA_ATTRIBUTE_INTS;
      attribute.ints = list.data();
      attribute.count = static_cast<int32_t>(list.size());
    }
    graph.attributes[name] = attribute;
  }
  graph.node = {.struct_size = sizeof(tessera_node),
                .version = node.version,
                .name = "node",
                .op = node.op.c_str(),
                .domain = "",
                .inputs = storage->inputs.data(),
                .input_count = static_cast<int32_t>(storage->inputs.size()),
                .output_count = static_cast<int32_t>(storage->outputs.size()),
                .outputs = storage->outputs.data()};
  return storage;
}

// A graph in the form that hosts use for fused groups.
Graph host_graph(const tessera_graph& given) {
  Graph graph;
  Node node;
  node.name = "node";
  node.op = given.node.op;
  node.domain = given.node.domain;
  node.version = given.node.version;
  for (const tessera_value& value : given.values) {
    const plugin::Type type(value.type);
    const auto data_type = static_cast<DataType>(type.data_type);
    const ValueId id = {static_cast<int32_t>(graph.values.size())};
    Value made;
    made.name = value.name + std::to_string(id.index);
    made.type = tessera::Type::tensor(data_type, Shape(type.dims.begin(), type.dims.end()));
    if (value.constant != nullptr) {
      made.constant = Tensor::copy_of(data_type, type.dims, value.constant,
                                      static_cast<size_t>(type.dense_bytes()));
    }
    graph.values.push_back(std::move(made));
    const bool is_output = (value.flags & TESSERA_VALUE_NEEDED) != 0;
    (is_output ? node.outputs : node.inputs).push_back(id);
    if (is_output) graph.outputs.push_back(id);
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

// The candidates that the plug-in proposed.
struct Proposed {
  std::vector<tessera_candidate> candidates;
  std::string refusal;

  ~Proposed() {
    for (tessera_candidate& candidate : candidates) candidate.release(candidate.self);
  }
};

void propose(const tessera_backend& backend, const tessera_graph& graph, Proposed& proposed) {
  tessera_proposals proposals = {.struct_size = sizeof(tessera_proposals), .host_state = &proposed};
  proposals.add = [](tessera_proposals* receiver, const tessera_candidate* candidate) {
    static_cast<Proposed*>(receiver->host_state)->candidates.push_back(*candidate);
  };
  proposals.refuse = [](tessera_proposals* receiver, int32_t, const char* reason) {
    static_cast<Proposed*>(receiver->host_state)->refusal = reason;
  };
  const tessera_propose_options options = {.struct_size = sizeof(tessera_propose_options),
                                           .threads = 1};
  tessera_error error = plugin::detail::empty_error();
  expect_ok(backend.propose(backend.self, &graph, &options, &proposals, &error), error);
}

tessera_buffer buffer_of(const tessera_value& value, const TestBuffer& memory) {
  tessera_buffer buffer = {};
  buffer.data = const_cast<tessera_device_position*>(&memory.position());
  buffer.data_type = value.type.data_type;
  buffer.rank = value.type.rank;
  buffer.dims = value.type.dims;
  buffer.bytes = plugin::Type(value.type).dense_bytes();
  buffer.device = 1;
  buffer.request = TESSERA_REQUEST_WRITE;
  return buffer;
}

// A candidate with memory for its ports.
class CandidateRun {
 public:
  CandidateRun(const tessera_device_interface& device, void* queue,
               const tessera_candidate& candidate, const TestNode& node, const tessera_graph& graph)
      : device_(device),
        queue_(queue),
        candidate_(candidate),
        workspace_(device, queue,
                   std::string(static_cast<size_t>(candidate.workspace_bytes + 1), '\x7f')) {
    for (int32_t port = 0; port < candidate.input_count; ++port) {
      const auto value = static_cast<size_t>(candidate.inputs[port].value);
      memory_.emplace_back(device, queue, node.inputs[value].bytes);
      inputs_.push_back(buffer_of(graph.values[value], memory_.back()));
    }
    for (int32_t port = 0; port < candidate.output_count; ++port) {
      const tessera_value& value = graph.values[static_cast<size_t>(candidate.outputs[port].value)];
      const auto bytes = static_cast<size_t>(plugin::Type(value.type).dense_bytes());
      memory_.emplace_back(device, queue, std::string(bytes, '\x7f'));
      outputs_.push_back(buffer_of(value, memory_.back()));
    }
  }

  // Runs the kernel and checks all guard bytes. Releases the kernel.
  std::vector<TestTensor> run(tessera_kernel& kernel) {
    tessera_run_context context = {.struct_size = sizeof(tessera_run_context), .threads = 1};
    context.queue = queue_;
    context.workspace = const_cast<tessera_device_position*>(&workspace_.position());
    context.workspace_bytes = candidate_.workspace_bytes;
    tessera_error error = plugin::detail::empty_error();
    expect_ok(kernel.run(kernel.self, &context, inputs_.data(), outputs_.data(), &error), error);
    expect_ok(device_.synchronise_queue(device_.self, queue_, &error), error);
    kernel.release(kernel.self);
    workspace_.download();
    std::vector<TestTensor> results;
    for (size_t index = 0; index < memory_.size(); ++index) {
      std::string bytes = memory_[index].download();
      if (index < inputs_.size()) continue;
      const tessera_buffer& buffer = outputs_[index - inputs_.size()];
      results.push_back({{buffer.dims, buffer.dims + buffer.rank}, bytes, buffer.data_type});
    }
    return results;
  }

 private:
  const tessera_device_interface& device_;
  void* queue_;
  const tessera_candidate& candidate_;
  TestBuffer workspace_;
  std::deque<TestBuffer> memory_;
  std::vector<tessera_buffer> inputs_;
  std::vector<tessera_buffer> outputs_;
};

// Runs the candidate's kernel and, if it can be saved, the loaded one, which must do the same.
std::vector<TestTensor> run_candidate(const tessera_device_interface& device, void* queue,
                                      const tessera_candidate& candidate, const TestNode& node,
                                      const tessera_graph& graph) {
  CandidateRun prepared(device, queue, candidate, node, graph);
  const tessera_build_options build = {.struct_size = sizeof(tessera_build_options), .threads = 1};
  tessera_kernel kernel = {.struct_size = sizeof(tessera_kernel)};
  tessera_error error = plugin::detail::empty_error();
  expect_ok(candidate.build(candidate.self, &build, &kernel, &error), error);
  std::string saved;
  const int32_t status = kernel.save(kernel.self, plugin::detail::append_bytes, &saved, &error);
  std::vector<TestTensor> results = prepared.run(kernel);
  if (status == TESSERA_UNSUPPORTED) return results;
  expect_ok(status, error);
  tessera_kernel loaded = {.struct_size = sizeof(tessera_kernel)};
  expect_ok(candidate.load(candidate.self, saved.data(), saved.size(), &loaded, &error), error);
  const std::vector<TestTensor> again = prepared.run(loaded);
  for (size_t index = 0; index < results.size(); ++index) {
    if (results[index].bytes != again[index].bytes) {
      throw std::runtime_error("a loaded kernel computes something else");
    }
  }
  return results;
}

template <class Function>
Function plugin_function(const char* name) {
  static void* library = dlopen(TESSERA_OPENCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  void* function = dlsym(library, name);
  if (function == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<Function>(function);
}

std::vector<tessera_fused_access> views_of(const std::vector<plugin::FusedAccess>& accesses) {
  std::vector<tessera_fused_access> views;
  for (const plugin::FusedAccess& access : accesses) {
    views.push_back({access.port, access.data_type, access.is_whole ? 1 : 0, access.instruction,
                     access.offset, access.strides.data()});
  }
  return views;
}

void show(const plugin::FusedGroup& group, tessera_fused_group_visitor visitor, void* user) {
  const std::vector<tessera_fused_access> operands = views_of(group.operands);
  const std::vector<tessera_fused_access> results = views_of(group.results);
  const tessera_fused_group view = {
      .struct_size = sizeof(tessera_fused_group),
      .expression_version = TESSERA_EXPRESSION_VERSION,
      .nodes = group.nodes.data(),
      .node_count = static_cast<int32_t>(group.nodes.size()),
      .input_count = static_cast<int32_t>(group.inputs.size()),
      .inputs = group.inputs.data(),
      .outputs = group.outputs.data(),
      .output_count = static_cast<int32_t>(group.outputs.size()),
      .rank = static_cast<int32_t>(group.dims.size()),
      .dims = group.dims.data(),
      .reduced_axes = group.reduced_axes,
      .operand_count = static_cast<int32_t>(operands.size()),
      .result_count = static_cast<int32_t>(results.size()),
      .operands = operands.data(),
      .results = results.data(),
      .instructions = group.instructions.data(),
      .instruction_count = static_cast<int32_t>(group.instructions.size()),
      .reserved = 0,
      .text = group.text.c_str(),
      .flops = group.flops,
      .bytes = group.bytes};
  visitor(user, &view);
}

int32_t refuse(tessera_error* error, const std::string& reason) {
  return plugin::detail::report(error, TESSERA_UNSUPPORTED, reason.c_str());
}

void fill_host(tessera_host& host, std::map<std::string, std::string>& blobs) {
  host.struct_size = sizeof(host);
  host.contract_version = TESSERA_CONTRACT_VERSION;
  host.host_state = &blobs;
  host.node_count = [](const tessera_graph*) { return 1; };
  host.value_count = [](const tessera_graph* graph) {
    return static_cast<int32_t>(graph->values.size());
  };
  host.node = [](const tessera_graph* graph, int32_t) { return &graph->node; };
  host.value = [](const tessera_graph* graph, int32_t value) {
    return &graph->values[static_cast<size_t>(value)];
  };
  host.attribute = [](const tessera_graph* graph, int32_t,
                      const char* name) -> const tessera_attribute* {
    const auto found = graph->attributes.find(name);
    return found == graph->attributes.end() ? nullptr : &found->second;
  };
  host.find_fused_groups = [](const tessera_graph* graph, uint32_t,
                              tessera_fused_group_visitor visitor, void* user, tessera_error*) {
    if (graph->group != nullptr) show(*graph->group, visitor, user);
    return static_cast<int32_t>(TESSERA_OK);
  };
  host.fuse_nodes = [](const tessera_graph* graph, const int32_t*, int32_t, uint32_t,
                       tessera_fused_group_visitor visitor, void* user, tessera_error* error) {
    if (!graph->attributes.empty() || graph->group != nullptr) return refuse(error, "attributes");
    const Graph whole = host_graph(*graph);
    const NodeId node = {0};
    const codegen::FusedNodes fused =
        codegen::fuse_nodes(codegen::FusionGraph(whole), std::span(&node, 1));
    if (!fused.group) return refuse(error, fused.refusal);
    show(*fused.group, visitor, user);
    return static_cast<int32_t>(TESSERA_OK);
  };
  host.get_blob = [](const tessera_host* self, const char* key, tessera_bytes_visitor visitor,
                     void* user) {
    const auto& kept = *static_cast<std::map<std::string, std::string>*>(self->host_state);
    const auto found = kept.find(key);
    if (found == kept.end()) return 0;
    visitor(user, found->second.data(), found->second.size());
    return 1;
  };
  host.put_blob = [](const tessera_host* self, const char* key, const void* bytes, size_t size) {
    (*static_cast<std::map<std::string, std::string>*>(self->host_state))[key] =
        std::string(static_cast<const char*>(bytes), size);
  };
}

}  // namespace

void expect_ok(int32_t status, const tessera_error& error) {
  if (status != TESSERA_OK) throw std::runtime_error(error.message);
}

TestPlugin::TestPlugin(std::map<std::string, std::string>& blobs) {
  fill_host(host_, blobs);
  backend_.struct_size = sizeof(backend_);
  tessera_error error = plugin::detail::empty_error();
  const auto open = plugin_function<tessera_open_backend_function>(TESSERA_OPEN_BACKEND_SYMBOL);
  const int32_t status = open(&host_, &backend_, &error);
  if (status == TESSERA_UNSUPPORTED) throw NoDevice(error.message);
  expect_ok(status, error);
}

uint64_t TestPlugin::built_programs() {
  return plugin_function<uint64_t (*)()>("tessera_opencl_built_programs")();
}

TestPlugin::~TestPlugin() {
  if (backend_.release != nullptr) backend_.release(backend_.self);
}

std::map<std::string, std::vector<TestTensor>> TestPlugin::run(const TestNode& node) const {
  return run_candidates(node, graph_of(node)->graph);
}

std::vector<TestTensor> TestPlugin::run_group(const TestGroup& group) const {
  const std::unique_ptr<GraphStorage> storage = graph_of(group.node);
  storage->graph.group = &group.group;
  return run_candidates(group.node, storage->graph).at("fused");
}

std::map<std::string, std::vector<TestTensor>> TestPlugin::run_candidates(
    const TestNode& node, tessera_graph& graph) const {
  Proposed proposed;
  propose(backend_, graph, proposed);
  if (proposed.candidates.empty()) throw std::runtime_error(proposed.refusal);
  tessera_error error = plugin::detail::empty_error();
  void* queue = nullptr;
  expect_ok(device().create_queue(device().self, &queue, &error), error);
  std::map<std::string, std::vector<TestTensor>> results;
  for (const tessera_candidate& candidate : proposed.candidates) {
    // With several devices, each has candidates of its own.
    if (candidate.outputs[0].layout != std::string("row_major@opencl")) continue;
    std::vector<TestTensor>& result = results[candidate.algorithm];
    if ((candidate.flags & TESSERA_CANDIDATE_VIEW) != 0) continue;
    result = run_candidate(device(), queue, candidate, node, graph);
  }
  device().release_queue(device().self, queue);
  return results;
}

std::vector<TestTensor> TestPlugin::run_single(const TestNode& node) const {
  auto results = run(node);
  if (results.size() != 1) throw std::runtime_error("expected one candidate");
  return results.begin()->second;
}

TestBuffer::TestBuffer(const tessera_device_interface& device, void* queue,
                       const std::string& bytes)
    : device_(device), queue_(queue), size_(bytes.size()) {
  const auto guard = static_cast<size_t>(device.alignment_bytes);
  std::string all(size_ + 2 * guard, kGuard);
  std::copy(bytes.begin(), bytes.end(), all.begin() + static_cast<std::ptrdiff_t>(guard));
  tessera_error error = plugin::detail::empty_error();
  void* handle = nullptr;
  expect_ok(device.allocate(device.self, static_cast<int64_t>(all.size()), &handle, &error), error);
  const tessera_device_position whole = {handle, 0};
  position_ = {handle, device.alignment_bytes};
  expect_ok(device.copy_to_device(device.self, queue, all.data(), &whole,
                                  static_cast<int64_t>(all.size()), &error),
            error);
  expect_ok(device.synchronise_queue(device.self, queue, &error), error);
}

TestBuffer::~TestBuffer() { device_.release_memory(device_.self, position_.handle); }

std::string TestBuffer::download() const {
  const auto guard = static_cast<size_t>(position_.offset_bytes);
  std::string all(size_ + 2 * guard, '\0');
  tessera_error error = plugin::detail::empty_error();
  const tessera_device_position whole = {position_.handle, 0};
  expect_ok(device_.copy_to_host(device_.self, queue_, &whole, all.data(),
                                 static_cast<int64_t>(all.size()), &error),
            error);
  expect_ok(device_.synchronise_queue(device_.self, queue_, &error), error);
  const std::string guards(guard, kGuard);
  if (all.substr(0, guard) != guards || all.substr(guard + size_) != guards) {
    throw std::runtime_error("something was written beside a buffer");
  }
  return all.substr(guard, size_);
}

}  // namespace tessera::opencl
