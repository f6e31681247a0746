// For libraries with locks that threads of their own take, outside of sections
// (base/threads/fork.h).
#pragma once

namespace tessera {

// Makes each fork() of this process call `settle` on the forking thread, when no other thread is in
// a section. One function at most.
void call_before_fork(void (*settle)());

}  // namespace tessera
