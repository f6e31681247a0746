// Adapters from the C++ structs that a plug-in fills to the C structs of tessera/backend_abi.h.
// Included by tessera/backend.h; plug-in authors do not need it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/backend_device.h"
#include "tessera/backend_graph.h"
#include "tessera/backend_offer.h"

namespace tessera::plugin {

namespace detail {

inline std::span<const Buffer> buffers(const tessera_buffer* first, size_t count) {
  return {static_cast<const Buffer*>(first), count};
}

inline void fill_kernel(std::unique_ptr<Kernel> built, size_t input_count, size_t output_count,
                        tessera_kernel* kernel) {
  struct KernelAdapter {
    std::unique_ptr<Kernel> kernel;
    size_t inputs;
    size_t outputs;
  };
  if (built == nullptr) throw Failure(TESSERA_INTERNAL, "build gave no kernel");
  kernel->workspace_bytes = built->workspace_bytes();
  kernel->self = new KernelAdapter{std::move(built), input_count, output_count};
  kernel->run = [](void* self, tessera_run_context* context, const tessera_buffer* inputs,
                   const tessera_buffer* outputs, tessera_error* error) {
    return guarded(error, [&] {
      const KernelAdapter& held = *static_cast<KernelAdapter*>(self);
      RunContext run(context);
      held.kernel->run(run, buffers(inputs, held.inputs), buffers(outputs, held.outputs));
    });
  };
  kernel->save = [](void* self, tessera_bytes_visitor visitor, void* user, tessera_error* error) {
    return guarded(error, [&] {
      const std::optional<std::string> bytes = static_cast<KernelAdapter*>(self)->kernel->save();
      if (!bytes) throw Failure(TESSERA_UNSUPPORTED, "this kernel cannot be saved");
      visitor(user, bytes->data(), bytes->size());
    });
  };
  kernel->release = [](void* self) { delete static_cast<KernelAdapter*>(self); };
  if (kernel->struct_size < offsetof(tessera_kernel, describe) + sizeof(void*)) return;
  kernel->describe = [](void* self, int32_t form, tessera_bytes_visitor visitor, void* user,
                        tessera_error* error) {
    return guarded(error, [&] {
      const std::optional<std::string> text = static_cast<KernelAdapter*>(self)->kernel->text(form);
      if (!text) throw Failure(TESSERA_UNSUPPORTED, "this kernel has no such text");
      visitor(user, text->data(), text->size());
    });
  };
}

inline int32_t run_pack(void* self, tessera_run_context* context, const tessera_buffer* from,
                        void* to, int64_t /*to_bytes*/, tessera_error* error) {
  return guarded(error, [&] {
    RunContext run(context);
    static_cast<const Pack*>(self)->pack(run, *static_cast<const Buffer*>(from), to);
  });
}

// A candidate with its C struct, which points into it; lives until the host releases it.
struct CandidateAdapter {
  explicit CandidateAdapter(Candidate given) : candidate(std::move(given)) {
    packs.reserve(candidate.inputs.size());
    parts.reserve(candidate.inputs.size() + candidate.outputs.size());
    for (InputPort& port : candidate.inputs) {
      const tessera_pack* pack = nullptr;
      if (port.pack) {
        pack = &packs.emplace_back(tessera_pack{sizeof(tessera_pack), 0, port.pack->id.c_str(),
                                                port.pack->bytes, run_pack, &*port.pack});
      }
      inputs.push_back({port.value, port.accepts_strides ? 1 : 0, port.layout.c_str(),
                        port.alignment_bytes, pack, add_part(port.part)});
    }
    for (const OutputPort& port : candidate.outputs) {
      const uint32_t size = port.is_size_unknown ? uint32_t{TESSERA_OUTPUT_SIZE_UNKNOWN} : 0U;
      const uint32_t strides = port.accepts_strides ? uint32_t{TESSERA_OUTPUT_ACCEPTS_STRIDES} : 0U;
      outputs.push_back({port.value, port.requests, port.layout.c_str(), port.in_place_input,
                         size | strides, port.alignment_bytes, add_part(port.part)});
    }
    fill();
  }

  const tessera_part* add_part(const Part& part) {
    return &parts.emplace_back(tessera_part{part.offset_bytes, part.strides.data(),
                                            static_cast<int32_t>(part.strides.size()), 0});
  }

  void fill() {
    abi.struct_size = sizeof(abi);
    abi.flags = candidate.flags;
    if (!candidate.built_for) abi.flags |= TESSERA_CANDIDATE_BUILT_FOR_ALL;
    abi.algorithm = candidate.algorithm.c_str();
    abi.nodes = candidate.nodes.data();
    abi.node_count = static_cast<int32_t>(candidate.nodes.size());
    abi.inputs = inputs.data();
    abi.input_count = static_cast<int32_t>(inputs.size());
    abi.outputs = outputs.data();
    abi.output_count = static_cast<int32_t>(outputs.size());
    abi.threads = candidate.threads;
    abi.pool = candidate.pool;
    if (candidate.built_for) {
      abi.built_for = candidate.built_for->data();
      abi.built_for_count = static_cast<int32_t>(candidate.built_for->size());
    }
    abi.workspace_bytes = candidate.workspace_bytes;
    abi.library_bytes = candidate.library_bytes;
    abi.optimistic_seconds = candidate.optimistic_seconds;
    abi.build_seconds = candidate.build_seconds;
    abi.self = this;
    abi.build = [](void* self, const tessera_build_options* options, tessera_kernel* kernel,
                   tessera_error* error) {
      return guarded(error, [&] {
        const CandidateAdapter& held = *static_cast<CandidateAdapter*>(self);
        if (!held.candidate.build) throw Failure(TESSERA_INTERNAL, "the candidate has no build");
        BuildOptions build;
        build.threads = options->threads;
        if (options->dense_layout != nullptr) build.dense_layout = options->dense_layout;
        if (options->struct_size >= sizeof(*options)) {
          build.absorbed = buffers(options->absorbed, static_cast<size_t>(options->absorbed_count));
        }
        fill_kernel(held.candidate.build(build), held.inputs.size(), held.outputs.size(), kernel);
      });
    };
    if (candidate.load) {
      abi.load = [](void* self, const void* bytes, size_t size, tessera_kernel* kernel,
                    tessera_error* error) {
        return guarded(error, [&] {
          const CandidateAdapter& held = *static_cast<CandidateAdapter*>(self);
          const std::string_view text(static_cast<const char*>(bytes), size);
          fill_kernel(held.candidate.load(text), held.inputs.size(), held.outputs.size(), kernel);
        });
      };
    }
    abi.release = [](void* self) { delete static_cast<CandidateAdapter*>(self); };
    abi.absorbed = candidate.absorbed.data();
    abi.absorbed_count = static_cast<int32_t>(candidate.absorbed.size());
    if (!candidate.workspace_for) return;
    abi.workspace_for = [](void* self, const tessera_buffer* from, const tessera_buffer* to) {
      const CandidateAdapter& held = *static_cast<CandidateAdapter*>(self);
      int64_t bytes = -1;
      guarded(nullptr, [&] {
        bytes = held.candidate.workspace_for(buffers(from, held.inputs.size()),
                                             buffers(to, held.outputs.size()));
      });
      return bytes;
    };
  }

  Candidate candidate;
  std::vector<tessera_pack> packs;
  std::vector<tessera_part> parts;
  std::vector<tessera_input_port> inputs;
  std::vector<tessera_output_port> outputs;
  tessera_candidate abi = {};
};

inline uint32_t data_type_bits(const std::vector<int32_t>& types) {
  uint32_t bits = 0;
  for (const int32_t type : types) bits |= 1U << static_cast<uint32_t>(type);
  return bits;
}

inline tessera_parameter parameter_abi(const Parameter& parameter) {
  return {parameter.name.c_str(), parameter.type_variable.c_str(),
          data_type_bits(parameter.data_types), parameter.arity};
}

inline Attributes attributes_of(const tessera_node_context* node) {
  return Attributes([node](const char* name) { return node->attribute(node, name); });
}

inline int32_t convert(void* self, tessera_run_context* context, const tessera_buffer* from,
                       const tessera_buffer* to, tessera_error* error,
                       ConvertFunction Layout::* direction) {
  return guarded(error, [&] {
    RunContext run(context);
    (static_cast<const Layout*>(self)->*direction)(run, *static_cast<const Buffer*>(from),
                                                   *static_cast<const Buffer*>(to));
  });
}

inline tessera_layout layout_abi(Layout& layout) {
  tessera_layout abi = {};
  abi.struct_size = sizeof(abi);
  abi.flags =
      (layout.is_dense ? uint32_t{TESSERA_LAYOUT_IS_DENSE} : 0U) |
      (layout.has_simple_conversions ? uint32_t{TESSERA_LAYOUT_HAS_SIMPLE_CONVERSIONS} : 0U);
  abi.name = layout.name.c_str();
  abi.device = layout.device;
  abi.self = &layout;
  // A missing function stays null, so that the host can refuse the layout by name.
  if (layout.storage_bytes) {
    abi.storage_bytes = [](void* self, const tessera_type* type) -> int64_t {
      int64_t bytes = -1;
      guarded(nullptr, [&] {
        bytes = static_cast<const Layout*>(self)->storage_bytes(Type(*type)).value_or(-1);
      });
      return bytes;
    };
  }
  if (layout.to_default) {
    abi.to_default = [](void* self, tessera_run_context* context, const tessera_buffer* from,
                        const tessera_buffer* to, tessera_error* error) {
      return convert(self, context, from, to, error, &Layout::to_default);
    };
  }
  if (layout.from_default) {
    abi.from_default = [](void* self, tessera_run_context* context, const tessera_buffer* from,
                          const tessera_buffer* to, tessera_error* error) {
      return convert(self, context, from, to, error, &Layout::from_default);
    };
  }
  return abi;
}

inline tessera_conversion conversion_abi(Conversion& conversion) {
  tessera_conversion abi = {};
  abi.struct_size = sizeof(abi);
  abi.from = conversion.from.c_str();
  abi.to = conversion.to.c_str();
  abi.self = &conversion;
  if (!conversion.convert) return abi;
  abi.convert = [](void* self, tessera_run_context* context, const tessera_buffer* from,
                   const tessera_buffer* to, tessera_error* error) {
    return guarded(error, [&] {
      RunContext run(context);
      static_cast<const Conversion*>(self)->convert(run, *static_cast<const Buffer*>(from),
                                                    *static_cast<const Buffer*>(to));
    });
  };
  return abi;
}

inline void run_node_function(const NodeFunction& function, const tessera_node_context* node,
                              tessera_run_context* context, const tessera_buffer* inputs,
                              const tessera_buffer* outputs) {
  RunContext run(context);
  function(attributes_of(node), run, buffers(inputs, static_cast<size_t>(node->input_count)),
           buffers(outputs, static_cast<size_t>(node->output_count)));
}

// An op with its C struct, which points into it.
struct OpAdapter {
  explicit OpAdapter(Op& given) : op(given) {
    for (const Parameter& parameter : op.inputs) inputs.push_back(parameter_abi(parameter));
    for (const Parameter& parameter : op.outputs) outputs.push_back(parameter_abi(parameter));
    defaults.reserve(op.attributes.size());
    for (const AttributeSchema& attribute : op.attributes) {
      const bool has_default =
          attribute.default_int || attribute.default_float || attribute.default_string;
      const tessera_attribute* value = nullptr;
      if (has_default) {
        tessera_attribute& made = defaults.emplace_back(tessera_attribute{});
        made.struct_size = sizeof(made);
        made.kind = attribute.kind;
        made.int_value = attribute.default_int.value_or(0);
        made.float_value = attribute.default_float.value_or(0);
        made.string_value = attribute.default_string ? attribute.default_string->c_str() : "";
        value = &made;
      }
      attributes.push_back(
          {attribute.name.c_str(), attribute.kind, attribute.is_required ? 1 : 0, value});
    }
  }

  tessera_op abi() {
    tessera_op made = {};
    made.struct_size = sizeof(made);
    made.version = op.version;
    made.domain = op.domain.c_str();
    made.name = op.name.c_str();
    made.inputs = inputs.data();
    made.outputs = outputs.data();
    made.input_count = static_cast<int32_t>(inputs.size());
    made.output_count = static_cast<int32_t>(outputs.size());
    made.attributes = attributes.data();
    made.attribute_count = static_cast<int32_t>(attributes.size());
    made.is_elementwise = op.is_elementwise ? 1 : 0;
    made.self = &op;
    // A missing function stays null, so that the host can refuse the op by name.
    if (op.infer) {
      made.infer = [](void* self, tessera_infer_context* context, tessera_error* error) {
        return guarded(error, [&] {
          InferContext infer(context);
          static_cast<const Op*>(self)->infer(infer);
        });
      };
    }
    if (op.reference) {
      made.reference = [](void* self, const tessera_node_context* node,
                          tessera_run_context* context, const tessera_buffer* from,
                          const tessera_buffer* to, tessera_error* error) {
        return guarded(error, [&] {
          run_node_function(static_cast<const Op*>(self)->reference, node, context, from, to);
        });
      };
    }
    return made;
  }

  Op& op;
  std::vector<tessera_parameter> inputs;
  std::vector<tessera_parameter> outputs;
  std::vector<tessera_attribute> defaults;
  std::vector<tessera_attribute_schema> attributes;
};

// A simple kernel with its C struct, which points into it.
struct SimpleKernelAdapter {
  SimpleKernel& kernel;
  const tessera_host* host;
  std::string refusal;

  tessera_simple_kernel abi() {
    tessera_simple_kernel made = {};
    made.struct_size = sizeof(made);
    made.domain = kernel.domain.c_str();
    made.op = kernel.op.c_str();
    made.self = this;
    made.explain_refusal = [](void* self, const tessera_graph* graph, int32_t node) {
      SimpleKernelAdapter& held = *static_cast<SimpleKernelAdapter*>(self);
      held.refusal = "its predicate threw an exception";
      const char* reason = held.refusal.c_str();
      guarded(nullptr, [&] {
        std::optional<std::string> told;
        if (held.kernel.explain_refusal) {
          told = held.kernel.explain_refusal(Graph(held.host, graph).node(node));
        }
        reason = nullptr;
        if (!told) return;
        held.refusal = *std::move(told);
        reason = held.refusal.c_str();
      });
      return reason;
    };
    if (!kernel.run) return made;
    made.run = [](void* self, const tessera_node_context* node, tessera_run_context* context,
                  const tessera_buffer* inputs, const tessera_buffer* outputs,
                  tessera_error* error) {
      return guarded(error, [&] {
        run_node_function(static_cast<SimpleKernelAdapter*>(self)->kernel.run, node, context,
                          inputs, outputs);
      });
    };
    return made;
  }
};

// A backend with its C struct, which points into it; lives until the host releases it.
class BackendAdapter {
 public:
  BackendAdapter(std::unique_ptr<Backend> backend, const tessera_host* host)
      : backend_(std::move(backend)), host_(host), description_(backend_->describe()) {
    for (const auto& [name, value] : description_.ingredients) {
      ingredients_.push_back({name.c_str(), value.c_str()});
    }
    add_devices();
    for (Layout& layout : description_.layouts) layouts_.push_back(layout_abi(layout));
    for (Conversion& conversion : description_.conversions) {
      conversions_.push_back(conversion_abi(conversion));
    }
    held_ops_.reserve(description_.ops.size());
    for (Op& op : description_.ops) ops_.push_back(held_ops_.emplace_back(op).abi());
    held_simple_kernels_.reserve(description_.simple_kernels.size());
    for (SimpleKernel& kernel : description_.simple_kernels) {
      held_simple_kernels_.push_back({kernel, host_, ""});
      simple_kernels_.push_back(held_simple_kernels_.back().abi());
    }
  }

  void fill(tessera_backend* abi) {
    // An older host says 0 and has a smaller struct.
    const size_t size = abi->struct_size;
    const bool has_interfaces = size >= offsetof(tessera_backend, compile_counts);
    const bool has_counts = size >= sizeof(*abi);
    abi->struct_size = has_counts       ? sizeof(*abi)
                       : has_interfaces ? offsetof(tessera_backend, compile_counts)
                                        : offsetof(tessera_backend, device_interfaces);
    abi->self = this;
    abi->name = description_.name.c_str();
    abi->version = description_.version.c_str();
    abi->ingredients = ingredients_.data();
    abi->ingredient_count = static_cast<int32_t>(ingredients_.size());
    abi->devices = devices_.data();
    abi->device_count = static_cast<int32_t>(devices_.size());
    abi->layouts = layouts_.data();
    abi->layout_count = static_cast<int32_t>(layouts_.size());
    abi->conversions = conversions_.data();
    abi->conversion_count = static_cast<int32_t>(conversions_.size());
    abi->ops = ops_.data();
    abi->op_count = static_cast<int32_t>(ops_.size());
    abi->simple_kernels = simple_kernels_.data();
    abi->simple_kernel_count = static_cast<int32_t>(simple_kernels_.size());
    abi->propose = [](void* self, const tessera_graph* graph,
                      const tessera_propose_options* options, tessera_proposals* proposals,
                      tessera_error* error) {
      return guarded(error, [&] {
        const BackendAdapter& held = *static_cast<BackendAdapter*>(self);
        ProposeOptions wanted;
        wanted.threads = options->threads;
        wanted.precision = options->precision;
        wanted.is_training = options->is_training != 0;
        if (options->struct_size >= offsetof(tessera_propose_options, nan)) {
          wanted.skips_measured_only = options->skips_measured_only != 0;
          wanted.wanted = wanted_of(*options);
        }
        if (options->struct_size >= offsetof(tessera_propose_options, takes_sizes)) {
          wanted.nan = options->nan;
          wanted.accuracy = options->accuracy;
        }
        if (options->struct_size >= sizeof(*options)) {
          wanted.takes_sizes = options->takes_sizes != 0;
        }
        Proposals sink(proposals);
        held.backend_->propose(Graph(held.host_, graph), wanted, sink);
      });
    };
    abi->release = [](void* self) { delete static_cast<BackendAdapter*>(self); };
    if (has_interfaces) abi->device_interfaces = device_interfaces_.data();
    if (!has_counts) return;
    abi->compile_counts = [](void* self, tessera_compile_counts* counts) {
      const std::optional<CompileCounts> found =
          static_cast<const BackendAdapter*>(self)->backend_->compile_counts();
      if (!found) return;
      counts->kernels = found->kernels;
      counts->unique = found->unique;
      counts->compiled = found->compiled;
      counts->loaded = found->loaded;
      counts->compile_seconds = found->compile_seconds;
    };
  }

 private:
  void add_devices() {
    held_interfaces_.reserve(description_.devices.size());
    for (const Device& device : description_.devices) {
      devices_.push_back({device.kind.c_str(), device.ordinal, 0, device.architecture.c_str()});
      const bool has_memory = device.interface != nullptr;
      if (has_memory) held_interfaces_.push_back(device_interface_abi(*device.interface));
      device_interfaces_.push_back(has_memory ? &held_interfaces_.back() : nullptr);
    }
  }

  static std::optional<std::vector<Wanted>> wanted_of(const tessera_propose_options& options) {
    if (options.wanted == nullptr) return std::nullopt;
    std::vector<Wanted> all;
    for (const tessera_wanted& one :
         std::span(options.wanted, static_cast<size_t>(options.wanted_count))) {
      all.push_back({{one.nodes, one.nodes + one.node_count}, one.algorithm, one.ports});
    }
    return all;
  }

  std::unique_ptr<Backend> backend_;
  const tessera_host* host_;
  Description description_;
  std::vector<tessera_ingredient> ingredients_;
  std::vector<tessera_device> devices_;
  std::vector<tessera_device_interface> held_interfaces_;
  std::vector<const tessera_device_interface*> device_interfaces_;
  std::vector<tessera_layout> layouts_;
  std::vector<tessera_conversion> conversions_;
  std::vector<OpAdapter> held_ops_;
  std::vector<tessera_op> ops_;
  std::vector<SimpleKernelAdapter> held_simple_kernels_;
  std::vector<tessera_simple_kernel> simple_kernels_;
};

}  // namespace detail

inline void Proposals::add(Candidate candidate) {
  auto held = std::make_unique<detail::CandidateAdapter>(std::move(candidate));
  // The host owns the candidate even if it refuses it.
  const tessera_candidate* abi = &held.release()->abi;
  proposals_->add(proposals_, abi);
}

// Implements the function tessera_open_backend, which TESSERA_PLUGIN exports.
template <class MyBackend>
int32_t open_backend(const tessera_host* host, tessera_backend* abi, tessera_error* error) {
  return detail::guarded(error, [&] {
    std::unique_ptr<Backend> backend;
    if constexpr (std::is_constructible_v<MyBackend, const tessera_host*>) {
      backend = std::make_unique<MyBackend>(host);
    } else {
      backend = std::make_unique<MyBackend>();
    }
    auto held = std::make_unique<detail::BackendAdapter>(std::move(backend), host);
    held.release()->fill(abi);
  });
}

}  // namespace tessera::plugin
