// Ops that copy elements: transposes, parts, repetitions, indices, padding and resizing.
#include <string>
#include <utility>
#include <vector>

#include "native_case.h"

namespace tessera::bench {
namespace {

Tensor list_of(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(values.size())}, values);
}

// The first size is chosen by the number of bytes, unless `first` says that another one is.
BandwidthCase transpose(const std::string& name, std::vector<int64_t> inner,
                        std::vector<int64_t> order, DataType type = kFloat) {
  return {.name = "Transpose " + name, .make = [=](CaseGraph& graph, int64_t bytes) {
            graph.input("x", type, dims_of(bytes, element_bytes(type), inner), 0, 100);
            Attributes attributes;
            attributes.set("perm", order);
            graph.node("Transpose", {"x"}, {"y"}, attributes).output("y");
          }};
}

// A square matrix whose sides are multiples of `side`.
BandwidthCase square(const std::string& name, DataType type, int64_t side) {
  return {.name = "Transpose " + name, .make = [=](CaseGraph& graph, int64_t bytes) {
            int64_t sides = side;
            while ((sides + side) * (sides + side) * element_bytes(type) <= bytes) sides += side;
            graph.input("x", type, {sides, sides}, 0, 100);
            graph.node("Transpose", {"x"}, {"y"}).output("y");
          }};
}

// [channels, pixels] to [pixels, channels], or the reverse.
BandwidthCase channels(int64_t count, bool is_to_last) {
  const std::string name = is_to_last ? "[C,P]>[P,C] C=" : "[P,C]>[C,P] C=";
  return {.name = "Transpose " + name + std::to_string(count),
          .make = [=](CaseGraph& graph, int64_t bytes) {
            const int64_t pixels = bytes / 4 / count;
            graph.input("x", kFloat,
                        is_to_last ? std::vector<int64_t>{count, pixels}
                                   : std::vector<int64_t>{pixels, count});
            graph.node("Transpose", {"x"}, {"y"}).output("y");
          }};
}

BandwidthCase concat(const std::string& name, std::vector<int64_t> inner, int64_t axis,
                     const std::string& layout = "row_major") {
  return {.name = "Concat " + name,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                const std::vector<int64_t> dims = dims_of(bytes / 2, 4, inner);
                graph.input("a", kFloat, dims).input("b", kFloat, dims);
                Attributes attributes;
                attributes.set("axis", axis);
                graph.node("Concat", {"a", "b"}, {"y"}, attributes).output("y");
              },
          .layout = layout};
}

BandwidthCase split(const std::string& name, std::vector<int64_t> inner, int64_t axis,
                    const std::string& layout = "row_major") {
  return {.name = "Split " + name,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                graph.input("x", kFloat, dims_of(bytes, 4, inner));
                Attributes attributes;
                attributes.set("axis", axis);
                attributes.set("num_outputs", int64_t{2});
                graph.node("Split", {"x"}, {"a", "b"}, attributes).output("a").output("b");
              },
          .layout = layout};
}

BandwidthCase slice(const std::string& name, std::vector<int64_t> inner, int64_t axis,
                    int64_t start, int64_t end, int64_t step) {
  return {.name = "Slice " + name, .make = [=](CaseGraph& graph, int64_t bytes) {
            graph.input("x", kFloat, dims_of(bytes, 4, inner));
            graph.constant("start", list_of({start})).constant("end", list_of({end}));
            graph.constant("axis", list_of({axis})).constant("step", list_of({step}));
            graph.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"}).output("y");
          }};
}

// Rows of a table, in random order.
BandwidthCase gather(int64_t width) {
  return {.name = "Gather rows of " + std::to_string(width),
          .make = [=](CaseGraph& graph, int64_t bytes) {
            const std::vector<int64_t> dims = dims_of(bytes, 4, {width});
            std::vector<int64_t> rows;
            for (int64_t row = 0; row < dims[0]; ++row) rows.push_back(row * 7919 % dims[0]);
            graph.input("x", kFloat, dims).input("rows", list_of(rows));
            graph.node("Gather", {"x", "rows"}, {"y"}).output("y");
          }};
}

BandwidthCase expand(const std::string& name, std::vector<int64_t> inner,
                     std::vector<int64_t> repeated) {
  return {.name = "Expand " + name, .make = [=](CaseGraph& graph, int64_t bytes) {
            const std::vector<int64_t> dims = dims_of(bytes, 4, inner);
            std::vector<int64_t> from = repeated;
            if (from.front() < 0) from.front() = dims.front();
            graph.input("x", kFloat, from).constant("shape", list_of(dims));
            graph.node("Expand", {"x", "shape"}, {"y"}).output("y");
          }};
}

BandwidthCase pad(const std::string& name, const std::string& mode, const std::string& layout) {
  return {.name = "Pad " + name + " " + layout,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                graph.input("x", kFloat, dims_of(bytes, 4, {64, 56, 56}));
                graph.constant("pads", list_of({0, 0, 1, 1, 0, 0, 1, 1}));
                Attributes attributes;
                attributes.set("mode", mode);
                graph.node("Pad", {"x", "pads"}, {"y"}, attributes).output("y");
              },
          .layout = layout};
}

// Resizes to twice the height and width.
BandwidthCase resize(const std::string& mode, const std::string& layout) {
  return {.name = "Resize " + mode + " x2 [N,64,28,28] " + layout,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                graph.input("x", kFloat, dims_of(bytes / 4, 4, {64, 28, 28}));
                const std::vector<float> scales = {1, 1, 2, 2};
                graph.constant("scales", Tensor::from<float>(kFloat, {4}, scales));
                Attributes attributes;
                attributes.set("mode", mode);
                const bool is_nearest = mode == "nearest";
                attributes.set("coordinate_transformation_mode",
                               std::string(is_nearest ? "asymmetric" : "half_pixel"));
                attributes.set("nearest_mode", std::string("floor"));
                graph.node("Resize", {"x", "", "scales"}, {"y"}, attributes).output("y");
              },
          .layout = layout};
}

BandwidthCase blocks(const std::string& op, std::vector<int64_t> inner,
                     const std::string& layout = "row_major") {
  return {.name = op + " 2 " + layout,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                graph.input("x", kFloat, dims_of(bytes, 4, inner));
                Attributes attributes;
                attributes.set("blocksize", int64_t{2});
                graph.node(op, {"x"}, {"y"}, attributes).output("y");
              },
          .layout = layout};
}

BandwidthCase arg_max(const std::string& name, std::vector<int64_t> inner, int64_t axis) {
  return {.name = "ArgMax " + name,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                graph.input("x", kFloat, dims_of(bytes, 4, inner));
                Attributes attributes;
                attributes.set("axis", axis);
                graph.node("ArgMax", {"x"}, {"y"}, attributes).output("y");
              },
          .limit = Limit::Read};
}

void scatter(CaseGraph& graph, int64_t bytes) {
  const std::vector<int64_t> dims = dims_of(bytes, 4, {256});
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < dims[0]; ++row) rows.push_back(row * 7919 % dims[0]);
  graph.input("x", kFloat, dims).input("updates", kFloat, dims);
  graph.input("rows", Tensor::from<int64_t>(DataType::Int64, {dims[0], 1}, rows));
  graph.node("ScatterND", {"x", "rows", "updates"}, {"y"}).output("y");
}

void cum_sum(CaseGraph& graph, int64_t bytes) {
  graph.input("x", kFloat, dims_of(bytes, 4, {1024})).constant("axis", list_of({1}));
  graph.node("CumSum", {"x", "axis"}, {"y"}).output("y");
}

std::vector<BandwidthCase> transpose_cases() {
  return {
      square("square float32", kFloat, 64),
      square("square float32, odd", kFloat, 61),
      square("square int64", DataType::Int64, 64),
      square("square float16", DataType::Float16, 64),
      square("square int8", DataType::Int8, 64),
      transpose("[N,64,56,56] to channels last", {64, 56, 56}, {0, 2, 3, 1}),
      transpose("[N,56,56,64] to channels first", {56, 56, 64}, {0, 3, 1, 2}),
      channels(3, true),
      channels(3, false),
      channels(6, true),
      channels(85, false),
      transpose("heads [B,128,12,64]", {128, 12, 64}, {0, 2, 1, 3}),
      transpose("keys [B,12,128,64]", {12, 128, 64}, {0, 1, 3, 2}),
      transpose("shuffle [N,2,58,28,28]", {2, 58, 28, 28}, {0, 2, 1, 3, 4}),
      transpose("int64 [N,3,16,16]", {3, 16, 16}, {0, 2, 3, 1}, DataType::Int64),
  };
}

}  // namespace

std::vector<BandwidthCase> copy_cases() {
  std::vector<BandwidthCase> cases = transpose_cases();
  for (const char* layout : {"row_major", "nhwc", "nchw16c"}) {
    cases.push_back(
        concat(std::string("channels [N,64,28,28] ") + layout, {64, 28, 28}, 1, layout));
    cases.push_back(split(std::string("channels [N,64,28,28] ") + layout, {64, 28, 28}, 1, layout));
    cases.push_back(pad("pixels", "constant", layout));
    cases.push_back(resize("nearest", layout));
    cases.push_back(resize("linear", layout));
    cases.push_back(resize("cubic", layout));
  }
  cases.push_back(concat("last [R,64]", {64}, 1));
  cases.push_back(concat("last [R,3]", {3}, 1));
  cases.push_back(split("last [R,64]", {64}, 1));
  cases.push_back(pad("pixels reflect", "reflect", "row_major"));
  cases.push_back(slice("rows [R,768] of 197", {197, 768}, 1, 1, 197, 1));
  cases.push_back(slice("half of [R,512]", {512}, 1, 256, 512, 1));
  cases.push_back(slice("every second [R,512]", {512}, 1, 0, 512, 2));
  cases.push_back(slice("backwards [R,512]", {512}, 1, -1, INT64_MIN, -1));
  cases.push_back(gather(768));
  cases.push_back(gather(64));
  cases.push_back(gather(8));
  cases.push_back({.name = "ScatterND rows of 256", .make = scatter});
  cases.push_back(expand("[R,1] to [R,64]", {64}, {-1, 1}));
  cases.push_back(expand("[768] to [R,768]", {768}, {768}));
  cases.push_back(blocks("DepthToSpace", {64, 28, 28}));
  cases.push_back(blocks("DepthToSpace", {64, 28, 28}, "nhwc"));
  cases.push_back(blocks("SpaceToDepth", {16, 56, 56}));
  cases.push_back(arg_max("rows [R,1000]", {1000}, 1));
  cases.push_back(arg_max("channels [N,21,64,64]", {21, 64, 64}, 1));
  cases.push_back({.name = "CumSum rows [R,1024]", .make = cum_sum});
  return cases;
}

}  // namespace tessera::bench
