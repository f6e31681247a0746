#include "backend/plugin_call.h"

#include <map>
#include <mutex>
#include <set>

namespace tessera {
namespace {

struct Calls {
  std::mutex mutex;
  uint32_t counted_after_forks = fork_count();
  std::map<const Plugin*, int> running;  // calls of this process
  std::set<const Plugin*> lost;

  // Called first after a fork, because a call that the fork interrupted never ends.
  void note_forks() {
    if (counted_after_forks == fork_count()) return;
    counted_after_forks = fork_count();
    for (const auto& [plugin, calls] : running) lost.insert(plugin);
    running.clear();
  }
};

Calls& calls() {
  static Calls& all = *new Calls;  // never destroyed: a thread may be in a call
  return all;
}

}  // namespace

PluginCall::PluginCall(const Plugin& plugin) : plugin_(&plugin) {
  Calls& all = calls();
  const ForkSafeLock lock(all.mutex);
  all.note_forks();
  ++all.running[plugin_];
}

PluginCall::~PluginCall() {
  Calls& all = calls();
  const ForkSafeLock lock(all.mutex);
  all.note_forks();
  const auto known = all.running.find(plugin_);
  if (known != all.running.end() && --known->second == 0) all.running.erase(known);
}

bool is_lost_by_fork(const Plugin& plugin) {
  Calls& all = calls();
  const ForkSafeLock lock(all.mutex);
  all.note_forks();
  return all.lost.contains(&plugin);
}

}  // namespace tessera
