// A host and a graph of one node, as small as they can be, through which tests propose, build and
// run this plug-in's candidates.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/backend.h"
#include "tessera/backend_fusion.h"

// The contract leaves these types to the host.
struct tessera_graph {
  tessera_node node = {};
  std::vector<tessera_value> values;
  std::map<std::string, tessera_attribute> attributes;
  const tessera::plugin::FusedGroup* group = nullptr;  // what the node computes, if known
};

namespace tessera::opencl {

using TestAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;

// A tensor with elements of any type.
struct TestTensor {
  std::vector<int64_t> dims;
  std::string bytes;
  int32_t data_type = TESSERA_FLOAT32;
  bool is_constant = false;

  template <class T>
  std::vector<T> elements() const {
    std::vector<T> result(bytes.size() / sizeof(T));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  int64_t count() const {
    int64_t product = 1;
    for (const int64_t dim : dims) product *= dim;
    return product;
  }
};

template <class T>
TestTensor tensor_of(std::vector<int64_t> dims, const std::vector<T>& elements,
                     int32_t data_type = TESSERA_FLOAT32) {
  return {std::move(dims),
          std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)),
          data_type};
}

// A constant list of integers, as Slice or Reshape read it.
inline TestTensor constant_of(const std::vector<int64_t>& elements) {
  TestTensor tensor =
      tensor_of<int64_t>({static_cast<int64_t>(elements.size())}, elements, TESSERA_INT64);
  tensor.is_constant = true;
  return tensor;
}

// One node with its inputs, and the types of its outputs.
struct TestNode {
  std::string op;
  int32_t version = 1;
  std::vector<TestTensor> inputs;
  std::vector<plugin::Type> outputs;
  std::vector<std::pair<std::string, TestAttribute>> attributes = {};
};

// A node for which the host knows a fused group.
struct TestGroup {
  TestNode node;
  plugin::FusedGroup group;
};

// Thrown with the reason why the plug-in cannot be opened on this machine.
class NoDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The plug-in's shared library, opened by a host that keeps blobs in `blobs`.
class TestPlugin {
 public:
  // Throws NoDevice if there is none.
  explicit TestPlugin(std::map<std::string, std::string>& blobs);
  ~TestPlugin();
  TestPlugin(const TestPlugin&) = delete;
  TestPlugin& operator=(const TestPlugin&) = delete;

  const tessera_backend& backend() const { return backend_; }
  const tessera_device_interface& device(size_t index = 0) const {
    return *backend_.device_interfaces[index];
  }
  // The outputs of each candidate of device 0, by algorithm; for a view, nothing. Throws
  // std::runtime_error with the refusal, or if a candidate writes beside its outputs.
  std::map<std::string, std::vector<TestTensor>> run(const TestNode& node) const;
  // The outputs of the only candidate.
  std::vector<TestTensor> run_single(const TestNode& node) const;

  // The outputs of the fused candidate of device 0, whose bytes are 0x7f before.
  std::vector<TestTensor> run_group(const TestGroup& group) const;

  // The number of programs that this process has compiled from source.
  static uint64_t built_programs();

 private:
  std::map<std::string, std::vector<TestTensor>> run_candidates(const TestNode& node,
                                                                tessera_graph& graph) const;

  tessera_host host_ = {};
  tessera_backend backend_ = {};
};

// Memory of the device with guard bytes around a tensor, which begins at an offset.
class TestBuffer {
 public:
  TestBuffer(const tessera_device_interface& device, void* queue, const std::string& bytes);
  ~TestBuffer();
  TestBuffer(const TestBuffer&) = delete;
  TestBuffer& operator=(const TestBuffer&) = delete;

  const tessera_device_position& position() const { return position_; }
  // Throws std::runtime_error if guard bytes have changed.
  std::string download() const;

 private:
  const tessera_device_interface& device_;
  void* queue_;
  size_t size_;
  tessera_device_position position_ = {};
};

// Throws std::runtime_error with the text of `error` unless `status` is TESSERA_OK.
void expect_ok(int32_t status, const tessera_error& error);

}  // namespace tessera::opencl
