// Graphs for families of shapes: whatever sizes the inputs have, the nodes are the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compile/compile.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "plan/plan_family.h"
#include "tessera/tensor.h"

namespace tessera {

// A graph whose values have the types that follow from some shapes of its inputs, and in which
// nothing else was done with these sizes. Small tensors that sizes decide (the list of a Reshape,
// the limits of a Slice, the factor of a Resize) are not computed by nodes: they are inputs, which
// whoever runs the graph passes together with those of the model.
struct OpenGraph {
  Graph graph;
  size_t model_inputs = 0;  // of graph.inputs; the others come from ValueSizes
};

// Returns the graph of `model` for inputs of these shapes, or why it has no family of shapes: it
// has inputs that are no tensors. Nested graphs stay as they are in `model`, and what they give has
// the sizes that are known there. Throws as bind_graph() does.
std::variant<OpenGraph, std::string> open_graph(
    const LoadedModel& model, const std::map<std::string, std::vector<int64_t>>& shapes,
    const std::vector<std::string>& fetch, const ops::Registry& registry, ThreadPool& pool,
    const Log& log);

// Computes the sizes of all values of an open graph for other sizes of its inputs, by the type
// rules of the ops. Not thread-safe.
class ValueSizes {
 public:
  // Keeps what the type rules read of `loaded`, which has no large weights. `registry` must outlive
  // this. `open` was made of `loaded`.
  ValueSizes(const Graph& loaded, const OpenGraph& open, const ops::Registry& registry);
  ValueSizes(ValueSizes&&) = default;
  ValueSizes& operator=(ValueSizes&&) = default;

  // Sets the sizes for these dimensions of the model's inputs. False if they contradict what the
  // model declares, or if a type rule refuses them or does not know a size; the sizes are undefined
  // then.
  bool set(std::span<const std::vector<int64_t>> inputs);

  // By value of the open graph; -1 if a size is known only in the run.
  std::span<const std::vector<int64_t>> dims() const { return dims_; }
  // The tensors of the inputs that are not inputs of the model, in order. The next set() may change
  // their elements.
  std::span<const Tensor> inputs() const { return inputs_; }

 private:
  // A node whose types depend on the inputs of the model.
  struct OpenNode {
    size_t index = 0;
    const ops::Op* op = nullptr;
    std::vector<ops::InferInput> inputs;
    std::vector<size_t> open_inputs;  // those that may change
    size_t kind = 0;                  // nodes of one kind do the same with their open inputs
    uint64_t constants_read = 0;      // when its rule was asked last
  };

  void add_open_node(size_t index, const ops::Registry& registry);
  bool are_alike(const OpenNode& left, const OpenNode& right) const;
  size_t kind_of(const OpenNode& open);
  bool infer(OpenNode& open);
  // Computes the elements of what the node gives, if they follow from known elements.
  void follow(const OpenNode& open);
  // A node that set() has inferred, and that has the same inputs; null if there is none.
  const OpenNode* find_same(const OpenNode& open) const;
  static bool have_same_read_constants(const OpenNode& open, const OpenNode& other);
  bool update();

  // The value that has the sizes and elements of this one.
  ValueId with_sizes(ValueId id) const { return sizes_of_[static_cast<size_t>(id.index)]; }

  Graph graph_;                      // the loaded graph; large constants have a type only
  std::vector<bool> must_be_known_;  // by value of `graph_`: its sizes are known before the run
  std::vector<ValueId> sizes_of_;    // by value of `graph_`; see with_sizes()
  std::vector<std::optional<Shape>> declared_;  // by input of the model
  std::vector<bool> is_read_;                   // the same
  std::vector<OpenNode> open_nodes_;            // in order
  std::vector<std::vector<size_t>> inferred_;   // by kind: the open nodes that set() has inferred
  std::vector<size_t> kinds_;                   // by kind: an open node
  std::vector<ValueId> source_;                 // by value of the open graph: the value of `graph_`
  std::vector<ValueId> passed_;                 // the values of `graph_` that are passed as inputs
  std::vector<std::vector<int64_t>> dims_;
  std::vector<Tensor> inputs_;
};

// The shapes for which a family is wanted: the dimensions of the model's inputs in a run, and those
// in other runs, which the plan should serve, too.
struct FamilyShapes {
  std::vector<std::vector<int64_t>> dims;
  std::vector<std::vector<std::vector<int64_t>>> others;
};

// By value of the open graph: the dimensions that differ among these shapes. Ignores shapes that
// type rules refuse.
VaryingDims varying_dims(ValueSizes& sizes, const FamilyShapes& shapes);

// Shapes near these of which few sizes that a node reads or gives are equal by chance: at other
// shapes they differ. A plan that was made for them relies on few equal sizes, so its family is
// large. `shapes` themselves if type rules refuse all others.
std::map<std::string, std::vector<int64_t>> typical_shapes(
    const Graph& loaded, const std::map<std::string, std::vector<int64_t>>& shapes,
    const ops::Registry& registry);

}  // namespace tessera
