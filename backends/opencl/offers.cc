#include "offers.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "clblast.h"

namespace tessera::opencl {

using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// A lower bound of the time on a device of this kind. Nothing is measured yet, so it assumes the
// best rates that devices of its type reach.
double optimistic_seconds(const DeviceFacts& facts, const Effort& effort) {
  // A core of a processor has 32 multiply-adds in a cycle, a unit of a GPU about 128.
  const double flops_per_cycle = facts.is_cpu ? 64 : 256;
  const double bytes_per_second = facts.is_cpu ? 20e9 : 1e12;
  constexpr double kSecondsPerLaunch = 1e-6;
  const double flops_per_second = static_cast<double>(std::max<int64_t>(facts.compute_units, 1)) *
                                  static_cast<double>(std::max<int64_t>(facts.clock_mhz, 1)) * 1e6 *
                                  flops_per_cycle;
  return std::max({effort.flops / flops_per_second, effort.bytes / bytes_per_second,
                   kSecondsPerLaunch * static_cast<double>(effort.launches)});
}

}  // namespace

Offers::Offers(plugin::ProposeContext& context, std::shared_ptr<Device> device)
    : context_(context), device_(std::move(device)) {
  layout_ = plugin::layout_on(TESSERA_LAYOUT_DEFAULT,
                              {.kind = "opencl", .ordinal = device_->facts().ordinal});
}

Offer::Offer(const Offers& offers, const Node& node, std::string algorithm) : offers_(offers) {
  candidate_.nodes = {node.id()};
  candidate_.algorithm = std::move(algorithm);
}

Place Offer::read(const Value& value) {
  require_size(value);
  const int32_t port = plugin::input_port(candidate_, value);
  candidate_.inputs[static_cast<size_t>(port)].layout = offers_.layout();
  return {.kind = Place::Kind::Input, .port = static_cast<size_t>(port)};
}

Place Offer::write(const Value& value) {
  require_size(value);
  const int32_t port = plugin::output_port(candidate_, value);
  candidate_.outputs[static_cast<size_t>(port)].layout = offers_.layout();
  return {.kind = Place::Kind::Output, .port = static_cast<size_t>(port)};
}

Place Offer::reserve(int64_t bytes) {
  const int64_t alignment = offers_.facts().alignment_bytes;
  const int64_t begin = (work_.workspace_bytes + alignment - 1) / alignment * alignment;
  work_.workspace_bytes = begin + bytes;
  return {.kind = Place::Kind::Workspace, .offset_bytes = begin};
}

void Offer::allow_in_place(const Place& input) {
  candidate_.outputs[0].requests |= TESSERA_REQUEST_IN_PLACE;
  candidate_.outputs[0].in_place_input = static_cast<int32_t>(input.port);
}

void Offer::multiply(Product product) {
  work_.steps.emplace_back(std::move(product));
  candidate_.build_seconds = clblast_build_seconds(offers_.facts(), offers_.device()->blobs());
}

void Offer::add(double flops, double bytes) {
  candidate_.workspace_bytes = work_.workspace_bytes;
  const Effort effort = {work_.steps.size(), flops, bytes};
  add_candidate(offers_, std::move(candidate_), effort,
                [work = std::make_shared<const Work>(std::move(work_))] { return *work; });
}

void add_candidate(const Offers& offers, Candidate candidate, const Effort& effort,
                   std::function<Work()> make_work) {
  candidate.optimistic_seconds = optimistic_seconds(offers.facts(), effort);
  const std::shared_ptr<Device>& device = offers.device();
  candidate.build = [device, make_work](const plugin::BuildOptions&) {
    return build_kernel(device->opened(), make_work());
  };
  candidate.load = [device, make_work = std::move(make_work)](std::string_view saved) {
    device->opened()->programs.accept(saved);
    return build_kernel(device->opened(), make_work());
  };
  offers.context().add(std::move(candidate));
}

void require_size(const Value& value) {
  const plugin::Type type = value.type();
  if (!value.is_present() || !type.is_known()) {
    throw Failure(TESSERA_UNSUPPORTED, "computes tensors of known size only");
  }
  if (plugin::element_bytes(type.data_type) == 0) {
    throw Failure(TESSERA_UNSUPPORTED, "has no kernels for this element type");
  }
  if (type.elements() == 0) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "computes tensors with elements only, found " + type.shape_text());
  }
  if (type.elements() > std::numeric_limits<int32_t>::max()) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "computes tensors of less than 2^31 elements only, found " + type.shape_text());
  }
}

void require_floats(const Value& value) {
  require_size(value);
  if (value.type().data_type != TESSERA_FLOAT32) {
    throw Failure(TESSERA_UNSUPPORTED, "computes float32 only");
  }
}

int64_t groups_for(int64_t items, int32_t group_items) {
  return (items + group_items - 1) / group_items;
}

std::string define(const std::string& name, const std::string& text) {
  return "#define " + name + " " + text + "\n";
}

std::string define(const std::string& name, int64_t number) {
  return define(name, std::to_string(number));
}

double bytes_of(const Node& node) {
  return static_cast<double>(std::max<int64_t>(node.bytes(), 0));
}

int32_t narrow(int64_t number) {
  if (number > std::numeric_limits<int32_t>::max() ||
      number < std::numeric_limits<int32_t>::min()) {
    throw Failure(TESSERA_UNSUPPORTED, "computes with sizes below 2^31 only");
  }
  return static_cast<int32_t>(number);
}

std::vector<int32_t> narrow(const std::vector<int64_t>& numbers) {
  std::vector<int32_t> narrowed;
  narrowed.reserve(numbers.size());
  for (const int64_t number : numbers) narrowed.push_back(narrow(number));
  return narrowed;
}

}  // namespace tessera::opencl
