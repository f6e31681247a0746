// A custom op of a backend, for tests.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/plugin_ops/plugin_ops.h"
#include "tessera/backend.h"

namespace tessera {

inline constexpr const char* kDomain = "org.example";

// Op Scale of org.example: y = x * factor + bias (bias is optional).
inline plugin::Op scale_op() {
  return {.domain = kDomain,
          .name = "Scale",
          .inputs = {{"X"}, {.name = "bias", .arity = TESSERA_ARITY_OPTIONAL}},
          .outputs = {{"Y"}},
          .attributes = {{.name = "factor", .kind = TESSERA_ATTRIBUTE_FLOAT, .default_float = 2}},
          .is_elementwise = true,
          .infer = [](plugin::InferContext& context) { context.set_output(0, context.input(0)); },
          .reference =
              [](const plugin::Attributes& attributes, plugin::RunContext& context,
                 std::span<const plugin::Buffer> inputs, std::span<const plugin::Buffer> outputs) {
                const float factor = attributes.get_float("factor");
                const auto* x = inputs[0].as<float>();
                const float bias = inputs[1].is_present() ? *inputs[1].as<float>() : 0;
                auto* y = outputs[0].as<float>();
                context.parallel_for(inputs[0].elements(), 1, [&](int64_t begin, int64_t end) {
                  for (int64_t index = begin; index < end; ++index)
                    y[index] = x[index] * factor + bias;
                });
              }};
}

class OneOp : public plugin::Backend {
 public:
  explicit OneOp(plugin::Op op) : op_(std::move(op)) {}
  plugin::Description describe() override {
    return {.name = "mylib", .version = "1", .ops = {op_}};
  }

 private:
  plugin::Op op_;
};

// A backend with this op, opened by the host.
class Opened {
 public:
  explicit Opened(plugin::Op op)
      : held_(std::make_shared<plugin::detail::BackendAdapter>(
            std::make_unique<OneOp>(std::move(op)), nullptr)) {
    held_->fill(&abi);
  }
  std::vector<ops::Op> ops() const { return make_ops(abi, held_); }

  tessera_backend abi = {};

 private:
  std::shared_ptr<plugin::detail::BackendAdapter> held_;
};

}  // namespace tessera
