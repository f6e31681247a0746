// The messages between worker_bench.h, the client, and worker_main.cc, which measures in another
// process. Each request gets one answer, of the same kind or a Failure. Both ends belong to the
// same build, which the first request verifies; messages are never stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/memory/shared_bytes.h"
#include "base/process/message_channel.h"
#include "microbench/group_bench.h"

namespace tessera::tuning {

enum class BenchMessage : uint32_t {
  Start = 1,    // StartRequest with the file of a ProgressPage -> build_identity()
  Load = 2,     // GroupCase with a file of its tensors -> nothing
  Build = 3,    // CandidateId -> BuildAnswer
  Check = 4,    // CandidateId -> Checked
  Run = 5,      // RunRequest -> Outcome
  Drop = 6,     // CandidateId -> nothing
  Convert = 7,  // ConvertRequest -> Outcome
  Failure = 8,  // in place of an answer: ErrorText
  // Questions of the worker before it answers; the parent answers them at once (shared_blobs.h).
  FindBlob = 9,      // key -> bytes, if there are any
  KeepBlob = 10,     // BlobBytes -> whether they are kept
  ClaimBlob = 11,    // key -> ClaimAnswer
  ReleaseBlob = 12,  // key -> whether it was claimed
};

// A worker with longer answers is broken. Only blobs are long; it does not send those that are
// longer.
inline constexpr int64_t kMaxAnswerBytes = int64_t{64} << 20;
// The limit for a graph without its tensors.
inline constexpr int64_t kMaxRequestBytes = int64_t{1} << 30;

// Identifies a plug-in for another process.
struct PluginRef {
  std::string name;
  std::string file;  // "" if linked in
};

struct StartRequest {
  std::string identity;
  std::vector<PluginRef> plugins;  // in order of preference
  int32_t threads = 1;
  int64_t memory_bytes = 0;  // limit of the worker's writable memory
};

struct RunRequest {
  CandidateId candidate;
  Weights weights = Weights::Cold;
  int runs = 1;
};

struct ConvertRequest {
  ConversionKey key;
  int runs = 1;
};

// The work of a plug-in's compiler in the worker.
struct CompiledCodes {
  int64_t count = 0;
  double seconds = 0;
};

struct BuildAnswer {
  Outcome outcome;
  CompiledCodes compiled;  // for it, by the candidate's backend
};

struct BlobBytes {
  std::string key;
  std::string bytes;
};

enum class ClaimAnswer : uint8_t { Held, Busy, Impossible };

struct ErrorText {
  uint32_t kind = 0;  // ErrorKind
  std::string where;
  std::string message;
};

// Identifies the build, to detect a worker of another version.
std::string build_identity();

// --- The worker's progress, in shared memory ---------------------------------------------------

struct Progress {
  BenchStage stage = BenchStage::Prepare;
  int64_t since_us = 0;  // on the common clock
};

// Written by the worker and read by its parent, which accepts only values within bounds.
struct ProgressPage {
  std::atomic<uint64_t> stage_and_time{0};
  std::atomic<int64_t> announced_build_us{0};

  void enter(BenchStage stage);
  Progress read() const;
};

// Microseconds on a clock that both processes share.
int64_t now_us();

// --- Payloads ------------------------------------------------------------------------------------

// `files` receives the tensors, if there are any; they are in `arena`, as long as nothing else is
// stored there.
Message pack_case(const GroupCase& group, SharedArena& arena);
GroupCase unpack_case(const Message& message);

// Here and in bench_messages.cc, transfer() destructures structs of other files into all of their
// fields, so that a new field does not compile until it is transferred too.

template <class Archive>
void transfer(Archive& archive, PluginRef& location) {
  archive(location.name, location.file);
}

template <class Archive>
void transfer(Archive& archive, StartRequest& request) {
  archive(request.identity, request.plugins, request.threads, request.memory_bytes);
}

constexpr bool is_enumerator(Weights weights) { return weights <= Weights::Warm; }

template <class Archive>
void transfer(Archive& archive, RunRequest& request) {
  archive(request.candidate, request.weights, request.runs);
}

template <class Archive>
void transfer(Archive& archive, ConversionKey& key) {
  auto& [backend, from, to, element, dims, threads] = key;
  archive(backend, from, to, element, dims, threads);
}

template <class Archive>
void transfer(Archive& archive, ConvertRequest& request) {
  archive(request.key, request.runs);
}

template <class Archive>
void transfer(Archive& archive, Outcome& outcome) {
  auto& [seconds, reason, is_lost, is_unknown, was_preempted, slowdown, often] = outcome;
  archive(seconds, reason, is_lost, is_unknown, was_preempted, slowdown, often);
}

template <class Archive>
void transfer(Archive& archive, CompiledCodes& compiled) {
  archive(compiled.count, compiled.seconds);
}

template <class Archive>
void transfer(Archive& archive, BuildAnswer& answer) {
  archive(answer.outcome, answer.compiled);
}

template <class Archive>
void transfer(Archive& archive, BlobBytes& blob) {
  archive(blob.key, blob.bytes);
}

constexpr bool is_enumerator(ClaimAnswer answer) { return answer <= ClaimAnswer::Impossible; }

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
