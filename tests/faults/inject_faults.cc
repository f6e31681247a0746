// A library to preload (LD_PRELOAD) that counts a process's system calls, and makes the nth call of
// one kind fail. It counts only calls on files in given folders and calls by our own code;
// third-party libraries see no fault. fault_run.py sets the variables:
//   FAULTS_PROGRAMS  names of the programs to inject faults into, separated by colons
//   FAULTS_FOLDERS   absolute paths of the files and folders that count, separated by colons
//   FAULTS_MODULES   prefixes of the file names of our own code, separated by colons
//   FAULTS_REPORT    a file of sizeof(Report) zero bytes, which receives the counts
//   FAULTS_CALL      kind of call that fails, see kNames; unset: none
//   FAULTS_NTH       which call of the kind fails, counted from 1
//   FAULTS_ERRNO     the error; 0: read and write do half of what was requested
//   FAULTS_LASTS     if set, all later calls of the kind fail too
// It uses no C++ library and allocates nothing, because it replaces malloc.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
extern "C" {
// glibc's names for its own functions.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace {

enum Kind { Open, Read, Write, Fsync, Rename, Mmap, Flock, Spawn, Truncate, Link, Mkdir, Malloc };
constexpr int kKinds = 12;
constexpr const char* kNames[kKinds] = {"open",      "read", "write", "fsync",
                                        "rename",    "mmap", "flock", "posix_spawn",
                                        "ftruncate", "link", "mkdir", "malloc"};

// Mapped from a file that the parent process reads, so that it survives any end of this process.
struct Report {
  std::atomic<uint64_t> counts[kKinds];
  std::atomic<uint64_t> failed;  // how many calls failed on purpose
  char place[1024];  // of the first one: a path, or for memory the callers as module+address
};

struct Settings {
  Report* report = nullptr;  // null: this process gets no faults
  const char* folders = "";
  const char* modules = "";
  bool is_program_ours = false;
  int kind = -1;
  uint64_t nth = 0;
  int error = 0;
  bool lasts = false;
};

Settings settings;
std::atomic<bool> has_main_begun = false;  // before main(), nobody can report a failure
thread_local bool is_inside = false;       // calls by this library itself do not count

enum class Verdict { Pass, Fail, Half };

// Calls `accept(part, length)` for the parts of a list until a call returns true.
template <typename Accept>
bool any_of(const char* list, Accept accept) {
  while (*list != '\0') {
    const char* end = std::strchr(list, ':');
    const size_t length = end == nullptr ? std::strlen(list) : static_cast<size_t>(end - list);
    if (length > 0 && accept(list, length)) return true;
    list += length + (end == nullptr ? 0 : 1);
  }
  return false;
}

const char* name_of(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

struct Module {
  const char* name = nullptr;  // of its file; "" for the program, null for generated code
  uintptr_t base = 0;
};

Module module_of(void* address) {
  dl_find_object found = {};
  if (_dl_find_object(address, &found) != 0) return {};
  const char* name = found.dlfo_link_map->l_name;
  return {name == nullptr ? "" : name_of(name), found.dlfo_link_map->l_addr};
}

bool is_module_ours(const char* module) {
  if (module == nullptr) return false;
  if (*module == '\0') return settings.is_program_ours;
  return any_of(settings.modules, [&](const char* part, size_t length) {
    return std::strncmp(module, part, length) == 0;
  });
}

bool is_ours(void* address) { return is_module_ours(module_of(address).name); }

bool is_runtime(const char* module) {
  for (const char* name : {"libc.", "libstdc++", "libgcc_s", "ld-linux", "inject_faults"}) {
    if (std::strncmp(module, name, std::strlen(name)) == 0) return true;
  }
  return false;
}

// The result of a walk through the stack.
struct Search {
  bool is_ours = false;
  int depth = 0;
};
_Unwind_Reason_Code look_at_caller(_Unwind_Context* context, void* argument) {
  auto* search = static_cast<Search*>(argument);
  // The return address may be just after the last byte of a function.
  const Module module = module_of(reinterpret_cast<void*>(_Unwind_GetIP(context) - 1));
  if (module.name == nullptr || ++search->depth > 32) return _URC_END_OF_STACK;
  if (is_runtime(module.name)) return _URC_NO_REASON;
  search->is_ours = is_module_ours(module.name);
  return _URC_END_OF_STACK;
}

// Whether our code requests the memory: the innermost code outside the C and C++ runtimes.
bool is_asked_by_us() {
  Search search;
  _Unwind_Backtrace(look_at_caller, &search);
  return search.is_ours;
}

_Unwind_Reason_Code look_for_linker(_Unwind_Context* context, void* found) {
  const Module module = module_of(reinterpret_cast<void*>(_Unwind_GetIP(context) - 1));
  if (module.name == nullptr || std::strncmp(module.name, "ld-linux", 8) != 0)
    return _URC_NO_REASON;
  *static_cast<bool*>(found) = true;
  return _URC_END_OF_STACK;
}

// Whether the dynamic linker is among the callers: it calls initialisers of libraries, which must
// not throw.
bool is_initialising_library() {
  bool found = false;
  _Unwind_Backtrace(look_for_linker, &found);
  return found;
}

struct Trail {
  char* text;
  size_t room;
};
_Unwind_Reason_Code write_frame(_Unwind_Context* context, void* argument) {
  auto* trail = static_cast<Trail*>(argument);
  const uintptr_t address = _Unwind_GetIP(context) - 1;
  const Module module = module_of(reinterpret_cast<void*>(address));
  const bool is_library = module.name != nullptr && std::strncmp(module.name, "libstdc++", 9) == 0;
  if (module.name == nullptr || (is_runtime(module.name) && !is_library)) return _URC_NO_REASON;
  const int length = std::snprintf(trail->text, trail->room, "%s+0x%zx ", module.name,
                                   static_cast<size_t>(address - module.base));
  if (length < 0 || static_cast<size_t>(length) >= trail->room) return _URC_END_OF_STACK;
  trail->text += length;
  trail->room -= static_cast<size_t>(length);
  return _URC_NO_REASON;
}

bool is_in_folders(const char* path) {
  return any_of(settings.folders, [&](const char* part, size_t length) {
    return std::strncmp(path, part, length) == 0 && (path[length] == '/' || path[length] == '\0');
  });
}

struct Path {
  char text[PATH_MAX + 1] = {};
};
Path path_of(int descriptor) {
  Path path;
  char link[64];
  if (descriptor == AT_FDCWD) {
    std::snprintf(link, sizeof(link), "/proc/self/cwd");
  } else {
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  }
  const ssize_t got = ::readlink(link, path.text, PATH_MAX);
  path.text[got > 0 ? got : 0] = '\0';
  return path;
}

Path absolute(int folder, const char* name) {
  Path path;
  if (name[0] != '/') path = path_of(folder);
  const size_t used = std::strlen(path.text);
  std::snprintf(path.text + used, sizeof(path.text) - used, "%s%s", used == 0 ? "" : "/", name);
  return path;
}

// Counts a call by our code or on our files, and returns whether it fails. `place` is null for
// memory.
Verdict count(Kind kind, const char* place) {
  const uint64_t number = settings.report->counts[kind].fetch_add(1) + 1;
  if (kind != settings.kind) return Verdict::Pass;
  if (settings.lasts ? number < settings.nth : number != settings.nth) return Verdict::Pass;
  if (kind == Malloc && is_initialising_library()) return Verdict::Pass;
  if (settings.report->failed.fetch_add(1) == 0) {
    Trail trail{settings.report->place, sizeof(settings.report->place)};
    if (place == nullptr) {
      _Unwind_Backtrace(write_frame, &trail);
    } else {
      std::snprintf(trail.text, trail.room, "%s", place);
    }
  }
  errno = settings.error;
  return settings.error == 0 ? Verdict::Half : Verdict::Fail;
}

bool is_watching() { return settings.report != nullptr && !is_inside; }

// Marks calls that this library itself makes. Its users restore errno, because a call that passes
// must leave it unchanged.
struct Inside {
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

Verdict judge_path(Kind kind, int folder, const char* name) {
  if (!is_watching() || name == nullptr) return Verdict::Pass;
  const Inside inside;
  const int before = errno;
  const Path path = absolute(folder, name);
  errno = before;
  return is_in_folders(path.text) ? count(kind, path.text) : Verdict::Pass;
}

// Counts calls on files in the given folders; calls by our own code also on descriptors without a
// path (pipes, sockets).
Verdict judge_descriptor(Kind kind, int descriptor, void* caller) {
  if (!is_watching()) return Verdict::Pass;
  const Inside inside;
  const int before = errno;
  const Path path = descriptor < 0 ? Path() : path_of(descriptor);
  errno = before;
  const bool has_path = path.text[0] == '/' && std::strncmp(path.text, "/memfd:", 7) != 0;
  const bool counts = has_path ? is_in_folders(path.text) : is_ours(caller);
  return counts ? count(kind, path.text) : Verdict::Pass;
}

Verdict judge_caller(Kind kind, void* caller, const char* place) {
  if (!is_watching()) return Verdict::Pass;
  const Inside inside;
  return is_ours(caller) ? count(kind, place) : Verdict::Pass;
}

bool fails_to_allocate() {
  // Walking the stack is slow, so it is skipped if another kind of call is to fail.
  if (!is_watching() || (settings.kind >= 0 && settings.kind != Malloc)) return false;
  if (!has_main_begun.load(std::memory_order_relaxed)) return false;
  const Inside inside;
  const int before = errno;
  const bool fails = is_asked_by_us() && count(Malloc, nullptr) != Verdict::Pass;
  errno = fails ? ENOMEM : before;
  return fails;
}

// The function that this library replaces.
template <typename Function>
Function next(const char* name) {
  const bool was_inside = is_inside;
  is_inside = true;
  auto* found = dlsym(RTLD_NEXT, name);
  is_inside = was_inside;
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function>(found);
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

__attribute__((constructor)) void begin() {
  const char* name = program_invocation_short_name;
  const bool is_named = any_of(variable("FAULTS_PROGRAMS"), [&](const char* part, size_t length) {
    return std::strlen(name) == length && std::strncmp(name, part, length) == 0;
  });
  if (!is_named) return;
  const int file = ::open(variable("FAULTS_REPORT"), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* found = ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (found == MAP_FAILED) return;
  settings.folders = variable("FAULTS_FOLDERS");
  settings.modules = variable("FAULTS_MODULES");
  settings.is_program_ours = is_module_ours(name);
  const char* kind = variable("FAULTS_CALL");
  for (int i = 0; i < kKinds; ++i) {
    if (std::strcmp(kind, kNames[i]) == 0) settings.kind = i;
  }
  settings.nth = std::strtoull(variable("FAULTS_NTH"), nullptr, 10);
  settings.error = std::atoi(variable("FAULTS_ERRNO"));
  settings.lasts = *variable("FAULTS_LASTS") != '\0';
  is_asked_by_us();  // the unwinder initialises itself at its first use
  settings.report = static_cast<Report*>(found);
}

template <typename Call>
ssize_t transfer(Kind kind, int descriptor, size_t bytes, void* caller, Call call) {
  const Verdict verdict = judge_descriptor(kind, descriptor, caller);
  if (verdict == Verdict::Fail) return -1;
  return call(verdict == Verdict::Half && bytes > 1 ? bytes / 2 : bytes);
}

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int begin_main(int count, char** arguments, char** environment) {
  has_main_begun = true;
  return real_main(count, arguments, environment);
}

}  // namespace

#define FAULTS_EXPORT __attribute__((visibility("default"), noinline))
#define FAULTS_CALLER __builtin_return_address(0)

extern "C" {

FAULTS_EXPORT int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (judge_path(Open, AT_FDCWD, path) == Verdict::Fail) return -1;
  return real(path, flags, mode);
}
FAULTS_EXPORT int openat(int folder, const char* path, int flags, ...) {
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (judge_path(Open, folder, path) == Verdict::Fail) return -1;
  return real(folder, path, flags, mode);
}

FAULTS_EXPORT int mkostemp(char* path, int flags) {
  static const auto real = next<int (*)(char*, int)>("mkostemp");
  if (judge_path(Open, AT_FDCWD, path) == Verdict::Fail) return -1;
  return real(path, flags);
}

FAULTS_EXPORT std::FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<std::FILE* (*)(const char*, const char*)>("fopen");
  if (judge_path(Open, AT_FDCWD, path) == Verdict::Fail) return nullptr;
  return real(path, mode);
}
FAULTS_EXPORT std::FILE* fopen64(const char* path, const char* mode) {
  static const auto real = next<std::FILE* (*)(const char*, const char*)>("fopen64");
  if (judge_path(Open, AT_FDCWD, path) == Verdict::Fail) return nullptr;
  return real(path, mode);
}

FAULTS_EXPORT ssize_t read(int descriptor, void* target, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, void*, size_t)>("read");
  return transfer(Read, descriptor, bytes, FAULTS_CALLER,
                  [&](size_t part) { return real(descriptor, target, part); });
}
FAULTS_EXPORT ssize_t pread(int descriptor, void* target, size_t bytes, off_t offset) {
  static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return transfer(Read, descriptor, bytes, FAULTS_CALLER,
                  [&](size_t part) { return real(descriptor, target, part, offset); });
}

FAULTS_EXPORT ssize_t write(int descriptor, const void* source, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  return transfer(Write, descriptor, bytes, FAULTS_CALLER,
                  [&](size_t part) { return real(descriptor, source, part); });
}
FAULTS_EXPORT ssize_t pwrite(int descriptor, const void* source, size_t bytes, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return transfer(Write, descriptor, bytes, FAULTS_CALLER,
                  [&](size_t part) { return real(descriptor, source, part, offset); });
}

FAULTS_EXPORT int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  if (judge_descriptor(Fsync, descriptor, FAULTS_CALLER) == Verdict::Fail) return -1;
  return real(descriptor);
}
FAULTS_EXPORT int fdatasync(int descriptor) {
  static const auto real = next<int (*)(int)>("fdatasync");
  if (judge_descriptor(Fsync, descriptor, FAULTS_CALLER) == Verdict::Fail) return -1;
  return real(descriptor);
}

FAULTS_EXPORT int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  if (judge_path(Rename, AT_FDCWD, to) == Verdict::Fail) return -1;
  return real(from, to);
}
FAULTS_EXPORT int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  static const auto real = next<int (*)(int, const char*, int, const char*)>("renameat");
  if (judge_path(Rename, to_folder, to) == Verdict::Fail) return -1;
  return real(from_folder, from, to_folder, to);
}

FAULTS_EXPORT int link(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("link");
  if (judge_path(Link, AT_FDCWD, to) == Verdict::Fail) return -1;
  return real(from, to);
}
FAULTS_EXPORT int linkat(int from_folder, const char* from, int to_folder, const char* to,
                         int flags) {
  static const auto real = next<int (*)(int, const char*, int, const char*, int)>("linkat");
  if (judge_path(Link, to_folder, to) == Verdict::Fail) return -1;
  return real(from_folder, from, to_folder, to, flags);
}

FAULTS_EXPORT int mkdir(const char* path, mode_t mode) {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  if (judge_path(Mkdir, AT_FDCWD, path) == Verdict::Fail) return -1;
  return real(path, mode);
}
FAULTS_EXPORT int mkdirat(int folder, const char* path, mode_t mode) {
  static const auto real = next<int (*)(int, const char*, mode_t)>("mkdirat");
  if (judge_path(Mkdir, folder, path) == Verdict::Fail) return -1;
  return real(folder, path, mode);
}

FAULTS_EXPORT void* mmap(void* address, size_t bytes, int protection, int flags, int descriptor,
                         off_t offset) {
  static const auto real = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  const int file = (flags & MAP_ANONYMOUS) != 0 ? -1 : descriptor;
  if (judge_descriptor(Mmap, file, FAULTS_CALLER) == Verdict::Fail) return MAP_FAILED;
  return real(address, bytes, protection, flags, descriptor, offset);
}

FAULTS_EXPORT int flock(int descriptor, int operation) {
  static const auto real = next<int (*)(int, int)>("flock");
  if (judge_descriptor(Flock, descriptor, FAULTS_CALLER) == Verdict::Fail) return -1;
  return real(descriptor, operation);
}

FAULTS_EXPORT int ftruncate(int descriptor, off_t bytes) {
  static const auto real = next<int (*)(int, off_t)>("ftruncate");
  if (judge_descriptor(Truncate, descriptor, FAULTS_CALLER) == Verdict::Fail) return -1;
  return real(descriptor, bytes);
}

FAULTS_EXPORT int posix_spawn(pid_t* id, const char* path,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const arguments[],
                              char* const environment[]) {
  static const auto real =
      next<int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                   char* const[], char* const[])>("posix_spawn");
  if (judge_caller(Spawn, FAULTS_CALLER, path) == Verdict::Fail) return settings.error;
  return real(id, path, actions, attributes, arguments, environment);
}

// The function with which glibc starts a program.
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
FAULTS_EXPORT int __libc_start_main(Main main, int count, char** arguments, void (*init)(),
                                    void (*finish)(), void (*finish_linker)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  static const auto real = next<Start>("__libc_start_main");
  real_main = main;
  return real(begin_main, count, arguments, init, finish, finish_linker, stack_end);
}

FAULTS_EXPORT void* malloc(size_t bytes) {
  return fails_to_allocate() ? nullptr : __libc_malloc(bytes);
}
FAULTS_EXPORT void* calloc(size_t number, size_t bytes) {
  return fails_to_allocate() ? nullptr : __libc_calloc(number, bytes);
}
FAULTS_EXPORT void* realloc(void* memory, size_t bytes) {
  return fails_to_allocate() ? nullptr : __libc_realloc(memory, bytes);
}
FAULTS_EXPORT void* memalign(size_t alignment, size_t bytes) {
  return fails_to_allocate() ? nullptr : __libc_memalign(alignment, bytes);
}
FAULTS_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails_to_allocate() ? nullptr : __libc_memalign(alignment, bytes);
}
FAULTS_EXPORT int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (fails_to_allocate()) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
