// A program with Tessera that bench/start.py starts: load, bind, run on zeros.
//   start_tessera MODEL THREADS RUNS [NAME=1x128]...
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "start_line.h"
#include "tessera/tessera.h"

namespace {

tessera::Tensor zeros(const tessera::ValueDescription& input) {
  std::vector<int64_t> dims;
  for (const tessera::Dimension& dim : *input.shape) dims.push_back(*dim.value);
  tessera::Tensor tensor(input.type, std::move(dims));
  std::memset(tensor.mutable_data(), 0, static_cast<size_t>(tensor.bytes()));
  return tensor;
}

void run(int count, char** arguments) {
  const tessera::BindOptions options = {
      .shapes = tessera::bench::shapes_of(arguments + 4, arguments + count),
      .threads = std::atoi(arguments[2])};
  tessera::Executor executor = tessera::load(arguments[1]).bind(options);
  std::map<std::string, tessera::Tensor> inputs;
  for (const tessera::ValueDescription& input : executor.inputs()) {
    inputs.emplace(input.name, zeros(input));
  }
  int runs = 0;
  const auto run_once = [&] {
    // The time of a warm run is that of the final plan, so wait until it is in use.
    if (runs++ == 1) executor.wait_for_swap();
    executor.run(inputs);
  };
  tessera::bench::print_start_line(run_once, std::atoi(arguments[3]));
  for (const tessera::StageRecord& stage : executor.stages()) {
    std::fprintf(stderr, "%s %.3f ms\n", stage.name.c_str(),
                 std::chrono::duration<double, std::milli>(stage.duration).count());
  }
}

}  // namespace

int main(int count, char** arguments) { return tessera::bench::main_of(count, arguments, 4, run); }
