// A backend for an imaginary library that multiplies matrices in column-major order; copy it to
// start a backend of your own. It shows a layout with its conversions, candidates that use the
// layout, a packed weight, a kernel in the short form, and an op of its own. docs/backends.md
// explains each of them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "tessera/backend.h"

namespace {

using namespace tessera::plugin;

// --- A layout: float32 matrices in column-major order --------------------------------------------

constexpr const char* kColumns = "example:columns";

std::optional<int64_t> column_bytes(const Type& type) {
  if (type.data_type != TESSERA_FLOAT32 || type.rank != 2) return std::nullopt;
  return type.dense_bytes();
}

void transpose(RunContext& context, const float* from, float* to, int64_t rows, int64_t columns) {
  context.parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        to[column * rows + row] = from[row * columns + column];
      }
    }
  });
}

void to_columns(RunContext& context, const Buffer& from, const Buffer& to) {
  transpose(context, from.as<float>(), to.as<float>(), from.dims[0], from.dims[1]);
}

void from_columns(RunContext& context, const Buffer& from, const Buffer& to) {
  transpose(context, from.as<float>(), to.as<float>(), from.dims[1], from.dims[0]);
}

// --- A candidate: MatMul, whose right operand and result are column-major ------------------------

void multiply(RunContext& context, std::span<const Buffer> inputs,
              std::span<const Buffer> outputs) {
  const int64_t depth = inputs[0].dims[1];
  const int64_t rows = outputs[0].dims[0];
  context.parallel_for(outputs[0].dims[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const float* right = inputs[1].as<float>() + column * depth;
      for (int64_t row = 0; row < rows; ++row) {
        const float* left = inputs[0].as<float>() + row * depth;
        outputs[0].as<float>()[column * rows + row] =
            std::inner_product(left, left + depth, right, 0.0F);
      }
    }
  });
}

std::optional<std::string> explain_refusal_of_product(const Node& node) {
  for (size_t index = 0; index < 2; ++index) {
    const Type type = node.input(index).type();
    if (type.data_type != TESSERA_FLOAT32) return "it multiplies float32 only";
    if (type.rank != 2) return "it multiplies matrices, not " + type.shape_text();
  }
  // A value that is read twice has one port, and a port has one layout.
  if (node.input(0).id() == node.input(1).id()) return "it multiplies two different matrices";
  return std::nullopt;
}

Candidate product_candidate(const Node& node) {
  Candidate candidate = candidate_for(node);
  candidate.algorithm = "by_columns";
  candidate.outputs[0].layout = kColumns;
  const Value right = node.input(1);
  if (right.is_constant()) {  // packed once, not in each run
    candidate.inputs[1].pack = Pack{"columns", right.type().dense_bytes(),
                                    [](RunContext& context, const Buffer& from, void* to) {
                                      transpose(context, from.as<float>(), static_cast<float*>(to),
                                                from.dims[0], from.dims[1]);
                                    }};
  } else {
    candidate.inputs[1].layout = kColumns;
  }
  candidate.build = [](const BuildOptions&) { return make_kernel(multiply); };
  return candidate;
}

// --- The short form: LeakyRelu -------------------------------------------------------------------

std::optional<std::string> explain_refusal_of_leaky_relu(const Node& node) {
  if (node.input(0).type().data_type == TESSERA_FLOAT32) return std::nullopt;
  return "it computes float32 only";
}

void leaky_relu(const Attributes& attributes, RunContext& context, std::span<const Buffer> inputs,
                std::span<const Buffer> outputs) {
  const float alpha = attributes.get_float("alpha");
  context.parallel_for(outputs[0].elements(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const float element = inputs[0].as<float>()[index];
      outputs[0].as<float>()[index] = element < 0 ? alpha * element : element;
    }
  });
}

// --- An op of its own: the distance of each point to each centre ---------------------------------

void infer_distance(InferContext& context) {
  const Type points = context.input(0);
  const Type centres = context.input(1);
  if (points.rank < 0 || centres.rank < 0) {
    return context.set_output(0, Type(points.data_type, {-1, -1}));
  }
  if (points.rank != 2 || centres.rank != 2 ||
      (points.is_known() && centres.is_known() && points.dims[1] != centres.dims[1])) {
    throw Failure(TESSERA_INVALID_MODEL, "expected points NxD and centres MxD, found " +
                                             points.shape_text() + " and " + centres.shape_text());
  }
  context.set_output(0, Type(points.data_type, {points.dims[0], centres.dims[0]}));
}

void distance(const Attributes& attributes, RunContext& context, std::span<const Buffer> inputs,
              std::span<const Buffer> outputs) {
  const int64_t width = inputs[0].dims[1];
  const int64_t centres = outputs[0].dims[1];
  const bool is_squared = attributes.get_int("squared") != 0;
  context.parallel_for(outputs[0].elements(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const float* point = inputs[0].as<float>() + index / centres * width;
      const float* centre = inputs[1].as<float>() + index % centres * width;
      double sum = 0;
      for (int64_t axis = 0; axis < width; ++axis) {
        sum += std::pow(double{point[axis]} - double{centre[axis]}, 2);
      }
      outputs[0].as<float>()[index] = static_cast<float>(is_squared ? sum : std::sqrt(sum));
    }
  });
}

// Computes the distances in column-major layout, which is faster because the coordinates of all
// points along one axis are contiguous.
void distance_by_columns(RunContext& context, const Buffer& points, const Buffer& centres,
                         const Buffer& distances, bool is_squared) {
  const int64_t count = points.dims[0];
  const int64_t width = points.dims[1];
  context.parallel_for(centres.dims[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t centre = begin; centre < end; ++centre) {
      float* sums = distances.as<float>() + centre * count;
      std::fill_n(sums, count, 0.0F);
      for (int64_t axis = 0; axis < width; ++axis) {
        const float* column = points.as<float>() + axis * count;
        const float place = centres.as<float>()[centre * width + axis];
        for (int64_t point = 0; point < count; ++point) {
          sums[point] += (column[point] - place) * (column[point] - place);
        }
      }
      if (is_squared) continue;
      for (int64_t point = 0; point < count; ++point) sums[point] = std::sqrt(sums[point]);
    }
  });
}

void offer_distance(ProposeContext& context, const Node& node) {
  if (node.input(0).id() == node.input(1).id()) {
    return context.refuse(node.id(), "points and centres must be different matrices");
  }
  Candidate candidate = candidate_for(node);
  candidate.algorithm = "by_columns";
  candidate.inputs[0].layout = kColumns;
  candidate.outputs[0].layout = kColumns;
  const bool is_squared = node.attributes().get_int("squared") != 0;
  candidate.build = [is_squared](const BuildOptions&) {
    return make_kernel([is_squared](RunContext& context, std::span<const Buffer> inputs,
                                    std::span<const Buffer> outputs) {
      distance_by_columns(context, inputs[0], inputs[1], outputs[0], is_squared);
    });
  };
  context.add(std::move(candidate));
}

// --- The backend ---------------------------------------------------------------------------------

struct ExampleBackend : Backend {
  Description describe() override {
    return {.name = "example",
            .version = "1.0",
            .ingredients = {{"version", "1.0"}},
            .layouts = {{.name = kColumns,
                         .storage_bytes = column_bytes,
                         .to_default = from_columns,
                         .from_default = to_columns}},
            .ops = {{.domain = "org.example",
                     .name = "Distance",
                     .inputs = {{"points"}, {"centres"}},
                     .outputs = {{"distances"}},
                     .attributes = {{.name = "squared", .default_int = 0}},
                     .infer = infer_distance,
                     .reference = distance}},
            .simple_kernels = {{.op = "LeakyRelu",
                                .explain_refusal = explain_refusal_of_leaky_relu,
                                .run = leaky_relu}}};
  }

  void propose(const Graph& graph, const ProposeOptions& options, Proposals& proposals) override {
    ProposeContext context(graph, options, proposals);
    context.for_each({"MatMul"}, [&](const Node& node) {
      const std::optional<std::string> reason = explain_refusal_of_product(node);
      if (reason) return context.refuse(node.id(), *reason);
      context.add(product_candidate(node));
    });
    for (const Node& node : graph.nodes()) {
      if (node.domain() == "org.example") offer_distance(context, node);
    }
    context.report_refusals("of ONNX's ops it has MatMul only");
  }
};

}  // namespace

TESSERA_PLUGIN(ExampleBackend)
