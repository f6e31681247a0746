// Writes the first files of the corpora of formats that only Tessera writes, for make_seeds.py:
//
//   make_fuzz_seeds FOLDER
//
// Run it again after a format changes: the old corpora then test only that other versions are
// refused.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>
#include <vector>

#include "base/files/byte_archive.h"
#include "base/machine/processor.h"
#include "base/process/message_channel.h"
#include "cache/bundle_file.h"
#include "cache/cache_file.h"
#include "cache/pack_file.h"
#include "compile/compile.h"
#include "import/onnx/import.h"
#include "microbench/bench_messages.h"
#include "microbench/verify_messages.h"
#include "ops/registry.h"
#include "price/cost_sections.h"
#include "store/model_index.h"
#include "targets.h"

namespace tessera::fuzzing {
namespace {

const cache::UserKey kKey({});

class Corpus {
 public:
  Corpus(const std::filesystem::path& folder, const char* target) : folder_(folder / target) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, Bytes bytes) { write_scratch_file(folder_ / name, bytes); }

 private:
  std::filesystem::path folder_;
};

tuning::FoundCosts some_costs() {
  tuning::FoundCosts found{.seconds = 9};
  found.costs.machine = "m";
  tuning::CostKey key{.work = "w",
                      .candidate = {.nodes = {}, .backend = "fast", .algorithm = "a", .ports = "l"},
                      .ingredients = "v=1;"};
  found.costs.kernels[key] = {.warm = tuning::Timing{1e-3, 1e-3, 2e-3, 10}, .build_seconds = 1};
  key.density = "0.5";
  found.costs.kernels[key] = {.cold = tuning::Timing{1e-3, 1e-3, 2e-3, 10}, .refusal = "no"};
  found.costs
      .conversions[{.backend = "fast", .from = "a", .to = "b", .element = DataType::Float32}] = {};
  return found;
}

tuning::FoundPlan some_plan() {
  tuning::KnownPlan plan{.steps = {{.nodes = {0, 1}, .backend = "fast"}}};
  plan.startup_plan = {tuning::KnownPlan{.steps = {{.nodes = {0}, .backend = "fast"}}}};
  return {.plan = std::move(plan)};
}

void add_caches(Corpus corpus) {
  cache::CacheFile file{.ingredients = {{"graph", "a1"}, {"threads", "2"}}};
  corpus.add("empty", cache::encode(file, &kKey));
  file.sections = tuning::to_sections(some_costs(), some_plan(),
                                      {{"fast", "v=1;", {{"version", "3"}}}}, {{"threads", "2"}});
  corpus.add("costs", cache::encode(file, &kKey));
  file.sections = {{.type = "fast", .content = "kernels", .bytes = "abc"}};
  corpus.add("authenticated", cache::encode(file, &kKey));
}

void add_packs(Corpus corpus) {
  const std::string large(300, 'x');
  const std::vector<cache::StoredPack> packs = {{"one", Bytes("abc", 3)}, {"two", large}};
  corpus.add("none", cache::encode_packs({}, "fuzz", kKey));
  corpus.add("two", cache::encode_packs(packs, "fuzz", kKey));
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void add_bundles(Corpus corpus, const std::filesystem::path& model) {
  using enum cache::PartKind;
  const auto add = [&](const std::string& name, const std::vector<cache::NewPart>& parts) {
    const auto file = scratch_folder() / "a.bundle";
    const std::string reason = cache::write_bundle(file, "1.0.0", parts, [] {}).refusal;
    expect(reason.empty(), reason);
    corpus.add(name, bytes_of(file));
  };
  const std::string onnx = bytes_of(model);
  const cache::NewPart whole{.kind = Model, .name = "m.onnx", .pieces = {onnx}};
  add("model", {whole});
  const std::string caches = cache::encode({.ingredients = {{"graph", "a1"}}}, &kKey);
  const cache::StoredPack one{"one", Bytes("abc", 3)};
  const cache::PackPieces packs({&one, 1}, processor_model(), kKey);
  add("parts", {whole,
                {.kind = ExternalData, .name = "w.bin", .pieces = {"weights"}},
                {.kind = Caches, .name = "", .pieces = {caches}},
                {.kind = Index, .name = "", .pieces = {caches}},
                {.kind = Packs, .name = "", .pieces = packs.pieces()}});
}

// The bytes that the receiver gets, after the flags that fuzz_messages() reads.
template <class... Messages>
std::string frames_of(char flags, const Messages&... messages) {
  auto [mine, its] = MessageChannel::make_sockets();
  MessageChannel channel(std::move(mine), tuning::kMaxRequestBytes, true);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  (channel.send(messages, deadline), ...);
  std::string stream(1, flags);
  std::array<char, 4096> part = {};
  // recv() returns the bytes in parts, which end where a file is attached.
  for (ssize_t count = 1; count > 0;) {
    count = ::recv(its.get(), part.data(), part.size(), MSG_DONTWAIT);
    stream.append(part.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return stream;
}

template <class Kind, class Content>
Message message_of(Kind kind, const Content& content) {
  ByteWriter writer;
  writer(content);
  return {.kind = static_cast<uint32_t>(kind), .payload = writer.take_bytes()};
}

LoadedModel load(const std::filesystem::path& file) {
  static const ops::Registry kRegistry = ops::make_registry();
  const Log silent([](const std::string&) {});
  ThreadPool pool(1);
  return load_model(import_onnx(file, kRegistry, silent), {}, kRegistry, pool, silent);
}

void add_messages(Corpus corpus, const std::filesystem::path& model) {
  using enum tuning::BenchMessage;
  using tuning::VerifyMessage;
  const CandidateId id{.nodes = {0}, .backend = "fast", .algorithm = "a", .ports = "x=a -> y=a"};
  const tuning::StartRequest start{.identity = "i", .plugins = {{"fast", "f.so"}}};
  const tuning::GroupCase group{.graph = load(model).graph};
  corpus.add("requests", frames_of(3, message_of(Start, start), message_of(Build, id),
                                   message_of(Run, tuning::RunRequest{id}),
                                   message_of(Convert, tuning::ConvertRequest{{.dims = {2, 3}}}),
                                   message_of(VerifyMessage::Start, tuning::VerifyRequest{})));
  SharedArena arena;
  corpus.add("group", frames_of(3, tuning::pack_case(group, arena)));
  const tuning::VerifyNews news{.identity = "i", .name = "fast", .version = "1"};
  corpus.add("answers", frames_of(2, message_of(Run, tuning::Outcome{.seconds = 1}),
                                  message_of(Check, tuning::Checked{}),
                                  message_of(Failure, tuning::ErrorText{1, "w", "m"}),
                                  message_of(VerifyMessage::Step, news)));
}

void add_index(Corpus corpus, const std::filesystem::path& model) {
  ModelIndex index;
  index.model = load(model);
  index.files = {{model, stamp_of(model).value()}};
  index.warnings = {"w"};
  const auto file = scratch_folder() / "model.index";
  const std::string reason = write_model_index(file, {}, kKey, index);
  expect(reason.empty(), reason);
  const std::string bytes = bytes_of(file);
  const cache::CacheFile stored = cache::decode(bytes, &kKey, "index");
  // Everything except the list of files, which fuzz_model_index() adds.
  ByteReader reader(stored.sections.front().bytes);
  uint64_t count = 0;
  std::string path;
  FileStamp stamp;
  reader(count, path, stamp);
  corpus.add(model.stem().string(), reader.rest());
}

}  // namespace
}  // namespace tessera::fuzzing

int main(int count, char** arguments) {
  namespace fuzzing = tessera::fuzzing;
  if (count != 2) {
    std::cerr << "usage: make_fuzz_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  const std::filesystem::path model = folder / "model" / "weights.onnx";
  fuzzing::add_caches(fuzzing::Corpus(folder, "cache"));
  fuzzing::add_packs(fuzzing::Corpus(folder, "packs"));
  fuzzing::add_bundles(fuzzing::Corpus(folder, "bundle"), model);
  fuzzing::add_messages(fuzzing::Corpus(folder, "messages"), model);
  fuzzing::add_index(fuzzing::Corpus(folder, "model_index"), model);
}
