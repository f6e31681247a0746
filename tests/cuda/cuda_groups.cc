// Runs fused groups on a GPU: random ones, which are compared with the evaluator, and some large
// ones, which are timed. Prints the reason and succeeds if there is no GPU or no NVRTC.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "codegen/expression/expression_builder.h"
#include "driver.h"
#include "fused_groups/random_group.h"
#include "nvrtc.h"
#include "print_cuda.h"

namespace tessera::cuda {
namespace {

constexpr const char* kUsage =
    "usage: cuda_groups [--groups COUNT] [--nvrtc FOLDER]\n\n"
    "Runs fused groups on the first GPU and compares them with the evaluator.\n";

constexpr char kFill = '\x5a';

struct Options {
  uint32_t groups = 500;
  std::string nvrtc_folder = TESSERA_NVRTC_FOLDER;
};

// Memory of the device.
class Memory {
 public:
  Memory(const Driver& driver, const std::string& bytes)
      : driver_(driver), address_(driver.allocate(bytes.size())), size_(bytes.size()) {
    driver_.copy_to_device(bytes, address_);
  }
  ~Memory() { driver_.release(address_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Driver::Address* argument() { return &address_; }
  std::string download() const { return driver_.copy_to_host(address_, size_); }

 private:
  const Driver& driver_;
  Driver::Address address_;
  size_t size_;
};

// A group with its memory, ready to be launched.
class PreparedGroup {
 public:
  PreparedGroup(const Driver& driver, const Nvrtc& nvrtc, const plugin::FusedGroup& group,
                const std::vector<std::string>& inputs, const std::vector<size_t>& output_bytes)
      : driver_(driver),
        plan_(plugin::c_kernel(group, plugin::loop_nests(group, "").at(0))),
        cubin_(nvrtc.compile(cuda_source(group, plan_), driver.architecture(), exact_options())),
        kernel_(driver.load_kernel(cubin_.bytes, "fused")) {
    for (const std::string& input : inputs) {
      inputs_.push_back(std::make_unique<Memory>(driver, input));
    }
    for (const size_t bytes : output_bytes) {
      outputs_.push_back(std::make_unique<Memory>(driver, std::string(bytes, kFill)));
    }
    for (const int32_t port : plan_.input_ports) {
      arguments_.push_back(inputs_[static_cast<size_t>(port)]->argument());
    }
    for (const int32_t port : plan_.output_ports) {
      arguments_.push_back(outputs_[static_cast<size_t>(port)]->argument());
    }
    for (auto& [name, value] : plan_.numbers) arguments_.push_back(&value);
  }

  std::vector<std::string> run() const {
    driver_.launch(kernel_, plan_.groups, plan_.group_items, arguments_);
    driver_.synchronise();
    std::vector<std::string> outputs;
    for (const auto& output : outputs_) outputs.push_back(output->download());
    return outputs;
  }

  double seconds() const {
    constexpr int kLaunches = 50;
    run();
    return driver_.seconds_of_launch(kernel_, plan_.groups, plan_.group_items, arguments_,
                                     kLaunches);
  }

  KernelUsage usage() const { return usage_from_log(cubin_.log)["fused"]; }

 private:
  const Driver& driver_;
  plugin::CKernel plan_;
  Cubin cubin_;
  void* kernel_;
  std::vector<std::unique_ptr<Memory>> inputs_;
  std::vector<std::unique_ptr<Memory>> outputs_;
  std::vector<void*> arguments_;
};

// Returns the number of groups that differ.
int compare_random_groups(const Driver& driver, const Nvrtc& nvrtc, uint32_t count) {
  int wrong = 0;
  for (uint32_t seed = 1; seed <= count; ++seed) {
    const codegen::RandomGroup random = codegen::random_group(seed, seed);
    const std::vector<std::string> expected = codegen::expected_outputs(random, kFill);
    std::vector<size_t> output_bytes;
    for (const std::string& output : expected) output_bytes.push_back(output.size());
    const std::vector<std::string> found =
        PreparedGroup(driver, nvrtc, random.group, random.inputs, output_bytes).run();
    for (size_t port = 0; port < found.size(); ++port) {
      const std::string reason =
          codegen::explain_difference(random, port, expected[port], found[port]);
      if (reason.empty()) continue;
      std::printf("group %u: %s\n", seed, reason.c_str());
      ++wrong;
      break;
    }
  }
  std::printf("%u random groups, %d of them wrong\n", count, wrong);
  return wrong;
}

// --- Times ---------------------------------------------------------------------------------------

constexpr int64_t kRows = 8'192;
constexpr int64_t kColumns = 2'048;

struct Timed {
  const char* name;
  bool reduces;
  codegen::InstructionId (*make)(codegen::ExpressionBuilder& builder, codegen::InstructionId x);
};

codegen::InstructionId number(codegen::ExpressionBuilder& builder, double value) {
  return builder.number(DataType::Float32, value);
}

codegen::InstructionId mean(codegen::ExpressionBuilder& builder, codegen::InstructionId x) {
  return builder.divide(builder.reduce(codegen::Operation::ReduceSum, x),
                        number(builder, static_cast<double>(kColumns)));
}

constexpr Timed kTimed[] = {
    {"add, relu", false,
     [](codegen::ExpressionBuilder& builder, codegen::InstructionId x) {
       const auto sum = builder.add(x, number(builder, 0.5));
       const auto zero = number(builder, 0);
       return builder.select(builder.less(sum, zero), zero, sum);
     }},
    {"100 operations", false,
     [](codegen::ExpressionBuilder& builder, codegen::InstructionId x) {
       for (int step = 0; step < 50; ++step) {
         x = builder.multiply(builder.add(x, number(builder, step)), number(builder, 0.5));
       }
       return x;
     }},
    {"root mean square norm", true,
     [](codegen::ExpressionBuilder& builder, codegen::InstructionId x) {
       const auto square = mean(builder, builder.multiply(x, x));
       return builder.divide(x, builder.square_root(builder.add(square, number(builder, 1e-5))));
     }},
    {"layer norm", true,
     [](codegen::ExpressionBuilder& builder, codegen::InstructionId x) {
       const auto centered = builder.subtract(x, mean(builder, x));
       const auto variance = mean(builder, builder.multiply(centered, centered));
       return builder.divide(centered,
                             builder.square_root(builder.add(variance, number(builder, 1e-5))));
     }},
};

plugin::FusedGroup group_of(const Timed& timed) {
  plugin::FusedGroup group;
  group.dims = {kRows, kColumns};
  group.reduced_axes = timed.reduces ? 2 : 0;
  codegen::ExpressionBuilder builder;
  plugin::FusedAccess access;
  access.is_whole = true;
  access.strides = {kColumns, 1};
  group.operands = {access};
  access.instruction = timed.make(builder, builder.operand(0, DataType::Float32));
  group.results = {access};
  for (const codegen::Instruction& instruction : builder.instructions()) {
    group.instructions.push_back(
        {static_cast<int32_t>(instruction.operation),
         static_cast<int32_t>(instruction.type),
         {instruction.arguments[0], instruction.arguments[1], instruction.arguments[2]},
         instruction.index,
         instruction.bits});
  }
  return group;
}

void time_groups(const Driver& driver, const Nvrtc& nvrtc) {
  constexpr size_t kBytes = kRows * kColumns * sizeof(float);
  std::vector<float> elements(static_cast<size_t>(kRows * kColumns));
  for (size_t index = 0; index < elements.size(); ++index) {
    elements[index] = static_cast<float>(index % 1'000) / 500 - 1;
  }
  const std::string input(reinterpret_cast<const char*>(elements.data()), kBytes);
  for (const Timed& timed : kTimed) {
    const PreparedGroup group(driver, nvrtc, group_of(timed), {input}, {kBytes});
    const double seconds = group.seconds();
    const KernelUsage usage = group.usage();
    std::printf("%-22s %8.1f us %8.1f GB/s, %lld registers, %lld bytes spilled\n", timed.name,
                seconds * 1e6, 2.0 * static_cast<double>(kBytes) / seconds / 1e9,
                static_cast<long long>(usage.registers),
                static_cast<long long>(usage.spill_store_bytes) +
                    static_cast<long long>(usage.spill_load_bytes));
  }
}

// Returns false for arguments that it does not know.
bool read_options(int count, char** arguments, Options& options) {
  for (int index = 1; index + 1 < count; index += 2) {
    const std::string name = arguments[index];
    const char* value = arguments[index + 1];
    const char* end = value + std::strlen(value);
    if (name == "--nvrtc") {
      options.nvrtc_folder = value;
    } else if (name != "--groups" || std::from_chars(value, end, options.groups).ptr != end) {
      return false;
    }
  }
  return count % 2 == 1;
}

int run(const Options& options) {
  const Driver driver;
  const Nvrtc nvrtc(options.nvrtc_folder);
  std::printf("%s (%s), NVRTC %s\n", driver.device_name().c_str(), driver.architecture().c_str(),
              nvrtc.version().c_str());
  const int wrong = compare_random_groups(driver, nvrtc, options.groups);
  time_groups(driver, nvrtc);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace tessera::cuda

int main(int count, char** arguments) {
  tessera::cuda::Options options;
  if (!tessera::cuda::read_options(count, arguments, options)) {
    std::fputs(tessera::cuda::kUsage, stderr);
    return 2;
  }
  try {
    return tessera::cuda::run(options);
  } catch (const tessera::cuda::NoDevice& reason) {
    std::printf("skipped: %s\n", reason.what());
    return EXIT_SUCCESS;
  } catch (const tessera::plugin::Failure& failure) {
    if (failure.kind() != TESSERA_UNSUPPORTED) {
      std::fprintf(stderr, "%s\n", failure.what());
      return EXIT_FAILURE;
    }
    std::printf("skipped: %s\n", failure.what());
    return EXIT_SUCCESS;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return EXIT_FAILURE;
  }
}
