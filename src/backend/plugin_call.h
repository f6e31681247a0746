// Calls of a plug-in's library that may hold its locks, and the effect of a fork during one.
#pragma once

#include "backend/plugin.h"
#include "base/threads/fork.h"

namespace tessera {

// A call, for which a fork waits; see NoForkSection.
class PluginCall {
 public:
  explicit PluginCall(const Plugin& plugin);
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

 private:
  const NoForkSection section_;
  const Plugin* plugin_;
};

// Whether a thread of the parent was in a call when this process was forked, because that took
// longer than a fork waits: then locks of the library may be held for ever.
bool is_lost_by_fork(const Plugin& plugin);

}  // namespace tessera
