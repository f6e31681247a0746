// The passes, in the order in which pipeline.cc runs them. Each is in a file of its own name. A
// comment says what the pass does, what it needs, its result, and why it has its position in the
// order.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

// Replaces ops that are compositions of others (attention, fused products and activations, skips
// with normalisations, Einsum) by the nodes that they consist of, which more libraries know.
//   Needs:  types inferred.
//   Result: none of the ops of lower_functions.h, except in forms that their replacements do not
//           state. float16 and bfloat16 are computed in float32 in between, also by ops for which
//           libraries have no kernels of these types.
//   Order:  first: the other passes see the nodes of which the op consists, and fold_constants
//           transposes and reshapes constant operands of products.
Graph lower_functions(Graph graph, const PassContext& context);

// Replaces nodes by constants if all their inputs are constant, or if their outputs are integers
// that shape inference has found (Shape of a known shape, and arithmetic on it).
//   Needs:  types and elements inferred.
//   Result: nested graphs have the constants that they read; no node with only constant inputs,
//           except random ones, those on state, those whose kernel refuses its inputs (running
//           reports the error), those that take too long, and those whose result is too large
//           (docs/decisions/0003). DequantizeLinear of weights and biases stays where a product
//           reads it beside dequantised bytes: integer kernels take these nodes together.
//   Order:  before the passes that look for constants.
Graph fold_constants(Graph graph, const PassContext& context);

// For fold_constants(): a result of up to this size is always allowed, even if the replaced inputs
// are smaller.
inline constexpr int64_t kMaxGrownBytes = int64_t{16} << 20;
// The limit for the sum of all results that are larger than their inputs.
inline constexpr int64_t kMaxGrownBytesTogether = int64_t{256} << 20;

// The most work of a node that is folded: seconds. Kernels of products are near the speed of the
// processor, others are not.
inline constexpr int64_t kMaxFoldedFlops = int64_t{1} << 32;
inline constexpr int64_t kMaxFoldedProductFlops = int64_t{1} << 38;

// Replaces an If by the branch that it takes, if its condition is constant: exported models ask in
// this way for what a shape decides.
//   Needs:  constant conditions, so after fold_constants.
//   Result: no If with a constant condition. What the branch computes of constants is folded.
//   Order:  before the other passes, which then see the nodes of the branch.
Graph inline_branches(Graph graph, const PassContext& context);

// Moves what a Loop, Scan or SequenceMap computes in each iteration from captures and constants
// alone before it, so that it is computed once.
//   Needs:  types inferred; branches that are taken for certain inlined, so after inline_branches.
//   Result: such a nested graph computes nothing of captures and constants alone, except by nodes
//           that may fail in a run (the loop may have no iteration), random ones, those whose sizes
//           are unknown, those with nested graphs of their own, and those of strings and lists.
//   Order:  before the passes that look at neighbouring nodes.
Graph hoist_invariants(Graph graph, const PassContext& context);

// Replaces a Loop or a Scan of a few iterations, whose number is known, by the nodes of its
// iterations, one after the other: these cost no runs of another plan, and are fused and laid out
// together.
//   Needs:  constant numbers and conditions, so after fold_constants.
//   Result: no Loop or Scan of 1 to 16 iterations with at most 64 nodes in all of them, except with
//           random nodes, with nested graphs of its own, or whose types do not agree.
//   Order:  after hoist_invariants, so that nothing is copied that one node can compute for all
//           iterations; before the passes that look at neighbouring nodes.
Graph unroll_loops(Graph graph, const PassContext& context);

// Removes nodes that return their first input unchanged: Identity, Dropout unless training, Cast to
// the same type, Transpose that moves nothing, and reshaping ops whose input and output have the
// same known shape.
//   Needs:  types inferred; Dropout's training_mode constant, so after fold_constants.
//   Result: no such node, except between two names that must both be kept (a graph input or a
//           constant that is also an output, two outputs).
//   Order:  before passes that match neighbouring nodes, which an identity in between would hide.
Graph remove_identities(Graph graph, const PassContext& context);

// Folds a Pad with zeros into each Conv that reads its result, as its `pads`. Networks that came
// from TensorFlow have such Pads, because its padding "SAME" may differ between the two sides.
//   Needs:  constant pads, so after fold_constants.
//   Result: no Conv reads a Pad of spatial axes by constant zeros, unless pads are negative, or the
//           Conv computes its own (auto_pad is SAME_UPPER or SAME_LOWER). A Pad that nothing else
//           reads is dead.
//   Order:  before remove_dead_nodes, and before passes that look at what a Conv reads.
Graph fold_pads(Graph graph, const PassContext& context);

// Folds a BatchNormalization into the Conv that feeds it: the convolution's weights and bias are
// multiplied by scale / sqrt(variance + epsilon), computed in double, per output channel.
//   Needs:  constant weights, bias and statistics, so after fold_constants; no identity between the
//           nodes, so after remove_identities.
//   Result: no inference-mode BatchNormalization that is the only reader of a Conv's result, unless
//           the result is an output or kept, or a folded number would not be finite. The Conv then
//           produces the output of the BatchNormalization, under its name.
//   Order:  before passes that fuse what follows a Conv.
// Statistics change during training, so the Conv is marked inference_only.
Graph fold_batch_norm(Graph graph, const PassContext& context);

// Moves a DequantizeLinear with one scale behind nodes that only copy elements (Transpose, Concat,
// MaxPool, ...), which then copy bytes, if a QuantizeLinear reads what they make; and removes a
// QuantizeLinear that gives back the integers of a DequantizeLinear before it. Results stay equal,
// bit by bit.
//   Needs:  types inferred; constant scales and zero points, so after fold_constants; no identity
//           between the nodes, so after remove_identities.
//   Result: copies of quantised tensors between two such nodes are copies of integers, unless the
//           op does not take them.
//   Order:  before remove_dead_nodes, because it leaves DequantizeLinear nodes that nothing reads.
Graph sink_dequantize(Graph graph, const PassContext& context);

// Gives each reader of a DequantizeLinear that may be computed with integers (a product, or a node
// before a QuantizeLinear) a DequantizeLinear of its own: a kernel for such a reader computes both,
// which it cannot if others need the real numbers.
//   Needs:  types inferred.
//   Result: no two such readers share a DequantizeLinear.
//   Order:  after sink_dequantize, which has fewer nodes to move then.
Graph separate_dequantize(Graph graph, const PassContext& context);

// Removes nodes whose outputs are not needed, and optional outputs at the end of a node's list that
// are not.
//   Needs:  nothing.
//   Result: every node leads to a graph output, a kept value or a state; so does its last output,
//           if it is optional and not the only one.
//   Order:  last, because the other passes detach nodes.
Graph remove_dead_nodes(Graph graph, const PassContext& context);

}  // namespace tessera
