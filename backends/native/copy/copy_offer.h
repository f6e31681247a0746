// Candidates for ops that only copy elements, as strided copies from inputs to outputs. An op
// describes its copies for sizes of its ports: those of the proposal, and later those of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "copy/storage_axes.h"
#include "copy/strided_copy.h"
#include "layout/strided_layout.h"
#include "tessera/backend.h"

namespace tessera::native {

// The buffers of a candidate, for which its copies are described.
class CopyPorts {
 public:
  CopyPorts(const StorageOrder& input_order, const StorageOrder& output_order,
            std::span<const plugin::Buffer> inputs, std::span<const plugin::Buffer> outputs)
      : input_order_(input_order),
        output_order_(output_order),
        inputs_(inputs),
        outputs_(outputs) {}

  StorageAxes input(size_t port) const { return storage_axes(input_order_, inputs_[port]); }
  StorageAxes output(size_t port) const { return storage_axes(output_order_, outputs_[port]); }
  // When a candidate is proposed, the buffers have no data.
  const plugin::Buffer& input_buffer(size_t port) const { return inputs_[port]; }
  const plugin::Buffer& output_buffer(size_t port) const { return outputs_[port]; }

 private:
  StorageOrder input_order_;
  StorageOrder output_order_;
  std::span<const plugin::Buffer> inputs_;
  std::span<const plugin::Buffer> outputs_;
};

// A strided copy from an input port to an output port. strided_copy.h runs it.
struct PortCopy {
  size_t input = 0;  // ports
  size_t output = 0;
  LoopNest nest;
  int64_t from_offset = 0;  // in elements
  int64_t to_offset = 0;
};

// Passes the copies for the sizes of `ports` to `add`, in an order and number that do not depend on
// the sizes. Allocates nothing, because it may be called in a run.
using AddCopy = std::function<void(const PortCopy& port_copy)>;
using DescribeCopies = std::function<void(const CopyPorts& ports, const AddCopy& add)>;

// The description from which a candidate is made. Inputs of the node that are neither listed nor
// constant have row-major ports after those of `inputs`, in the node's order.
struct CopyOffer {
  std::string input_layout = TESSERA_LAYOUT_DEFAULT;
  std::string output_layout = TESSERA_LAYOUT_DEFAULT;
  std::vector<plugin::Value> inputs = {};  // one port each
  std::vector<plugin::Value> outputs = {};
  DescribeCopies describe = {};
  std::vector<tessera_built_for> built_for = {};  // what `describe` and the layouts rely on
  bool is_same = false;      // the output has the bytes of the input, which it may overwrite
  bool reads_ports = false;  // the copies depend on elements of an input, which only a run knows
};

// Offers a candidate that runs these copies. Row-major inputs may be strided.
void offer_copies(plugin::ProposeContext& context, const plugin::Node& node,
                  const CopyOffer& offer);

// Buffers with the sizes of these values and without data, which live as long as `types`.
std::vector<plugin::Buffer> buffers_of(const std::vector<plugin::Type>& types);

// The sizes for which a kernel is prepared.
class ProposedSizes {
 public:
  ProposedSizes() = default;
  ProposedSizes(std::span<const plugin::Buffer> inputs, std::span<const plugin::Buffer> outputs);

  // Whether these buffers have the proposed sizes and are dense. There are as many of them, of the
  // same ranks, as were proposed.
  bool are_those_of(std::span<const plugin::Buffer> inputs,
                    std::span<const plugin::Buffer> outputs) const;

 private:
  std::vector<int64_t> dims_;  // of all ports
};

// Adds row-major ports for the inputs of `node` that are no constants and have none yet: the host
// passes each to a port, even if only the sizes of the output depend on it.
void add_other_ports(const plugin::Node& node, plugin::Candidate& candidate);

// The reason why the elements of `value` cannot be copied; nullopt if they can.
std::optional<std::string> explain_uncopyable(const plugin::Value& value);
// Checks the first input and all outputs of a node, which have one element type.
std::optional<std::string> explain_uncopyable(const plugin::Node& node);

// The port of `candidate` that reads `value`. Requires that there is one.
size_t port_of(const plugin::Candidate& candidate, const plugin::Value& value);

}  // namespace tessera::native
