// What passes between worker_bench.h, which asks, and serve_bench.h, which measures in another
// process. Requests and answers take turns; an answer has the kind of its request or is a Failure.
// Both ends are of one build, as the first request makes sure; nothing here is ever stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/message_channel.h"
#include "tune/group_bench.h"

namespace tessera::tuning {

enum class BenchMessage : uint32_t {
  Start = 1,    // StartRequest with the file of a ProgressPage -> the text of build_identity()
  Load = 2,     // GroupCase with a file of its tensors -> nothing
  Build = 3,    // CandidateKey -> Outcome
  Check = 4,    // CandidateKey -> Checked
  Run = 5,      // RunRequest -> Outcome
  Drop = 6,     // CandidateKey -> nothing
  Convert = 7,  // ConversionKey -> Outcome
  Failure = 8,  // instead of an answer: ErrorText
};

// Answers are short; a worker that says more is broken.
inline constexpr int64_t kMostAnswerBytes = int64_t{1} << 20;
// A graph without its tensors.
inline constexpr int64_t kMostRequestBytes = int64_t{1} << 30;

// A plug-in as another process finds it again.
struct PluginPlace {
  std::string name;
  std::string file;  // "" for one that is linked in
};

struct StartRequest {
  std::string identity;
  std::vector<PluginPlace> plugins;  // in order of preference
  int32_t threads = 1;
  int64_t memory_bytes = 0;  // that the worker may write to
};

struct RunRequest {
  CandidateKey key;
  Weights weights = Weights::Cold;
};

struct ErrorText {
  uint32_t kind = 0;  // ErrorKind
  std::string where;
  std::string message;
};

// Names the build, so that a worker of another version is found out.
std::string build_identity();

// --- How far the worker is, in memory that both see ---------------------------------------------

struct Progress {
  BenchStage stage = BenchStage::Prepare;
  int64_t since_us = 0;  // on the clock of both
};

// Written by the worker, read by its parent, who believes no more of it than bounds allow.
struct ProgressPage {
  std::atomic<uint64_t> stage_and_time{0};
  std::atomic<int64_t> announced_build_us{0};

  void enter(BenchStage stage);
  Progress read() const;
};

// The worker's own clock and the parent's: microseconds.
int64_t now_us();

// --- Payloads ------------------------------------------------------------------------------------

// `files` gets the tensors, where there are any.
Message pack_case(const GroupCase& group);
GroupCase unpack_case(const Message& message);

// Here and in bench_messages.cc, structs that others change are taken apart by all of their fields,
// so that a new one does not compile until it crosses too.

template <class Archive>
void transfer(Archive& archive, PluginPlace& place) {
  archive(place.name, place.file);
}

template <class Archive>
void transfer(Archive& archive, StartRequest& request) {
  archive(request.identity, request.plugins, request.threads, request.memory_bytes);
}

template <class Archive>
void transfer(Archive& archive, PortKey& key) {
  archive(key.value, key.layout, key.pack);
}

template <class Archive>
void transfer(Archive& archive, CandidateKey& key) {
  auto& [backend, algorithm, threads, node_count, inputs, outputs] = key;
  archive(backend, algorithm, threads, node_count, inputs, outputs);
}

constexpr bool is_enumerator(Weights weights) { return weights <= Weights::Warm; }

template <class Archive>
void transfer(Archive& archive, RunRequest& request) {
  archive(request.key, request.weights);
}

template <class Archive>
void transfer(Archive& archive, ConversionKey& key) {
  auto& [backend, from, to, element, dims, threads] = key;
  archive(backend, from, to, element, dims, threads);
}

template <class Archive>
void transfer(Archive& archive, Outcome& outcome) {
  auto& [seconds, reason, is_lost, is_unknown, is_disturbed, slowdown, often] = outcome;
  archive(seconds, reason, is_lost, is_unknown, is_disturbed, slowdown, often);
}

template <class Archive>
void transfer(Archive& archive, Checked& checked) {
  auto& [error, tolerance, reason, is_lost] = checked;
  archive(error, tolerance, reason, is_lost);
}

template <class Archive>
void transfer(Archive& archive, ErrorText& error) {
  archive(error.kind, error.where, error.message);
}

}  // namespace tessera::tuning
