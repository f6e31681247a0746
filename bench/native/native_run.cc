#include "native_run.h"

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "backend/graph_view.h"
#include "backend/host.h"
#include "infer/infer.h"

namespace tessera::bench {
namespace {

std::string plugin_file(const std::string& backend) {
  return std::string(TESSERA_PLUGIN_FOLDER) + "/backend_" + backend + ".so";
}

// Packing and conversions are not measured, and their data is not random.
tessera_buffer buffer_at(void* data, int64_t bytes, DataType type,
                         const std::vector<int64_t>& dims) {
  tessera_buffer buffer = {};
  buffer.data = data;
  buffer.bytes = bytes;
  buffer.data_type = static_cast<int32_t>(type);
  buffer.rank = static_cast<int32_t>(dims.size());
  buffer.dims = dims.data();
  buffer.request = TESSERA_REQUEST_WRITE;
  return buffer;
}

}  // namespace

NativeBackend::NativeBackend(const std::string& file) : registry_(ops::make_registry()) {
  const auto services = std::make_shared<HostServices>();
  plugins_.push_back(Plugin::open(file.empty() ? plugin_file("native") : file, services));
  layout_plugins_ = plugins_;
  const std::string others = plugin_file("onednn");
  if (std::filesystem::exists(others)) layout_plugins_.push_back(Plugin::open(others, services));
  layouts_ = std::make_unique<LayoutTable>(layout_plugins_);
}

NativeRun::NativeRun(const NativeBackend& backend, const BandwidthCase& wanted, int64_t bytes,
                     ThreadPool& pool)
    : pool_(pool), case_(backend.registry(), wanted.opset), context_(pool) {
  wanted.make(case_, bytes);
  typed_ = infer_types(case_.graph(), backend.registry(), Log());
  if (wanted.converted_to.empty()) {
    choose(backend, wanted);
    kernel_ = candidate_->build(pool.threads());
    fill_buffers(backend, wanted);
  } else {
    choose_conversion(backend, wanted);
  }
  workspace_ = Tensor(DataType::UInt8, {kernel_.workspace_bytes()});
  context_.set_workspace(workspace_.mutable_data(), kernel_.workspace_bytes());
}

void NativeRun::choose(const NativeBackend& backend, const BandwidthCase& wanted) {
  const tessera_graph view(typed_, backend.registry());
  OfferOptions options;
  options.threads = pool_.threads();
  const Offers offers = collect_offers(view, backend.plugins(), backend.layouts(), options);
  std::string found;
  for (const Candidate& candidate : offers.candidates) {
    const std::string& layout = backend.layouts().name(candidate.outputs.front().layout);
    found += " " + candidate.algorithm + "(" + layout + ")";
    const bool is_whole = candidate.nodes.size() == typed_.nodes.size();
    const bool is_wanted = wanted.algorithm.empty() || wanted.algorithm == candidate.algorithm;
    // Also for an input: its layout decides if an output of fewer axes has only one layout.
    const bool lies_so = layout == wanted.layout &&
                         backend.layouts().name(candidate.inputs.front().layout) == wanted.layout;
    if (!candidate.has_kernel() || !is_whole || !is_wanted || !lies_so) continue;
    candidate_ = candidate;
    return;
  }
  for (const Refusal& refusal : offers.refusals) found += " refused: " + refusal.reason;
  throw std::runtime_error(wanted.name + ": no such candidate among:" + found);
}

void NativeRun::choose_conversion(const NativeBackend& backend, const BandwidthCase& wanted) {
  const ValueId value = typed_.inputs.front();
  const TensorType type = known_type(typed_[value].type).value();
  const LayoutTable& layouts = backend.layouts();
  const LayoutId from = layouts.find(wanted.layout).value();
  const LayoutId to = layouts.find(wanted.converted_to).value();
  const auto route = layouts.route(from, to, type);
  if (route.size() != 1) throw std::runtime_error(wanted.name + ": no direct conversion");
  conversion_ = route.front();
  dims_.reserve(1000);  // buffers point into it
  inputs_.push_back(stored(backend, value, from));
  outputs_.push_back(add_buffer(value, layouts.storage_bytes(to, type).value()));
  bytes_ = inputs_.front().bytes + outputs_.front().bytes;
}

tessera_buffer NativeRun::add_buffer(ValueId value, int64_t bytes) {
  const Type& type = typed_[value].type;
  memory_.emplace_back(DataType::UInt8, std::vector<int64_t>{bytes});
  std::memset(memory_.back().mutable_data(), 0, static_cast<size_t>(bytes));
  dims_.push_back(dims_from(*type.shape));
  return buffer_at(memory_.back().mutable_data(), bytes, type.element, dims_.back());
}

tessera_buffer NativeRun::stored(const NativeBackend& backend, ValueId value, LayoutId layout) {
  const Tensor& source =
      typed_[value].is_constant() ? typed_[value].constant : case_.fed().at(typed_[value].name);
  const TensorType type{source.type(), source.dims()};
  tessera_buffer current = add_buffer(value, source.bytes());
  std::memcpy(current.data, source.data(), static_cast<size_t>(source.bytes()));
  for (const ConversionStep& step : backend.layouts().route(kDefaultLayout, layout, type)) {
    const tessera_buffer next =
        add_buffer(value, backend.layouts().storage_bytes(step.to, type).value());
    convert(step, "bench", context_, current, next);
    current = next;
  }
  return current;
}

void NativeRun::fill_buffers(const NativeBackend& backend, const BandwidthCase& wanted) {
  // Buffers point into these vectors.
  dims_.reserve(1000);
  for (const CandidateInput& input : candidate_->inputs) {
    if (input.pack == nullptr) {
      inputs_.push_back(stored(backend, input.value, input.layout));
    } else {
      const tessera_buffer from = stored(backend, input.value, kDefaultLayout);
      inputs_.push_back(add_buffer(input.value, input.pack->bytes));
      tessera_error error = {};
      error.struct_size = sizeof(error);
      if (input.pack->pack(input.pack->self, context_.abi(), &from, inputs_.back().data,
                           input.pack->bytes, &error) != TESSERA_OK) {
        throw std::runtime_error(wanted.name + ": " + error.message);
      }
    }
    bytes_ += inputs_.back().bytes;
  }
  for (const CandidateOutput& output : candidate_->outputs) {
    const std::optional<TensorType> type = known_type(typed_[output.value].type);
    if (!type) throw std::runtime_error(wanted.name + ": the size of an output is not known");
    const int64_t bytes = backend.layouts().storage_bytes(output.layout, *type).value();
    outputs_.push_back(add_buffer(output.value, bytes));
    bytes_ += bytes;
    if (!wanted.is_in_place || (output.requests & TESSERA_REQUEST_IN_PLACE) == 0) continue;
    outputs_.back().data = inputs_[static_cast<size_t>(output.in_place_input)].data;
    outputs_.back().request = TESSERA_REQUEST_IN_PLACE;
  }
}

void NativeRun::run() {
  if (conversion_) return convert(*conversion_, "bench", context_, inputs_[0], outputs_[0]);
  kernel_.run("bench", context_, inputs_.data(), outputs_.data());
}

}  // namespace tessera::bench
