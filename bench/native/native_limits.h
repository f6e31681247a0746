// Loops that only access memory: the limits with which kernels are compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/threads/parallel.h"
#include "tessera/tensor.h"

namespace tessera::bench {

// Transfers this many bytes, read and written together, in each run.
class LimitLoop {
 public:
  using Piece = void (*)(const char* from, char* to, int64_t bytes);

  LimitLoop(std::string name, int64_t bytes, bool writes, Piece piece);

  const std::string& name() const { return name_; }
  void run(ThreadPool& pool);

 private:
  std::string name_;
  int64_t bytes_;  // of each of the tensors
  Tensor from_;
  Tensor to_;
  Piece piece_;
};

// The C library's copy and a loop of streaming stores.
std::vector<LimitLoop> copy_limits(int64_t bytes);
// A loop that only reads.
std::vector<LimitLoop> read_limits(int64_t bytes);

}  // namespace tessera::bench
