// Offering candidates whose ports are all on one device. The families of kernels below build their
// candidates with an Offer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "tessera/backend.h"
#include "work.h"

namespace tessera::opencl {

// One call of Backend::propose() for one device.
class Offers {
 public:
  Offers(plugin::ProposeContext& context, std::shared_ptr<Device> device);

  plugin::ProposeContext& context() const { return context_; }
  const std::string& layout() const { return layout_; }  // row-major on the device
  const DeviceFacts& facts() const { return device_->facts(); }
  const std::shared_ptr<Device>& device() const { return device_; }

 private:
  plugin::ProposeContext& context_;
  std::shared_ptr<Device> device_;
  std::string layout_;
};

// One candidate while it is being put together. Throws Failure (TESSERA_UNSUPPORTED) for values
// that no kernel of this plug-in can hold: of unknown or no elements, or of too many.
class Offer {
 public:
  Offer(const Offers& offers, const plugin::Node& node, std::string algorithm = "");

  // Adds ports, each value once, and returns where the kernel finds the tensor.
  Place read(const plugin::Value& value);
  Place write(const plugin::Value& value);
  // Scratch memory of `bytes` bytes.
  Place reserve(int64_t bytes);
  // Output 0 may lie in the memory of `input`, if both have the same size.
  void allow_in_place(const Place& input);

  void launch(Launch launch) { work_.steps.emplace_back(std::move(launch)); }
  // A step of CLBlast.
  void multiply(Product product);

  // Hands the candidate to the host. Operations and bytes decide the estimate of its time.
  void add(double flops, double bytes);

 private:
  const Offers& offers_;
  plugin::Candidate candidate_;
  Work work_;
};

// The numbers from which a candidate's time is estimated.
struct Effort {
  size_t launches = 1;
  double flops = 0;
  double bytes = 0;
};

// Hands a candidate without `build` and estimates to the host. `make_work` is called when a kernel
// is built or loaded.
void add_candidate(const Offers& offers, plugin::Candidate candidate, const Effort& effort,
                   std::function<Work()> make_work);

// Throws Failure (TESSERA_UNSUPPORTED) for values that no kernel of this plug-in can hold.
void require_size(const plugin::Value& value);

// Throws Failure (TESSERA_UNSUPPORTED) unless the value is a float32 tensor whose size is known and
// that has elements.
void require_floats(const plugin::Value& value);

// The number of groups of `group_items` that contain `items` work-items together.
int64_t groups_for(int64_t items, int32_t group_items);

// A line "#define NAME text".
std::string define(const std::string& name, const std::string& text);
std::string define(const std::string& name, int64_t number);

// Bytes of the data inputs and outputs.
double bytes_of(const plugin::Node& node);

int32_t narrow(int64_t number);
std::vector<int32_t> narrow(const std::vector<int64_t>& numbers);

// Offers the node as a fused group of its own. Throws Failure (TESSERA_UNSUPPORTED) with the reason
// if the host has no expression for it, or if the device cannot compute it.
void offer_fused_node(const Offers& offers, const plugin::Node& node);

// Writes float32 elements of `from_dims`, which broadcast, to all of `to_dims`.
Launch broadcast_floats(const Place& from, const std::vector<int64_t>& from_dims, const Place& to,
                        const std::vector<int64_t>& to_dims);

// The families, each in the file of its name.
void propose_convolutions(const Offers& offers);
void propose_copies(const Offers& offers);
void propose_elementwise(const Offers& offers);
void propose_fused(const Offers& offers);
void propose_matmuls(const Offers& offers);
void propose_normalizations(const Offers& offers);
void propose_poolings(const Offers& offers);
void propose_reductions(const Offers& offers);
void propose_softmaxes(const Offers& offers);
void propose_views(const Offers& offers);

}  // namespace tessera::opencl
