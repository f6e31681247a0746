#include "fused_case.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "codegen/groups/fuse_nodes.h"
#include "infer/infer.h"

namespace tessera::bench {
namespace {

constexpr auto kFusedType = DataType::Float32;

// The context of a kernel that runs in a pool.
struct PoolContext {
  tessera_run_context context = {};
  ThreadPool* pool = nullptr;

  explicit PoolContext(ThreadPool& given) : pool(&given) {
    context.struct_size = sizeof(context);
    context.threads = given.threads();
    context.parallel_for = [](tessera_run_context* self, int64_t count, int64_t grain,
                              void (*body)(void*, int64_t, int64_t), void* argument) {
      reinterpret_cast<PoolContext*>(self)->pool->parallel_for(
          count, grain, [&](int64_t begin, int64_t end) { body(argument, begin, end); });
    };
  }
};

Tensor number(float value) {
  Tensor tensor(kFusedType, {});
  std::memcpy(tensor.mutable_data(), &value, sizeof(value));
  return tensor;
}

Attributes last_axis(const char* name, bool is_list) {
  Attributes attributes;
  if (is_list) {
    attributes.set(name, std::vector<int64_t>{-1});
  } else {
    attributes.set(name, int64_t{-1});
  }
  return attributes;
}

CaseGraph& gain(CaseGraph& graph) {
  return graph.input("gain", kFusedType, {kFusedColumns}, 0.5, 1).constant("eps", number(1e-5F));
}

void make_gelu(CaseGraph& graph) {
  graph.constant("root", number(std::sqrt(2.0F))).constant("one", number(1));
  graph.constant("half", number(0.5F));
  graph.node("Div", {"x", "root"}, {"a"}).node("Erf", {"a"}, {"b"});
  graph.node("Add", {"b", "one"}, {"c"}).node("Mul", {"x", "c"}, {"d"});
  graph.node("Mul", {"d", "half"}, {"y"});
}

void make_layer_norm(CaseGraph& graph) {
  gain(graph).node("ReduceMean", {"x"}, {"m"}, last_axis("axes", true));
  graph.node("Sub", {"x", "m"}, {"d"}).node("Mul", {"d", "d"}, {"q"});
  graph.node("ReduceMean", {"q"}, {"v"}, last_axis("axes", true));
  graph.node("Add", {"v", "eps"}, {"e"}).node("Sqrt", {"e"}, {"r"});
  graph.node("Div", {"d", "r"}, {"n"}).node("Mul", {"n", "gain"}, {"y"});
}

void make_rms_norm(CaseGraph& graph) {
  gain(graph).node("Mul", {"x", "x"}, {"q"});
  graph.node("ReduceMean", {"q"}, {"m"}, last_axis("axes", true));
  graph.node("Add", {"m", "eps"}, {"e"}).node("Sqrt", {"e"}, {"r"});
  graph.node("Div", {"x", "r"}, {"n"}).node("Mul", {"n", "gain"}, {"y"});
}

// Alternately multiplies by 0.5 and adds 0.5.
void make_chain(CaseGraph& graph) {
  constexpr int kNodes = 1100;
  graph.constant("half", number(0.5F));
  std::string last = "x";
  for (int node = 0; node < kNodes; ++node) {
    const std::string next = node + 1 == kNodes ? "y" : "v" + std::to_string(node);
    graph.node(node % 2 == 0 ? "Mul" : "Add", {last, "half"}, {next});
    last = next;
  }
}

FusedCase function(const std::string& op) {
  return {op, [op](CaseGraph& graph) { graph.node(op, {"x"}, {"y"}); }};
}

}  // namespace

std::vector<FusedCase> fused_cases() {
  return {
      {"2 * x + 3",
       [](CaseGraph& graph) {
         graph.constant("two", number(2)).constant("three", number(3));
         graph.node("Mul", {"x", "two"}, {"a"}).node("Add", {"a", "three"}, {"y"});
       }},
      {"gelu", make_gelu},
      {"silu",
       [](CaseGraph& graph) {
         graph.node("Sigmoid", {"x"}, {"s"}).node("Mul", {"x", "s"}, {"y"});
       }},
      {"softmax",
       [](CaseGraph& graph) {
         graph.constant("half", number(0.5F)).node("Mul", {"x", "half"}, {"a"});
         graph.node("Softmax", {"a"}, {"y"}, last_axis("axis", false));
       }},
      {"layer norm", make_layer_norm},
      {"rms norm", make_rms_norm},
      {"mish",
       [](CaseGraph& graph) {
         graph.node("Softplus", {"x"}, {"a"}).node("Tanh", {"a"}, {"b"});
         graph.node("Mul", {"x", "b"}, {"y"});
       }},
      {"1100 in a row", make_chain},
      function("Tanh"),
      function("Exp"),
      function("Erf"),
  };
}

FusedRun::FusedRun(const ops::Registry& registry, const FusedCase& wanted, int64_t bytes,
                   const std::shared_ptr<jit::KernelStore>& store) {
  constexpr int kOpset = 17;
  CaseGraph made(registry, kOpset);
  made.input("x", kFusedType, dims_of(bytes, 4, {kFusedColumns}), wanted.low, wanted.high);
  wanted.make(made);
  made.output("y");
  const Graph graph = infer_types(made.graph(), registry, Log());
  std::vector<NodeId> nodes;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    nodes.push_back(NodeId(static_cast<int>(node)));
  }
  codegen::FusedNodes fused = codegen::fuse_nodes(codegen::FusionGraph(graph), nodes);
  if (!fused.group) throw std::runtime_error(wanted.name + " " + fused.refusal);
  group_ = std::make_shared<const plugin::FusedGroup>(*std::move(fused.group));
  kernel_ = jit::build_fused_kernel(group_, "", store);
  const auto add_buffers = [&](const std::vector<int32_t>& values,
                               std::vector<plugin::Buffer>& buffers) {
    for (const int32_t id : values) {
      const Value& value = graph[ValueId(id)];
      const auto fed = made.fed().find(value.name);
      Tensor& tensor = memory_.emplace_back(kFusedType, dims_from(*value.type.shape));
      if (fed == made.fed().end()) {
        std::memset(tensor.mutable_data(), 0, static_cast<size_t>(tensor.bytes()));
      } else {
        std::memcpy(tensor.mutable_data(), fed->second.data(), static_cast<size_t>(tensor.bytes()));
      }
      plugin::Buffer& buffer = buffers.emplace_back();
      buffer.data = tensor.mutable_data();
      buffer.bytes = tensor.bytes();
      buffer.data_type = static_cast<int32_t>(kFusedType);
      buffer.request = TESSERA_REQUEST_WRITE;
      bytes_ += tensor.bytes();
    }
  };
  add_buffers(group_->inputs, inputs_);
  add_buffers(group_->outputs, outputs_);
}

void FusedRun::run(ThreadPool& pool) {
  PoolContext context(pool);
  plugin::RunContext run(&context.context);
  kernel_->run(run, inputs_, outputs_);
}

}  // namespace tessera::bench
