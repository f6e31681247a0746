// Indices out of range end a run with an error that names them.

#include <memory>
#include <string>
#include <vector>

#include "any_tensor.h"
#include "backend/candidates.h"
#include "backend/contract/run_context.h"
#include "backend/graph_view.h"
#include "backend/host.h"
#include "base/errors/error_test.h"
#include "base/tensor/tensors_test.h"
#include "infer/infer.h"

namespace tessera {
namespace {

tessera_buffer buffer_of(Tensor& tensor) {
  tessera_buffer buffer = {};
  buffer.data = tensor.mutable_data();
  buffer.bytes = tensor.bytes();
  buffer.data_type = static_cast<int32_t>(tensor.type());
  buffer.rank = static_cast<int32_t>(tensor.rank());
  buffer.dims = tensor.dims().data();
  buffer.request = TESSERA_REQUEST_WRITE;
  return buffer;
}

// The error of the native kernel of `op` for these inputs; "" if it runs.
std::string run_error_of(const std::string& op, std::vector<Tensor> inputs,
                         const std::vector<int64_t>& output) {
  RandomGraph made(all_ops(), 18);
  std::vector<std::string> names;
  for (size_t index = 0; index < inputs.size(); ++index) {
    names.push_back("x" + std::to_string(index));
    made.input(names.back(), inputs[index]);
  }
  made.node("y", op, names);
  made.builder.output("y");
  const Graph typed = infer_types(made.builder.graph(), all_ops(), Log());
  const std::string file = std::string(TESSERA_PLUGIN_FOLDER) + "/backend_native.so";
  const std::vector<std::shared_ptr<const Plugin>> plugins = {
      Plugin::open(file, std::make_shared<HostServices>())};
  const LayoutTable layouts(plugins);
  OfferOptions options;
  options.threads = 2;
  const Offers offers = collect_offers(tessera_graph(typed, all_ops()), plugins, layouts, options);
  if (offers.candidates.empty()) return "no candidate";
  const Kernel kernel = offers.candidates.front().build(2);
  std::vector<tessera_buffer> from;
  for (Tensor& input : inputs) from.push_back(buffer_of(input));
  Tensor result(DataType::Float32, output);
  const tessera_buffer to = buffer_of(result);
  ThreadPool pool(2);
  RunContext context(pool);
  return error_of(ErrorKind::InvalidArgument, [&] {
    pool.execute([&] { kernel.run("node 'y'", context, from.data(), &to); });
  });
}

TEST(NativeWrongIndices, EndTheRunAndAreNamed) {
  const Tensor data(DataType::Float32, {3, 4});
  const Tensor two(DataType::Float32, {2, 4});
  const Tensor pair(DataType::Float32, {1, 2});
  const auto names = [](const std::string& found) {
    return HasSubstr("expected an index in [-3, 3), found " + found);
  };
  EXPECT_THAT(run_error_of("Gather", {data, ints({2}, {1, 3})}, {2, 4}), names("3"));
  EXPECT_THAT(run_error_of("Gather", {data, ints({2}, {-4, 1})}, {2, 4}), names("-4"));
  EXPECT_THAT(run_error_of("GatherND", {data, ints({1, 2}, {7, 0})}, {1}), names("7"));
  EXPECT_THAT(run_error_of("GatherElements", {data, ints({1, 2}, {0, 5})}, {1, 2}), names("5"));
  EXPECT_THAT(run_error_of("ScatterND", {data, ints({2, 1}, {0, 9}), two}, {3, 4}), names("9"));
  EXPECT_THAT(run_error_of("ScatterElements", {data, ints({1, 2}, {0, -9}), pair}, {3, 4}),
              names("-9"));
  EXPECT_EQ(run_error_of("Gather", {data, ints({2}, {-3, 2})}, {2, 4}), "");
}

}  // namespace
}  // namespace tessera
