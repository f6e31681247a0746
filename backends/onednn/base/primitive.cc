#include "base/primitive.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/formats.h"
#include "base/primitive_runner.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Buffer;
using plugin::Failure;
using plugin::RunContext;
using plugin::Value;

namespace {

// For smaller copies, a second thread is not worth it.
constexpr int64_t kCopyGrainBytes = int64_t{1} << 18;

// When the first sgemm of the library runs in a process, it generates ten functions of 320 KiB,
// which takes this long.
constexpr double kSecondsToBuildSgemm = 0.03;

// Generates them now, when a kernel is built, so that no run waits.
void build_sgemm() {
  const float one = 1;
  float product = 0;
  dnnl::sgemm('N', 'N', 1, 1, 1, 1, &one, 1, &one, 1, 0, &product, 1);
}

void copy_bytes(RunContext& context, const Buffer& from, const Buffer& to) {
  context.parallel_for(to.bytes, kCopyGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to.data) + begin, static_cast<const char*>(from.data) + begin,
                static_cast<size_t>(end - begin));
  });
}

// Reorders one tensor; the caller owns its memory.
void reorder(const dnnl::engine& engine, const memory::desc& from_desc, void* from,
             const memory::desc& to_desc, void* to) {
  memory source(from_desc, engine, from);
  memory target(to_desc, engine, to);
  dnnl::stream stream(engine);
  dnnl::reorder(source, target).execute(stream, source, target);
}

}  // namespace

class PrimitiveOffer::PrimitiveKernel : public plugin::Kernel {
 public:
  PrimitiveKernel(const dnnl::primitive_desc_base& description, std::vector<Argument> arguments,
                  int32_t added_input)
      : arguments_(std::move(arguments)),
        added_input_(added_input),
        runner_(description, runner_arguments(arguments_)) {}

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(runner_.workspace_bytes());
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (added_input_ >= 0) {
      const Buffer& operand = inputs[static_cast<size_t>(added_input_)];
      const bool is_held =
          outputs.back().request == TESSERA_REQUEST_ADD || operand.data == outputs.back().data;
      if (!is_held) copy_bytes(context, operand, outputs.back());
    }
    const auto address_of = [&](size_t position) -> void* {
      Argument& argument = arguments_[position];
      if (argument.port < 0) return argument.kept.data();
      const std::span<const Buffer> buffers = argument.is_output ? outputs : inputs;
      return buffers[static_cast<size_t>(argument.port)].data;
    };
    runner_.execute(address_of, context.workspace());
  }

 private:
  static std::vector<PrimitiveRunner::Argument> runner_arguments(
      const std::vector<Argument>& arguments) {
    std::vector<PrimitiveRunner::Argument> all;
    for (const Argument& argument : arguments) all.push_back({argument.index, argument.desc});
    return all;
  }

  std::vector<Argument> arguments_;
  int32_t added_input_;
  PrimitiveRunner runner_;
};

PrimitiveOffer::PrimitiveOffer(std::vector<int32_t> nodes,
                               const dnnl::primitive_desc_base& description)
    : description_(description) {
  std::sort(nodes.begin(), nodes.end());
  candidate_.nodes = std::move(nodes);
}

int32_t PrimitiveOffer::input_port(const Value& value, const char* layout) {
  for (size_t i = 0; i < candidate_.inputs.size(); ++i) {
    const plugin::InputPort& port = candidate_.inputs[i];
    if (port.value != value.id()) continue;
    if (port.layout != layout || port.pack) {
      throw Failure(TESSERA_UNSUPPORTED, "needs '" + value.name() + "' in two formats");
    }
    return static_cast<int32_t>(i);
  }
  plugin::InputPort port;
  port.value = value.id();
  port.layout = layout;
  // oneDNN's loads need no alignment; otherwise the host would copy large arrays of NumPy.
  if (port.layout == TESSERA_LAYOUT_DEFAULT) {
    port.alignment_bytes = plugin::element_bytes(value.type().data_type);
  }
  candidate_.inputs.push_back(std::move(port));
  return static_cast<int32_t>(candidate_.inputs.size() - 1);
}

void PrimitiveOffer::read(int argument, const Value& value, const memory::desc& desc) {
  read_as(argument, value, desc, layout_of(desc));
}

void PrimitiveOffer::read_as(int argument, const Value& value, const memory::desc& desc,
                             const char* layout) {
  arguments_.push_back({argument, desc, false, input_port(value, layout), {}});
}

void PrimitiveOffer::read_packed(int argument, const Value& value, const memory::desc& stored,
                                 const memory::desc& wanted) {
  if (stored == wanted) {
    read_as(argument, value, wanted, TESSERA_LAYOUT_DEFAULT);
    return;
  }
  const std::optional<std::string> text = format_text(wanted);
  if (!value.is_constant()) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "'" + value.name() + "' is not constant, so it cannot be packed");
  }
  if (!text) throw Failure(TESSERA_UNSUPPORTED, "needs weights in a format private to oneDNN");
  // The packed bytes depend on how the weights were stored.
  const std::string id = "onednn:" + format_text(stored).value_or("") + ":" + *text;
  read_packed(argument, value, wanted, id,
              [stored, wanted, engine = description_.get_engine()](const Buffer& from, void* to) {
                reorder(engine, stored, from.data, wanted, to);
              });
}

void PrimitiveOffer::read_packed(int argument, const Value& value, const memory::desc& wanted,
                                 const std::string& id,
                                 std::function<void(const Buffer& from, void* to)> pack) {
  plugin::Pack made;
  made.id = id;
  made.bytes = static_cast<int64_t>(wanted.get_size());
  made.pack = [pack = std::move(pack)](RunContext& /*context*/, const Buffer& from, void* to) {
    pack(from, to);
  };
  const size_t ports = candidate_.inputs.size();
  const int32_t port = input_port(value, TESSERA_LAYOUT_DEFAULT);
  if (candidate_.inputs.size() == ports) {
    throw Failure(TESSERA_UNSUPPORTED, "needs '" + value.name() + "' in two formats");
  }
  candidate_.inputs[static_cast<size_t>(port)].pack = std::move(made);
  arguments_.push_back({argument, wanted, false, port, {}});
}

void PrimitiveOffer::keep(int argument, const memory::desc& desc, std::vector<float> numbers) {
  arguments_.push_back({argument, desc, false, -1, std::move(numbers)});
}

void PrimitiveOffer::ignore(const Value& value) {
  // Constants need no port.
  if (!value.is_constant()) input_port(value, TESSERA_LAYOUT_DEFAULT);
}

void PrimitiveOffer::write(int argument, const Value& value, const memory::desc& desc) {
  write_as(argument, value, desc, layout_of(desc));
}

void PrimitiveOffer::write_as(int argument, const Value& value, const memory::desc& desc,
                              const char* layout) {
  plugin::OutputPort port;
  port.value = value.id();
  port.layout = layout;
  candidate_.outputs.push_back(std::move(port));
  const auto last = static_cast<int32_t>(candidate_.outputs.size() - 1);
  arguments_.push_back({argument, desc, true, last, {}});
}

void PrimitiveOffer::allow_in_place(const Value& value) {
  plugin::OutputPort& output = candidate_.outputs.back();
  output.requests |= TESSERA_REQUEST_IN_PLACE;
  output.in_place_input = input_port(value, output.layout.c_str());
}

void PrimitiveOffer::add_to(const Value& value) {
  plugin::OutputPort& output = candidate_.outputs.back();
  output.requests |= TESSERA_REQUEST_ADD;
  for (const plugin::InputPort& port : candidate_.inputs) {
    if (port.value == value.id()) {
      throw Failure(TESSERA_INTERNAL, "would read '" + value.name() + "' while adding to it");
    }
  }
  added_input_ = input_port(value, output.layout.c_str());
  output.in_place_input = added_input_;
}

plugin::Candidate PrimitiveOffer::candidate(double seconds, const std::string& prefix) {
  candidate_.algorithm = prefix + description_.impl_info_str();
  const bool uses_sgemm = candidate_.algorithm.find("gemm:jit") != std::string::npos;
  if (uses_sgemm) candidate_.build_seconds = kSecondsToBuildSgemm;
  candidate_.workspace_bytes = static_cast<int64_t>(description_.scratchpad_desc().get_size());
  candidate_.optimistic_seconds = seconds;
  candidate_.build = [description = description_, arguments = arguments_,
                      added_input = added_input_,
                      uses_sgemm](const plugin::BuildOptions& /*options*/) {
    if (uses_sgemm) build_sgemm();
    return std::make_unique<PrimitiveKernel>(description, arguments, added_input);
  };
  return candidate_;
}

}  // namespace tessera::onednn
