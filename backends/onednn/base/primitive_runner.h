// Runs one primitive many times, also on several threads at once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "dnnl.hpp"

namespace tessera::onednn {

// Keeps the memory objects that oneDNN wants for its arguments: creating them takes longer than a
// small primitive does. Concurrent runs must not share them, so there is a set for each.
class PrimitiveRunner {
 public:
  struct Argument {
    int index;  // DNNL_ARG_...
    dnnl::memory::desc desc;
  };

  // The last argument is the scratchpad, which is added here.
  PrimitiveRunner(const dnnl::primitive_desc_base& description, std::vector<Argument> arguments)
      : primitive_(description.get()),
        engine_(description.get_engine()),
        arguments_(std::move(arguments)) {
    arguments_.push_back({DNNL_ARG_SCRATCHPAD, description.scratchpad_desc()});
    runs_.front().set = std::make_unique<MemorySet>(*this);
  }

  size_t workspace_bytes() const { return arguments_.back().desc.get_size(); }

  // `address_of(position)` is the memory of the argument at that position. Throws dnnl::error.
  template <class AddressOf>
  void execute(const AddressOf& address_of, void* workspace) {
    for (Run& run : runs_) {
      if (run.is_busy.exchange(true, std::memory_order_acquire)) continue;
      // Also if an exception is thrown.
      const std::unique_ptr<std::atomic<bool>, Release> release(&run.is_busy);
      if (!run.set) run.set = std::make_unique<MemorySet>(*this);
      run.set->execute(primitive_, address_of, workspace);
      return;
    }
    MemorySet(*this).execute(primitive_, address_of, workspace);
  }

 private:
  struct Release {
    void operator()(std::atomic<bool>* is_busy) const {
      is_busy->store(false, std::memory_order_release);
    }
  };

  class MemorySet {
   public:
    explicit MemorySet(const PrimitiveRunner& runner) : stream_(runner.engine_) {
      for (const Argument& argument : runner.arguments_) {
        memories_.emplace_back(argument.desc, runner.engine_, nullptr);
        handles_.push_back({argument.index, memories_.back().get()});
      }
    }

    template <class AddressOf>
    void execute(const dnnl::primitive& primitive, const AddressOf& address_of, void* workspace) {
      for (size_t position = 0; position + 1 < memories_.size(); ++position) {
        memories_[position].set_data_handle(address_of(position));
      }
      memories_.back().set_data_handle(workspace);
      const dnnl_status_t status = dnnl_primitive_execute(
          primitive.get(), stream_.get(), static_cast<int>(handles_.size()), handles_.data());
      dnnl::error::wrap_c_api(status, "oneDNN could not execute a primitive");
    }

   private:
    dnnl::stream stream_;
    std::vector<dnnl::memory> memories_;
    std::vector<dnnl_exec_arg_t> handles_;
  };

  struct Run {
    std::atomic<bool> is_busy = false;
    std::unique_ptr<MemorySet> set;
  };
  // More concurrent runs work too, but create new memory objects.
  static constexpr size_t kKeptRuns = 8;

  dnnl::primitive primitive_;
  dnnl::engine engine_;
  std::vector<Argument> arguments_;
  std::array<Run, kKeptRuns> runs_;
};

}  // namespace tessera::onednn
