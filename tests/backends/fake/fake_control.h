/* Functions that tests call in the plug-in `fake` (fake.cc), beside the plug-in contract: settings,
 * counters and violations. A test opens the same file with dlopen() or ctypes.CDLL(), which gives
 * it the copy that the host has opened. All members are int64_t, so that ctypes needs no padding.
 * All functions may be called from any thread. */
#ifndef TESSERA_TESTS_FAKE_CONTROL_H
#define TESSERA_TESTS_FAKE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_EXPORT __attribute__((visibility("default")))

/* NOLINTBEGIN(readability-identifier-naming): the names of C */

enum {
  FAKE_NO_PEER_COPIES = 0,     /* copy_from_peer is null */
  FAKE_PEER_COPIES = 1,        /* it works */
  FAKE_REFUSES_PEER_COPIES = 2 /* it fails with TESSERA_UNSUPPORTED */
};

enum {
  FAKE_FAILS_OUT_OF_MEMORY = 0,
  FAKE_FAILS = 1,  /* with TESSERA_DEVICE_FAILED; the device can still be used */
  FAKE_IS_LOST = 2 /* like FAKE_FAILS, but the device is unusable until fake_configure() */
};

/* The text form has the same names: "devices=2,peer=1,delay_us=50". The plug-in reads `devices`,
 * `peer`, `memory_bytes` and `max_allocation_bytes` when it is opened, everything else with each
 * call. */
typedef struct fake_settings {
  int64_t devices;           /* 1 (the default) or 2: "fake" and "fake:1" */
  int64_t peer;              /* FAKE_..._PEER_COPIES */
  int64_t kernel_ns;         /* the duration of kernels and conversions, if they are not slower */
  int64_t copy_ns;           /* the duration of copies, plus the time for their bytes: */
  int64_t copy_bytes_per_us; /* 0: no time */
  int64_t delay_us;          /* the maximum of the random delay before each operation */
  int64_t seed;              /* of the delays */
  int64_t memory_bytes;      /* of each device; 0: no limit */
  /* The call that fails, counted from 1 since fake_configure() or fake_reset_counters(); 0: none.
   * fake_counters::calls says what is counted. */
  int64_t fail_at;
  int64_t fail_mode;  /* FAKE_FAILS_..., FAKE_IS_LOST */
  int64_t fail_later; /* 1: a call that enqueues succeeds, and its operation fails on the device */
  int64_t detects;    /* 1 (the default): reports races; 0: saves the time */
  /* 1: the plug-in also offers kernels on the processor ("fake:host"). They report the memory that
   * they read and write, so the detector sees whether the host waits for the device before. */
  int64_t host_kernels;
  /* 0 (the default): the host's threads are ordered by locks of the host, which the detector cannot
   * see, so a thread knows what any other thread waited for. 1: each knows only what it waited for
   * itself. */
  int64_t separate_threads;
  /* 1: of all devices, one operation at a time is executed. For runs under the thread sanitizer,
   * which would find the races that the detector finds. */
  int64_t one_at_a_time;
  int64_t prints;         /* 1: prints each violation to stderr, for tests of other processes */
  int64_t host_kernel_ns; /* the duration of "fake:host", if it is not slower */
  int64_t max_allocation_bytes; /* of one allocation; 0: no limit */
} fake_settings;

typedef struct fake_counters {
  int64_t calls;            /* of functions that can fail, enqueued kernels and conversions */
  int64_t failures;         /* injected by fail_at */
  int64_t synchronisations; /* of events and queues */
  int64_t kernels;          /* enqueued; the next ones too */
  int64_t conversions;
  int64_t copies_to_device;
  int64_t copies_to_host;
  int64_t copies_within;
  int64_t copies_from_peer;
  int64_t bytes_to_device;
  int64_t bytes_to_host;
  int64_t bytes_within;
  int64_t bytes_from_peer;
  int64_t events_recorded;
  int64_t events_waited;
  int64_t live_allocations;
  int64_t live_queues;
  int64_t live_events;
  int64_t live_bytes;
  int64_t peak_bytes;
  int64_t violations;
  int64_t forgotten_accesses; /* the detector's memory was full: it may have missed a race */
} fake_counters;

/* The settings of the environment variable TESSERA_TEST_FAKE hold until the first call of
 * fake_configure(); after it, the variable is ignored. Restarts the count of calls, and lost
 * devices can be used again. Return 0, or -1 if a setting is illegal; then nothing changes. */
FAKE_EXPORT int32_t fake_configure(const fake_settings* settings);
FAKE_EXPORT int32_t fake_configure_text(const char* text); /* names that it lacks: the defaults */
FAKE_EXPORT void fake_get_settings(fake_settings* settings);

/* Of device 0 or 1, or of both together (-1). */
FAKE_EXPORT void fake_get_counters(int32_t device, fake_counters* counters);
/* All but the live_ ones to 0, peak_bytes to live_bytes; forgets the violations. */
FAKE_EXPORT void fake_reset_counters(void);

/* Writes the first texts of violations that were found; `index` is from 0. Returns the length of
 * the text, or -1 if there is none. */
FAKE_EXPORT int64_t fake_violation(int64_t index, char* text, size_t size);

/* Tells the detector that the calling thread reads or writes memory of the host, for example an
 * output. It reports if no wait orders this after the copies that use the memory. */
FAKE_EXPORT void fake_note_host_access(const void* address, int64_t bytes, int32_t is_write);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TESTS_FAKE_CONTROL_H */
