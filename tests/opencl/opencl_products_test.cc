// Matrix products, convolutions and poolings of the plug-in `opencl`, compared with loops.
#include <algorithm>
#include <functional>

#include "base/matchers_test.h"
#include "opencl_fixture.h"

namespace tessera::opencl {
namespace {

using plugin::Type;

using Dims = std::vector<int64_t>;

// --- Matrix products -----------------------------------------------------------------------------

struct Sizes {
  int64_t m;
  int64_t n;
  int64_t k;
};

TEST_F(OpenclTest, MultipliesMatrices) {
  for (const Sizes& sizes :
       std::vector<Sizes>{{1, 1, 1}, {3, 5, 7}, {64, 64, 64}, {33, 100, 17}, {200, 130, 300}}) {
    const TestTensor a = random_tensor({sizes.m, sizes.k}, 1);
    const TestTensor b = random_tensor({sizes.k, sizes.n}, 2);
    const std::vector<float> expected =
        product(a.elements<float>().data(), b.elements<float>().data(), sizes.m, sizes.n, sizes.k);
    EXPECT_THAT(run({"MatMul", 13, {a, b}, {floats({sizes.m, sizes.n})}}),
                Pointwise(FloatNear(1e-3F), expected));
  }
}

TEST_F(OpenclTest, MultipliesMatricesAndVectors) {
  for (const int64_t k : {1, 19, 700}) {
    const TestTensor row = random_tensor({1, k}, 1);
    const TestTensor b = random_tensor({k, 37}, 2);
    EXPECT_THAT(run({"MatMul", 13, {row, b}, {floats({1, 37})}}),
                Pointwise(FloatNear(1e-4F), product(row.elements<float>().data(),
                                                    b.elements<float>().data(), 1, 37, k)));
    const TestTensor a = random_tensor({37, k}, 3);
    const TestTensor column = random_tensor({k}, 4);
    const std::vector<float> expected =
        product(a.elements<float>().data(), column.elements<float>().data(), 37, 1, k);
    EXPECT_THAT(run({"MatMul", 13, {a, column}, {floats({37})}}),
                Pointwise(FloatNear(1e-4F), expected));
    // The product as a row and a transposed matrix, with something added.
    const TestTensor bias = random_tensor({37}, 5);
    const TestTensor same = tensor_of({1, k}, column.elements<float>());
    std::vector<float> sums = expected;
    for (size_t index = 0; index < sums.size(); ++index) {
      sums[index] += bias.elements<float>()[index];
    }
    EXPECT_THAT(run({"Gemm", 13, {same, a, bias}, {floats({1, 37})}, {{"transB", int64_t{1}}}}),
                Pointwise(FloatNear(1e-4F), sums));
  }
}

TEST_F(OpenclTest, MultipliesBatchesThatBroadcast) {
  const TestTensor a = random_tensor({2, 1, 3, 4}, 1);
  const TestTensor b = random_tensor({5, 4, 6}, 2);
  const std::vector<float> found = run({"MatMul", 13, {a, b}, {floats({2, 5, 3, 6})}});
  std::vector<float> expected;
  for (int64_t left = 0; left < 2; ++left) {
    for (int64_t right = 0; right < 5; ++right) {
      const auto one = product(a.elements<float>().data() + left * 12,
                               b.elements<float>().data() + right * 24, 3, 6, 4);
      expected.insert(expected.end(), one.begin(), one.end());
    }
  }
  EXPECT_THAT(found, Pointwise(FloatNear(1e-4F), expected));
}

TEST_F(OpenclTest, ComputesGemmWithTransposesAndBias) {
  const TestTensor a = random_tensor({7, 5}, 1);  // transposed: 5 x 7
  const TestTensor b = random_tensor({6, 7}, 2);  // transposed: 7 x 6
  const TestTensor c = random_tensor({6}, 3);
  const std::vector<float> found =
      run({"Gemm",
           13,
           {a, b, c},
           {floats({5, 6})},
           {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5F}, {"beta", 2.0F}}});
  std::vector<float> expected;
  for (size_t row = 0; row < 5; ++row) {
    for (size_t column = 0; column < 6; ++column) {
      float sum = 0;
      for (size_t index = 0; index < 7; ++index) {
        sum += a.elements<float>()[index * 5 + row] * b.elements<float>()[column * 7 + index];
      }
      expected.push_back(0.5F * sum + 2 * c.elements<float>()[column]);
    }
  }
  EXPECT_THAT(found, Pointwise(FloatNear(1e-4F), expected));
}

// --- Windows -------------------------------------------------------------------------------------

struct Geometry {
  int64_t channels = 3;
  int64_t out_channels = 4;
  int64_t group = 1;
  int64_t size = 9;  // rows and columns
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;

  int64_t output() const { return (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1; }
};

float at_or(const std::vector<float>& image, const Geometry& geometry, int64_t channel, int64_t row,
            int64_t column, float otherwise) {
  const bool is_inside = row >= 0 && column >= 0 && row < geometry.size && column < geometry.size;
  if (!is_inside) return otherwise;
  return image[static_cast<size_t>((channel * geometry.size + row) * geometry.size + column)];
}

// Calls visit(row, column, tap) for the taps of an output pixel.
void for_each_tap(const Geometry& geometry, int64_t row, int64_t column,
                  const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  for (int64_t i = 0; i < geometry.kernel; ++i) {
    for (int64_t j = 0; j < geometry.kernel; ++j) {
      visit(row * geometry.stride - geometry.pad + i * geometry.dilation,
            column * geometry.stride - geometry.pad + j * geometry.dilation,
            i * geometry.kernel + j);
    }
  }
}

std::vector<float> convolved(const Geometry& geometry, const std::vector<float>& x,
                             const std::vector<float>& w, const std::vector<float>& bias) {
  std::vector<float> result;
  const int64_t group_in = geometry.channels / geometry.group;
  const int64_t group_out = geometry.out_channels / geometry.group;
  const int64_t images =
      static_cast<int64_t>(x.size()) / geometry.channels / geometry.size / geometry.size;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t out = 0; out < geometry.out_channels; ++out) {
      for (int64_t pixel = 0; pixel < geometry.output() * geometry.output(); ++pixel) {
        float sum = bias[static_cast<size_t>(out)];
        for (int64_t in = 0; in < group_in; ++in) {
          const int64_t channel = image * geometry.channels + out / group_out * group_in + in;
          for_each_tap(geometry, pixel / geometry.output(), pixel % geometry.output(),
                       [&](int64_t row, int64_t column, int64_t tap) {
                         const int64_t weight =
                             (out * group_in + in) * geometry.kernel * geometry.kernel + tap;
                         sum += w[static_cast<size_t>(weight)] *
                                at_or(x, geometry, channel, row, column, 0);
                       });
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

TEST_F(OpenclTest, ConvolvesImages) {
  const std::vector<Geometry> geometries = {
      {},
      {.pad = 1},
      {.kernel = 1},
      {.stride = 2, .pad = 1},
      {.dilation = 2, .pad = 2},
      {.channels = 6, .out_channels = 6, .group = 6, .pad = 1},
      {.channels = 16, .out_channels = 32, .group = 2, .pad = 1},
      {.channels = 4, .out_channels = 6, .group = 2, .stride = 2},
  };
  for (const Geometry& geometry : geometries) {
    const TestTensor x = random_tensor({2, geometry.channels, geometry.size, geometry.size}, 1);
    const TestTensor w = random_tensor({geometry.out_channels, geometry.channels / geometry.group,
                                        geometry.kernel, geometry.kernel},
                                       2);
    const TestTensor bias = random_tensor({geometry.out_channels}, 3);
    const Type output = floats({2, geometry.out_channels, geometry.output(), geometry.output()});
    const TestNode node = {
        "Conv",
        11,
        {x, w, bias},
        {output},
        {{"group", geometry.group},
         {"strides", Dims{geometry.stride, geometry.stride}},
         {"dilations", Dims{geometry.dilation, geometry.dilation}},
         {"pads", Dims{geometry.pad, geometry.pad, geometry.pad, geometry.pad}}}};
    EXPECT_THAT(run(node), Pointwise(FloatNear(1e-3F),
                                     convolved(geometry, x.elements<float>(), w.elements<float>(),
                                               bias.elements<float>())));
  }
}

TEST_F(OpenclTest, Pools) {
  const Geometry geometry = {.kernel = 3, .stride = 2, .pad = 1};
  const TestTensor x = random_tensor({1, 2, geometry.size, geometry.size});
  const Type output = floats({1, 2, geometry.output(), geometry.output()});
  std::vector<float> largest;
  std::vector<float> averages;
  for (int64_t channel = 0; channel < 2; ++channel) {
    for (int64_t pixel = 0; pixel < geometry.output() * geometry.output(); ++pixel) {
      float best = -kInfinity;
      float sum = 0;
      int64_t count = 0;
      for_each_tap(geometry, pixel / geometry.output(), pixel % geometry.output(),
                   [&](int64_t row, int64_t column, int64_t) {
                     const float element =
                         at_or(x.elements<float>(), geometry, channel, row, column, -kInfinity);
                     best = std::max(best, element);
                     if (element == -kInfinity) return;
                     sum += element;
                     ++count;
                   });
      largest.push_back(best);
      averages.push_back(sum / static_cast<float>(count));
    }
  }
  const std::vector<std::pair<std::string, TestAttribute>> attributes = {
      {"kernel_shape", Dims{3, 3}}, {"strides", Dims{2, 2}}, {"pads", Dims{1, 1, 1, 1}}};
  EXPECT_EQ(run({"MaxPool", 12, {x}, {output}, attributes}), largest);
  EXPECT_THAT(run({"AveragePool", 11, {x}, {output}, attributes}),
              Pointwise(FloatNear(1e-5F), averages));
}

}  // namespace
}  // namespace tessera::opencl
