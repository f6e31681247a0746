#include "copy/copy_offer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "base/grain.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Pieces of work for each thread, so that a thread that starts late leaves work to others.
constexpr int64_t kPiecesPerThread = 8;
// The number of copies that are planned and run at once for other sizes than those proposed: more
// would need much of the stack.
constexpr size_t kBatch = 8;

// What a kernel keeps of an offer.
struct CopyTask {
  DescribeCopies describe;
  StorageOrder input_order;
  StorageOrder output_order;
  std::vector<plugin::Type> inputs;  // by port, as proposed
  std::vector<plugin::Type> outputs;
  size_t data_inputs = 0;  // the other ports come after these
  int64_t element_bytes = 1;
  bool is_same = false;
  bool reads_ports = false;

  void describe_for(std::span<const Buffer> from, std::span<const Buffer> to,
                    const AddCopy& add) const {
    describe(CopyPorts(input_order, output_order, from, to), add);
  }
};

int64_t largest_bytes(std::span<const Buffer> buffers, int64_t element_bytes) {
  int64_t largest = 0;
  for (const Buffer& buffer : buffers) {
    largest = std::max(largest, buffer.elements() * element_bytes);
  }
  return largest;
}

// A copy for known sizes.
struct PlannedCopy {
  StridedCopy copy;
  size_t input = 0;  // ports
  size_t output = 0;
  int64_t from_bytes = 0;  // where it begins in the ports
  int64_t to_bytes = 0;
  int64_t end = 0;  // units of all copies up to its end
};

// How threads share the units of several copies.
struct Schedule {
  int64_t units = 0;
  int64_t grain = 1;
  bool is_even = true;  // all copies have the same number of units
};

Schedule schedule_of(std::span<const PlannedCopy> copies, int64_t threads) {
  Schedule schedule;
  if (copies.empty()) return schedule;
  schedule.units = copies.back().end;
  schedule.grain = schedule.units / (threads * kPiecesPerThread);
  for (const PlannedCopy& planned : copies) {
    schedule.grain = std::max(schedule.grain, planned.copy.units_of(kGrainBytes));
    if (planned.copy.units() != copies.front().copy.units()) schedule.is_even = false;
  }
  return schedule;
}

class CopyKernel : public plugin::Kernel {
 public:
  CopyKernel(CopyTask task, int32_t threads)
      : task_(std::move(task)), threads_(std::max(threads, 1)) {
    if (task_.reads_ports) return;
    const std::vector<Buffer> inputs = buffers_of(task_.inputs);
    const std::vector<Buffer> outputs = buffers_of(task_.outputs);
    sizes_ = ProposedSizes(std::span(inputs).first(task_.data_inputs), outputs);
    const int64_t output_bytes = largest_bytes(outputs, task_.element_bytes);
    task_.describe_for(inputs, outputs, [&](const PortCopy& port_copy) {
      const int64_t before = copies_.empty() ? 0 : copies_.back().end;
      copies_.push_back(planned(port_copy, output_bytes, before));
    });
    schedule_ = schedule_of(copies_, threads_);
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (task_.is_same && inputs[0].data == outputs[0].data) return;
    if (!task_.reads_ports && sizes_.are_those_of(inputs.first(task_.data_inputs), outputs)) {
      return run_planned(context, copies_, schedule_, inputs, outputs);
    }
    // Most ops are one copy.
    if (copies_.size() <= 1) return run_other<1>(context, inputs, outputs);
    run_other<kBatch>(context, inputs, outputs);
  }

 private:
  PlannedCopy planned(const PortCopy& port_copy, int64_t output_bytes, int64_t before) const {
    PlannedCopy result;
    result.copy = {port_copy.nest, task_.element_bytes, kernels_, output_bytes};
    result.input = port_copy.input;
    result.output = port_copy.output;
    result.from_bytes = port_copy.from_offset * task_.element_bytes;
    result.to_bytes = port_copy.to_offset * task_.element_bytes;
    result.end = before + result.copy.units();
    return result;
  }

  // Strided inputs and other sizes need other copies than those planned. Planning takes far less
  // time than copying.
  template <size_t kCopies>
  void run_other(RunContext& context, std::span<const Buffer> inputs,
                 std::span<const Buffer> outputs) const {
    const int64_t output_bytes = largest_bytes(outputs, task_.element_bytes);
    std::array<PlannedCopy, kCopies> batch;
    size_t count = 0;
    const auto run_batch = [&] {
      const std::span<const PlannedCopy> copies(batch.data(), count);
      run_planned(context, copies, schedule_of(copies, threads_), inputs, outputs);
      count = 0;
    };
    const auto add = [&](const PortCopy& port_copy) {
      if (count == kCopies) run_batch();
      batch[count] = planned(port_copy, output_bytes, count == 0 ? 0 : batch[count - 1].end);
      ++count;
    };
    // A reference to a function is kept in AddCopy itself, without allocation.
    task_.describe_for(inputs, outputs, std::ref(add));
    run_batch();
  }

  static void run_planned(RunContext& context, std::span<const PlannedCopy> copies,
                          const Schedule& schedule, std::span<const Buffer> inputs,
                          std::span<const Buffer> outputs) {
    if (schedule.units == 0) return;
    context.parallel_for(schedule.units, schedule.grain, [&](int64_t begin, int64_t end) {
      if (schedule.is_even && copies.size() > 1) {
        return run_interleaved(begin, end, copies, inputs, outputs);
      }
      size_t index = 0;
      while (copies[index].end <= begin) ++index;
      for (; begin < end; ++index) {
        const PlannedCopy& planned = copies[index];
        const int64_t first = planned.end - planned.copy.units();
        const int64_t last = std::min(end, planned.end);
        if (last <= begin) continue;
        planned.copy.run(begin - first, last - first, source_of(planned, inputs),
                         target_of(planned, outputs));
        begin = last;
      }
    });
  }

  // Copies that write parts of one tensor run in turns, so that neighbouring parts are written
  // while their cache lines are still cached.
  static void run_interleaved(int64_t begin, int64_t end, std::span<const PlannedCopy> copies,
                              std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
    const auto count = static_cast<int64_t>(copies.size());
    for (int64_t position = begin; position < end; ++position) {
      const PlannedCopy& planned = copies[static_cast<size_t>(position % count)];
      planned.copy.run(position / count, position / count + 1, source_of(planned, inputs),
                       target_of(planned, outputs));
    }
  }

  static const char* source_of(const PlannedCopy& planned, std::span<const Buffer> inputs) {
    return inputs[planned.input].as<const char>() + planned.from_bytes;
  }

  static char* target_of(const PlannedCopy& planned, std::span<const Buffer> outputs) {
    return outputs[planned.output].as<char>() + planned.to_bytes;
  }

  CopyTask task_;
  int64_t threads_;
  CopyKernels kernels_;
  ProposedSizes sizes_;
  std::vector<PlannedCopy> copies_;  // for the proposed sizes, dense
  Schedule schedule_;
};

// The form of the first copy. Throws Failure if one of them cannot be run.
std::string algorithm_of(const CopyTask& task) {
  const std::vector<Buffer> inputs = buffers_of(task.inputs);
  const std::vector<Buffer> outputs = buffers_of(task.outputs);
  const int64_t output_bytes = largest_bytes(outputs, task.element_bytes);
  std::string name;
  task.describe_for(inputs, outputs, [&](const PortCopy& port_copy) {
    if (!name.empty()) return;
    name = StridedCopy(port_copy.nest, task.element_bytes, CopyKernels(), output_bytes).form_name();
  });
  return name;
}

}  // namespace

void offer_copies(ProposeContext& context, const Node& node, const CopyOffer& offer) {
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  CopyTask task = {.describe = offer.describe,
                   .input_order = storage_order(offer.input_layout),
                   .output_order = storage_order(offer.output_layout),
                   .inputs = {},
                   .outputs = {},
                   .data_inputs = offer.inputs.size(),
                   .element_bytes = plugin::element_bytes(offer.inputs.front().type().data_type),
                   .is_same = offer.is_same,
                   .reads_ports = offer.reads_ports};
  double bytes = 0;
  for (const Value& input : offer.inputs) {
    candidate.inputs.push_back({.value = input.id(),
                                .layout = offer.input_layout,
                                .accepts_strides = offer.input_layout == TESSERA_LAYOUT_DEFAULT,
                                .alignment_bytes = task.element_bytes});
  }
  add_other_ports(node, candidate);
  for (const plugin::InputPort& port : candidate.inputs) {
    task.inputs.push_back(context.graph().value(port.value).type());
  }
  for (const Value& output : offer.outputs) {
    plugin::OutputPort port;
    port.value = output.id();
    port.layout = offer.output_layout;
    if (offer.is_same) {
      port.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
      port.in_place_input = 0;
    }
    candidate.outputs.push_back(port);
    task.outputs.push_back(output.type());
    bytes += 2 * static_cast<double>(output.type().dense_bytes());
  }
  candidate.algorithm = algorithm_of(task);
  candidate.built_for = offer.built_for;
  candidate.optimistic_seconds = context.optimistic_seconds(0, bytes);
  candidate.build = [task = std::move(task)](const plugin::BuildOptions& options) {
    return std::make_unique<CopyKernel>(task, options.threads);
  };
  context.add(std::move(candidate));
}

std::vector<Buffer> buffers_of(const std::vector<plugin::Type>& types) {
  std::vector<Buffer> buffers;
  for (const plugin::Type& type : types) {
    Buffer buffer = {};
    buffer.data_type = type.data_type;
    buffer.rank = static_cast<int32_t>(type.dims.size());
    buffer.dims = type.dims.data();
    buffers.push_back(buffer);
  }
  return buffers;
}

ProposedSizes::ProposedSizes(std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  for (const std::span<const Buffer> buffers : {inputs, outputs}) {
    for (const Buffer& buffer : buffers) {
      dims_.insert(dims_.end(), buffer.sizes().begin(), buffer.sizes().end());
    }
  }
}

bool ProposedSizes::are_those_of(std::span<const Buffer> inputs,
                                 std::span<const Buffer> outputs) const {
  const int64_t* proposed = dims_.data();
  const auto is_proposed = [&proposed](const Buffer& buffer) {
    if (buffer.strides != nullptr) return false;
    for (const int64_t dim : buffer.sizes()) {
      if (dim != *proposed++) return false;
    }
    return true;
  };
  return std::all_of(inputs.begin(), inputs.end(), is_proposed) &&
         std::all_of(outputs.begin(), outputs.end(), is_proposed);
}

void add_other_ports(const Node& node, plugin::Candidate& candidate) {
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Value value = node.input(index);
    if (!value.is_present() || value.is_constant()) continue;
    const bool is_listed = std::ranges::any_of(
        candidate.inputs, [&](const auto& port) { return port.value == value.id(); });
    if (is_listed) continue;
    candidate.inputs.push_back(
        {.value = value.id(), .alignment_bytes = plugin::element_bytes(value.type().data_type)});
  }
}

std::optional<std::string> explain_uncopyable(const Value& value) {
  if (!value.is_present()) return "takes nodes with all inputs and outputs present only";
  const plugin::Type type = value.type();
  if (!type.is_known()) return "takes tensors of known shape only";
  if (plugin::element_bytes(type.data_type) == 0) return "does not take strings";
  return std::nullopt;
}

std::optional<std::string> explain_uncopyable(const Node& node) {
  if (auto reason = explain_uncopyable(node.input(0))) return reason;
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (auto reason = explain_uncopyable(node.output(index))) return reason;
  }
  return std::nullopt;
}

size_t port_of(const plugin::Candidate& candidate, const Value& value) {
  size_t port = 0;
  while (candidate.inputs[port].value != value.id()) ++port;
  return port;
}

}  // namespace tessera::native
