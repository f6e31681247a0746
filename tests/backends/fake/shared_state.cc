#include "shared_state.h"

#include <pthread.h>

#include <atomic>

namespace tessera::fake {
namespace {

std::atomic<SharedState*> current_state = nullptr;

void make_state() { current_state = new SharedState; }

}  // namespace

void SharedState::configure(const fake_settings& settings) {
  ledger.configure(settings);
  has_failed = false;
  detector.set_separate_threads(settings.separate_threads != 0);
}

SharedState& shared_state() {
  static const bool kIsReady = [] {
    make_state();
    ::pthread_atfork(nullptr, nullptr, make_state);
    return true;
  }();
  static_cast<void>(kIsReady);
  return *current_state;
}

}  // namespace tessera::fake
