#include "verify/check_layouts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "backend/device_memory/device_tensor.h"
#include "backend/layouts.h"
#include "tessera/error.h"
#include "verify/compare_tensors.h"
#include "verify/random_tensor.h"
#include "verify/stored_tensor.h"

namespace tessera::verification {
namespace {

const std::vector<std::vector<int64_t>> kShapes = {{},
                                                   {1},
                                                   {7},
                                                   {64},
                                                   {3, 5},
                                                   {17, 1},
                                                   {1, 33},
                                                   {64, 48},
                                                   {1, 3, 5},
                                                   {2, 17, 7},
                                                   {1, 1, 1},
                                                   {1, 3, 9, 7},
                                                   {2, 8, 4, 4},
                                                   {1, 16, 3, 5},
                                                   {2, 17, 3, 1},
                                                   {1, 33, 1, 7},
                                                   {2, 0, 3, 3},
                                                   {1, 3, 2, 5, 3},
                                                   {2, 9, 1, 3, 2},
                                                   {1, 2, 3, 1, 2, 2},
                                                   {2, 1, 2, 1, 3, 1, 2}};

constexpr DataType kTypes[] = {
    DataType::Bool,     DataType::Int8,    DataType::Int16,  DataType::Int32,  DataType::Int64,
    DataType::UInt8,    DataType::UInt16,  DataType::UInt32, DataType::UInt64, DataType::Float16,
    DataType::BFloat16, DataType::Float32, DataType::Float64};

std::string type_text(const TensorType& type) {
  return std::string(name(type.element)) + " " + dims_text(type.dims);
}

// Converts `row_major` to the contract's layout `name`; nullopt if the name is not shared or the
// layout does not support such tensors. Deliberately independent of the code of all plug-ins.
std::optional<std::vector<char>> shared_layout(const std::string& name,
                                               const StoredTensor& row_major) {
  const std::vector<int64_t>& dims = row_major.type.dims;
  if (dims.size() < 3 || dims.size() > 5) return std::nullopt;
  const int64_t channels = dims[1];
  int64_t block = 0;
  if (name == "nhwc") block = channels;
  if (name == "nchw8c") block = 8;
  if (name == "nchw16c") block = 16;
  if (block == 0) return std::nullopt;
  int64_t positions = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) positions *= dims[axis];
  const int64_t blocks = (channels + block - 1) / block;
  const int64_t size = element_bytes(row_major.type.element);
  std::vector<char> bytes(static_cast<size_t>(dims[0] * blocks * positions * block * size), 0);
  for (int64_t image = 0; image < dims[0]; ++image) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t position = 0; position < positions; ++position) {
        const int64_t source = (image * channels + channel) * positions + position;
        const int64_t target =
            ((image * blocks + channel / block) * positions + position) * block + channel % block;
        std::memcpy(bytes.data() + target * size, row_major.memory->data() + source * size,
                    static_cast<size_t>(size));
      }
    }
  }
  return bytes;
}

class LayoutChecker {
 public:
  LayoutChecker(const std::shared_ptr<const Plugin>& plugin, uint64_t seed, VerifySteps& steps,
                Report& report)
      : plugin_(plugin),
        layouts_(std::span(&plugin_, 1)),
        seed_(seed),
        steps_(steps),
        report_(report) {}

  void check_all() {
    const tessera_backend& abi = plugin_->abi();
    for (const tessera_layout& layout :
         std::span(abi.layouts, static_cast<size_t>(abi.layout_count))) {
      const std::string subject = "layout '" + std::string(layout.name) + "'";
      if (steps_.begin_unit(subject, 0, 0, report_)) check_layout(layout);
    }
    for (const tessera_conversion& conversion :
         std::span(abi.conversions, static_cast<size_t>(abi.conversion_count))) {
      const std::string subject =
          "conversion '" + std::string(conversion.from) + "' to '" + conversion.to + "'";
      if (steps_.begin_unit(subject, 0, 0, report_)) check_direct(conversion);
    }
  }

 private:
  void check_layout(const tessera_layout& layout) {
    const tessera_device& device = plugin_->abi().devices[layout.device];
    const bool has_memory = interface_of(plugin_->abi(), layout.device) != nullptr;
    if (!has_memory && std::string_view(device.kind) != "cpu") {
      return report_.skip("layouts: there and back");
    }
    const std::string name = layout.name + (has_memory ? "@" + device_name(device) : std::string());
    const std::optional<LayoutId> id = layouts_.find(name);
    if (!id) return report_.skip("layouts: there and back");  // its device cannot be used
    bool holds_any = false;
    for (const DataType element : kTypes) {
      for (const std::vector<int64_t>& dims : kShapes) {
        const TensorType type = {element, dims};
        const std::string location = "layout '" + name + "', " + type_text(type);
        steps_.report("layouts: there and back", location);
        if (!layouts_.storage_bytes(*id, type)) continue;
        holds_any = true;
        try {
          if (has_memory) {
            check_on_device(*id, type, location);
          } else {
            check_type(layout, *id, type, location);
          }
        } catch (const Error& error) {
          report_.fail("layouts: there and back", location, error.message());
        }
      }
    }
    report_.expect("layouts: hold something", "layout '" + std::string(layout.name) + "'",
                   holds_any ? "" : "it holds none of the types and shapes that were tried");
  }

  // Converts on the device, there and back.
  void check_on_device(LayoutId id, const TensorType& type, const std::string& location) {
    const StoredTensor original = store(random_bits(type.element, type.dims, seed_));
    const DeviceId device_id = layouts_.device_of(id);
    const Device& device = layouts_.device(device_id);
    const LayoutId dense = layouts_.default_layout(device_id);
    ThreadPool pool(1);
    const std::shared_ptr<const void> there =
        stored_on_device(layouts_, id, type, original.memory->data(), location, pool);
    const DeviceMemory back(device, layouts_.known_storage_bytes(dense, type));
    const DeviceQueue queue(device);
    RunContext context(pool);
    context.set_queue(queue.get(), true);
    tessera_device_position from{const_cast<void*>(there.get()), 0};
    tessera_device_position to{back.handle(), 0};
    const std::vector<ConversionStep> route = layouts_.route(id, dense, type);
    if (route.size() != 1) return;  // the shared default itself
    convert(route[0], location, context,
            buffer_on_device(device, type, layouts_.known_storage_bytes(id, type), from, 0),
            buffer_on_device(device, type, back.bytes(), to, TESSERA_REQUEST_WRITE));
    std::vector<char> found(static_cast<size_t>(back.bytes()));
    device.copy_to_host(queue.get(), to, found.data(), back.bytes());
    device.synchronise_queue(queue.get());
    report_.expect("layouts: there and back", location,
                   explain_byte_difference(original.memory->contents(), found));
  }

  // Converts once and checks both buffers.
  std::string run(const tessera_layout& layout, tessera_convert convert, const StoredTensor& from,
                  const StoredTensor& to, int threads) {
    const std::vector<char> before(from.memory->contents().begin(), from.memory->contents().end());
    ThreadPool pool(threads);
    RunContext context(pool);
    const tessera_buffer source = from.abi();
    const tessera_buffer target = to.abi(TESSERA_REQUEST_WRITE);
    Status status;
    pool.execute([&] {
      status = call_plugin([&](tessera_error* error) {
        return context.checked(convert(layout.self, context.abi(), &source, &target, error), error);
      });
    });
    if (!status.is_fine()) return "it fails: " + status.message;
    if (std::string damage = to.memory->explain_damage(); !damage.empty()) {
      return "its target: " + damage;
    }
    if (std::string damage = from.memory->explain_damage(); !damage.empty()) {
      return "its source: " + damage;
    }
    return explain_byte_difference(before, from.memory->contents()).empty()
               ? ""
               : "it changes its source";
  }

  void check_type(const tessera_layout& layout, LayoutId id, const TensorType& type,
                  const std::string& location) {
    const int64_t bytes = *layouts_.storage_bytes(id, type);
    const StoredTensor original = store(random_bits(type.element, type.dims, seed_));
    std::string damage;
    std::vector<StoredTensor> converted;
    for (const int threads : {1, 2}) {
      converted.push_back(make_storage(layouts_, id, type));
      const std::string wrong =
          run(layout, layout.from_default, original, converted.back(), threads);
      if (damage.empty() && !wrong.empty()) damage = "from_default: " + wrong;
    }
    const StoredTensor back = make_storage(layouts_, kDefaultLayout, type);
    const std::string wrong = run(layout, layout.to_default, converted[0], back, 1);
    if (damage.empty() && !wrong.empty()) damage = "to_default: " + wrong;
    report_.expect("layouts: guard bytes and sources", location, damage);
    if (!damage.empty()) return;
    report_.expect("layouts: there and back", location,
                   explain_byte_difference(original.memory->contents(), back.memory->contents()));
    report_.expect(
        "layouts: one thread and two", location,
        explain_byte_difference(converted[0].memory->contents(), converted[1].memory->contents()));
    if ((layout.flags & TESSERA_LAYOUT_IS_DENSE) != 0) check_dense(id, type, bytes, location);
    if (const auto expected = shared_layout(layout.name, original)) {
      report_.expect("layouts: shared names", location,
                     explain_byte_difference(*expected, converted[0].memory->contents()));
    }
  }

  void check_dense(LayoutId id, const TensorType& type, int64_t bytes,
                   const std::string& location) {
    ThreadPool pool(1);
    std::string wrong;
    if (bytes % element_bytes(type.element) != 0) {
      wrong = "storage of " + std::to_string(bytes) + " bytes is no number of whole elements";
    }
    const std::vector<bool> is_padding = padding_of(layouts_, id, type, pool);
    const auto stored = std::count(is_padding.begin(), is_padding.end(), false);
    const int64_t elements = element_count(type.dims);
    if (wrong.empty() && stored != elements) {
      wrong = "of storage " + std::to_string(stored) + " elements are no zero padding, expected " +
              std::to_string(elements) + ", one for each element";
    }
    report_.expect("layouts: padding is zero", location, wrong);
  }

  void check_direct(const tessera_conversion& conversion) {
    const std::optional<LayoutId> from = layouts_.find(conversion.from);
    const std::optional<LayoutId> to = layouts_.find(conversion.to);
    const std::string text =
        "conversion '" + std::string(conversion.from) + "' to '" + conversion.to + "'";
    const auto is_on_host = [&](LayoutId id) { return layouts_.device_of(id) == kHostDevice; };
    if (!from || !to || !is_on_host(*from) || !is_on_host(*to)) {
      return report_.skip("conversions: as through the default layout");
    }
    for (const std::vector<int64_t>& dims : kShapes) {
      for (const DataType element : {DataType::Float32, DataType::Int8, DataType::Float16}) {
        const TensorType type = {element, dims};
        steps_.report("conversions: as through the default layout", text + ", " + type_text(type));
        if (!layouts_.storage_bytes(*from, type) || !layouts_.storage_bytes(*to, type)) continue;
        const std::string location = text + ", " + type_text(type);
        try {
          check_direct_type(conversion, *from, *to, type, location);
        } catch (const Error& error) {
          report_.fail("conversions: as through the default layout", location, error.message());
        }
      }
    }
  }

  void check_direct_type(const tessera_conversion& conversion, LayoutId from, LayoutId to,
                         const TensorType& type, const std::string& location) {
    ThreadPool pool(1);
    // Reaches each layout by its own conversion from the default layout, even if there are shorter
    // routes.
    const StoredTensor original = store(random_bits(type.element, type.dims, seed_));
    const StoredTensor source = from_default(from, original, pool);
    const StoredTensor expected = from_default(to, original, pool);
    const StoredTensor found = make_storage(layouts_, to, type);
    tessera_layout as_layout = {};
    as_layout.self = conversion.self;
    const std::string wrong = run(as_layout, conversion.convert, source, found, 2);
    report_.expect("conversions: guard bytes and sources", location, wrong);
    if (!wrong.empty()) return;
    report_.expect("conversions: as through the default layout", location,
                   explain_byte_difference(expected.memory->contents(), found.memory->contents()));
  }

  StoredTensor from_default(LayoutId id, const StoredTensor& original, ThreadPool& pool) {
    if (id == kDefaultLayout) return original;
    const tessera_backend& abi = plugin_->abi();
    const std::span all(abi.layouts, static_cast<size_t>(abi.layout_count));
    const auto layout = std::find_if(all.begin(), all.end(), [&](const tessera_layout& each) {
      return each.name == layouts_.name(id);
    });
    StoredTensor made = make_storage(layouts_, id, original.type);
    RunContext context(pool);
    const ConversionStep step = {kDefaultLayout, id, plugin_.get(), layout->from_default,
                                 layout->self};
    pool.execute([&] {
      convert(step, "conversion", context, original.abi(), made.abi(TESSERA_REQUEST_WRITE));
    });
    return made;
  }

  std::shared_ptr<const Plugin> plugin_;
  LayoutTable layouts_;
  uint64_t seed_;
  VerifySteps& steps_;
  Report& report_;
};

}  // namespace

void check_layouts(const std::shared_ptr<const Plugin>& plugin, uint64_t seed, VerifySteps& steps,
                   Report& report) {
  LayoutChecker(plugin, seed, steps, report).check_all();
}

}  // namespace tessera::verification
