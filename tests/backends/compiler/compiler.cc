// A plug-in that "compiles" LeakyRelu: for tests of how often the same thing is compiled by several
// threads, processes and models. These variables of the environment configure it:
//   TESSERA_TEST_COMPILER_LOG  a file that gets a line for each compilation, of any process
//   TESSERA_TEST_COMPILER      "hangs": a compilation never ends; "fails": it fails; "saves":
//                              kernels are saved and loaded as a whole, instead of as blobs
//   TESSERA_TEST_COMPILER_MS   how long a compilation takes; by default 20
//   TESSERA_TEST_COMPILER_FAULT  what is wrong with compiled code, which the host then keeps: it
//                              writes one element "behind" or "before" its output or to its
//                              "input", the last element is "wrong", or it writes behind outputs
//                              of a million elements ("large"); "none": nothing is
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "tessera/backend_blobs.h"

namespace {

namespace plugin = tessera::plugin;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool is_mode(std::string_view mode) { return variable("TESSERA_TEST_COMPILER") == mode; }

void append_to(const char* name_of_file, const std::string& text) {
  const int file =
      ::open(variable(name_of_file).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, text.data(), text.size());
  ::close(file);
}

// The "source" is the slope as text, and so is the "machine code".
class Compiler {
 public:
  explicit Compiler(const tessera_host* host) : blobs_(host) {}

  std::string code_of(const std::string& source) {
    if (is_mode("saves")) return compile(source);
    const std::string key = "leaky/" + source;
    if (auto found = load(key)) return *found;
    const plugin::BlobClaim claim(blobs_, key);
    if (auto found = load(key)) return *found;
    const std::string code = compile(source);
    blobs_.put(key, code);
    return code;
  }

  plugin::CompileCounts counts() const { return {.compiled = compiled_, .loaded = loaded_}; }

 private:
  std::optional<std::string> load(const std::string& key) {
    std::optional<std::string> found = blobs_.get(key);
    if (found) ++loaded_;
    return found;
  }

  std::string compile(const std::string& source) {
    ++compiled_;
    append_to("TESSERA_TEST_COMPILER_LOG", source + "\n");
    while (is_mode("hangs")) std::this_thread::sleep_for(std::chrono::seconds(1));
    const std::string given = variable("TESSERA_TEST_COMPILER_MS");
    std::this_thread::sleep_for(std::chrono::milliseconds(given.empty() ? 20 : std::stoi(given)));
    if (is_mode("fails")) throw plugin::Failure(TESSERA_INTERNAL, "line 1: an unknown slope");
    return source;
  }

  plugin::Blobs blobs_;
  std::atomic<int64_t> compiled_ = 0;
  std::atomic<int64_t> loaded_ = 0;
};

class LeakyRelu : public plugin::Kernel {
 public:
  explicit LeakyRelu(std::string code) : code_(std::move(code)), slope_(std::stof(code_)) {}

  void run(plugin::RunContext& /*context*/, std::span<const plugin::Buffer> inputs,
           std::span<const plugin::Buffer> outputs) override {
    float* const from = inputs[0].as<float>();
    float* const to = outputs[0].as<float>();
    const int64_t elements = outputs[0].elements();
    for (int64_t index = 0; index < elements; ++index) {
      to[index] = from[index] < 0 ? slope_ * from[index] : from[index];
    }
    const std::string fault = variable("TESSERA_TEST_COMPILER_FAULT");
    if (fault == "behind" || (fault == "large" && elements >= 1'000'000)) to[elements] = 7;
    if (fault == "before") to[-1] = 7;
    if (fault == "input") from[0] += 7;
    if (fault == "wrong") to[elements - 1] += 7;
  }

  std::optional<std::string> save() const override {
    return is_mode("saves") ? std::optional(code_) : std::nullopt;
  }

 private:
  std::string code_;
  float slope_;
};

class Backend : public plugin::Backend {
 public:
  explicit Backend(const tessera_host* host) : compiler_(std::make_shared<Compiler>(host)) {}

  plugin::Description describe() override { return {.name = "compiler", .version = "1"}; }

  void propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
               plugin::Proposals& proposals) override {
    plugin::ProposeContext context(graph, options, proposals);
    for (const plugin::Node& node : graph.nodes()) {
      if (node.op() != "LeakyRelu" || node.input(0).type().data_type != TESSERA_FLOAT32) continue;
      plugin::Candidate candidate = plugin::candidate_for(node);
      if (!variable("TESSERA_TEST_COMPILER_FAULT").empty()) {
        candidate.flags = TESSERA_CANDIDATE_COMPILED;
      }
      const std::string source = std::to_string(node.attributes().get_float("alpha"));
      candidate.build = [source, compiler = compiler_](const plugin::BuildOptions&) {
        return std::make_unique<LeakyRelu>(compiler->code_of(source));
      };
      if (is_mode("saves")) {
        candidate.build_seconds = 0.02;
        candidate.load = [](std::string_view bytes) {
          return std::make_unique<LeakyRelu>(std::string(bytes));
        };
      }
      context.add(std::move(candidate));
    }
    context.report_refusals("is no LeakyRelu");
  }

  std::optional<plugin::CompileCounts> compile_counts() const override {
    return compiler_->counts();
  }

 private:
  std::shared_ptr<Compiler> compiler_;
};

}  // namespace

TESSERA_PLUGIN(Backend)
