// Starts a WorkerBench without plug-ins, prints the id of its process, and waits to be killed.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "microbench/worker_bench.h"

int main(int count, char** arguments) {
  tessera::tuning::WorkerOptions options;
  if (count > 1) options.program = arguments[1];
  const tessera::Log log([](const std::string& message) { std::printf("%s\n", message.c_str()); });
  const auto bench = tessera::tuning::start_worker({}, options, log);
  std::printf("worker %d\n", bench == nullptr ? -1 : bench->process_id());
  std::fflush(stdout);
  ::pause();
  return 0;
}
