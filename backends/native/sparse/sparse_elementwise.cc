// Functions that map zero to zero, applied to the stored elements of csr and row_sparse; and the
// sum of a sparse and a dense tensor.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/families.h"
#include "base/grain.h"
#include "sparse/sparse.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::CsrTarget;
using plugin::CsrView;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RowSparseTarget;
using plugin::RowSparseView;
using plugin::RunContext;
using plugin::Value;

namespace {

// to[i] = f(from[i]); `parameter` is a slope or factor if the op has one.
using StoredLoop = void (*)(const float* from, float* to, int64_t count, float parameter);

template <class Function>
void each(const float* from, float* to, int64_t count, const Function& function) {
  for (int64_t index = 0; index < count; ++index) to[index] = function(from[index]);
}

struct NamedLoop {
  std::string_view op;
  StoredLoop loop;
};

constexpr NamedLoop kLoops[] = {
    {"Abs", [](const float* from, float* to, int64_t count,
               float) { each(from, to, count, [](float x) { return std::fabs(x); }); }},
    {"Asinh", [](const float* from, float* to, int64_t count,
                 float) { each(from, to, count, [](float x) { return std::asinh(x); }); }},
    {"Atan", [](const float* from, float* to, int64_t count,
                float) { each(from, to, count, [](float x) { return std::atan(x); }); }},
    {"Ceil", [](const float* from, float* to, int64_t count,
                float) { each(from, to, count, [](float x) { return std::ceil(x); }); }},
    {"Div", [](const float* from, float* to, int64_t count,
               float divisor) { each(from, to, count, [=](float x) { return x / divisor; }); }},
    {"Erf", [](const float* from, float* to, int64_t count,
               float) { each(from, to, count, [](float x) { return std::erf(x); }); }},
    {"Floor", [](const float* from, float* to, int64_t count,
                 float) { each(from, to, count, [](float x) { return std::floor(x); }); }},
    {"LeakyRelu",
     [](const float* from, float* to, int64_t count, float slope) {
       each(from, to, count, [=](float x) { return x < 0 ? slope * x : x; });
     }},
    {"Mul", [](const float* from, float* to, int64_t count,
               float factor) { each(from, to, count, [=](float x) { return x * factor; }); }},
    {"Neg", [](const float* from, float* to, int64_t count,
               float) { each(from, to, count, [](float x) { return -x; }); }},
    {"Relu", [](const float* from, float* to, int64_t count,
                float) { each(from, to, count, [](float x) { return x < 0 ? 0 : x; }); }},
    {"Round", [](const float* from, float* to, int64_t count,
                 float) { each(from, to, count, [](float x) { return std::nearbyint(x); }); }},
    {"Sign",
     [](const float* from, float* to, int64_t count, float) {
       each(from, to, count, [](float x) { return x > 0 ? 1.0F : x < 0 ? -1.0F : x; });
     }},
    {"Sin", [](const float* from, float* to, int64_t count,
               float) { each(from, to, count, [](float x) { return std::sin(x); }); }},
    {"Sinh", [](const float* from, float* to, int64_t count,
                float) { each(from, to, count, [](float x) { return std::sinh(x); }); }},
    {"Softsign",
     [](const float* from, float* to, int64_t count, float) {
       each(from, to, count, [](float x) { return x / (1 + std::fabs(x)); });
     }},
    {"Sqrt", [](const float* from, float* to, int64_t count,
                float) { each(from, to, count, [](float x) { return std::sqrt(x); }); }},
    {"Tan", [](const float* from, float* to, int64_t count,
               float) { each(from, to, count, [](float x) { return std::tan(x); }); }},
    {"Tanh", [](const float* from, float* to, int64_t count,
                float) { each(from, to, count, [](float x) { return std::tanh(x); }); }},
};

class StoredKernel : public plugin::Kernel {
 public:
  StoredKernel(StoredLoop loop, float parameter, SparseShape from, int64_t capacity, size_t port)
      : loop_(loop), parameter_(parameter), from_(from), capacity_(capacity), port_(port) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const Buffer& input = inputs[port_];
    // In place, only the values change.
    const bool is_in_place = input.data == outputs[0].data;
    if (from_.format == TESSERA_CSR) {
      const CsrView from(input.data);
      check_capacity(from.stored(), capacity_);
      float* values = const_cast<float*>(from.values_as<float>());
      if (!is_in_place) {
        const CsrTarget to(outputs[0].data, from_.rows, capacity_, sizeof(float));
        copy(to.offsets, from.offsets, from_.rows + 1);
        copy(to.columns, from.columns, from.stored());
        to.header->stored = from.stored();
        values = to.values_as<float>();
      }
      compute(context, from.values_as<float>(), values, from.stored());
      return;
    }
    const RowSparseView from(input.data);
    check_capacity(from.stored(), capacity_);
    float* values = const_cast<float*>(from.values_as<float>());
    if (!is_in_place) {
      const int64_t row_bytes = from_.width * static_cast<int64_t>(sizeof(float));
      const RowSparseTarget to(outputs[0].data, capacity_, row_bytes);
      copy(to.rows, from.rows, from.stored());
      to.header->stored = from.stored();
      values = to.values_as<float>();
    }
    compute(context, from.values_as<float>(), values, from.stored() * from_.width);
  }

 private:
  template <class T>
  static void copy(T* to, const T* from, int64_t count) {
    if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  }

  void compute(RunContext& context, const float* from, float* to, int64_t count) const {
    context.parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      loop_(from + begin, to + begin, end - begin, parameter_);
    });
  }

  StoredLoop loop_;
  float parameter_;
  SparseShape from_;
  int64_t capacity_;  // of the output
  size_t port_;
};

// The host decides which results are sparse: scaling has a sparse result if the other operand is a
// scalar.
void offer_stored(ProposeContext& context, const Node& node, const NamedLoop& named) {
  const Value output = node.output(0);
  const size_t input = node.input(0).sparse_format() == TESSERA_DENSE ? 1 : 0;
  const SparseShape from = sparse_shape(node.input(input));
  const SparseShape to = sparse_shape(output);
  const bool is_offered = from.format != TESSERA_DENSE && from.format == to.format &&
                          from.width == to.width && output.type().data_type == TESSERA_FLOAT32 &&
                          node.input(input).type().dims == output.type().dims;
  if (!is_offered) return;
  plugin::Candidate candidate = sparse_candidate(node, input);
  float parameter = node.attributes().get_float("alpha", 0.01F);
  if (node.op() == "Mul" || node.op() == "Div") {
    const std::span<const float> number = node.input(1 - input).constant_as<float>();
    if (number.size() != 1 || (node.op() == "Div" && input != 0)) return;
    parameter = number[0];
    // The scalar is known, so only the sparse operand is read.
    std::erase_if(candidate.inputs,
                  [&](const auto& port) { return port.value != node.input(input).id(); });
  }
  candidate.outputs[0].layout = layout_of(to);
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
  candidate.optimistic_seconds =
      sparse_seconds(context, to.stored(), 2 * to.stored() * sizeof(float));
  candidate.build = [=, loop = named.loop](const plugin::BuildOptions&) {
    return std::make_unique<StoredKernel>(loop, parameter, from, to.capacity, 0);
  };
  context.add(std::move(candidate));
}

class AddToDenseKernel : public plugin::Kernel {
 public:
  AddToDenseKernel(SparseShape shape, size_t sparse, size_t dense)
      : shape_(shape), sparse_(sparse), dense_(dense) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* from = inputs[dense_].as<float>();
    float* to = outputs[0].as<float>();
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, shape_.width));
    if (from != to) {
      context.parallel_for(shape_.rows * shape_.width, kGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
      });
    }
    if (shape_.format == TESSERA_CSR) {
      const CsrView sparse(inputs[sparse_].data);
      const float* values = sparse.values_as<float>();
      context.parallel_for(shape_.rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          float* target = to + row * shape_.width;
          for (int64_t at = sparse.offsets[row]; at < sparse.offsets[row + 1]; ++at) {
            target[sparse.columns[at]] += values[at];
          }
        }
      });
      return;
    }
    const RowSparseView sparse(inputs[sparse_].data);
    context.parallel_for(sparse.stored(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const float* values = sparse.values_as<float>() + at * shape_.width;
        float* target = to + sparse.rows[at] * shape_.width;
        for (int64_t column = 0; column < shape_.width; ++column) target[column] += values[column];
      }
    });
  }

 private:
  SparseShape shape_;
  size_t sparse_;
  size_t dense_;
};

void offer_add(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.output(0).type();
  const bool is_offered = type.data_type == TESSERA_FLOAT32 && type.is_known() &&
                          node.input(0).type().dims == type.dims &&
                          node.input(1).type().dims == type.dims &&
                          node.input(0).id() != node.input(1).id();
  if (!is_offered) return;
  for (const size_t input : {size_t{0}, size_t{1}}) {
    const SparseShape shape = sparse_shape(node.input(input));
    if (shape.format == TESSERA_DENSE) continue;
    plugin::Candidate candidate = sparse_candidate(node, input);
    candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    candidate.outputs[0].in_place_input = static_cast<int32_t>(1 - input);
    const double bytes = 2.0 * static_cast<double>(type.dense_bytes()) + 8 * shape.stored();
    candidate.optimistic_seconds = sparse_seconds(context, shape.stored(), bytes);
    candidate.build = [shape, input](const plugin::BuildOptions&) {
      return std::make_unique<AddToDenseKernel>(shape, input, 1 - input);
    };
    context.add(std::move(candidate));
  }
}

}  // namespace

void propose_sparse_elementwise(ProposeContext& context) {
  context.for_each(
      {"Abs", "Asinh", "Atan", "Ceil", "Div", "Erf", "Floor", "LeakyRelu", "Mul", "Neg", "Relu",
       "Round", "Sign", "Sin", "Sinh", "Softsign", "Sqrt", "Tan", "Tanh"},
      [&](const Node& node) {
        const auto* named =
            std::find_if(std::begin(kLoops), std::end(kLoops),
                         [&](const NamedLoop& each) { return each.op == node.op(); });
        if (named != std::end(kLoops)) offer_stored(context, node, *named);
      });
  context.for_each({"Add"}, [&](const Node& node) { offer_add(context, node); });
}

}  // namespace tessera::native
