/* The part of tessera/backend_abi.h about devices that have memory and queues of their own:
 * accelerators. tessera/backend_abi.h includes this file.
 *
 * A device does its work asynchronously. A function that takes a queue only enqueues and returns;
 * the work of one queue is done in the order in which it was enqueued, that of different queues in
 * any order unless events order it. Failures of enqueued work may be reported by any later call for
 * this device, at the latest by the next synchronise_event() or synchronise_queue(). */
#ifndef TESSERA_BACKEND_DEVICE_ABI_H
#define TESSERA_BACKEND_DEVICE_ABI_H

#include <stdint.h>

#include "tessera/backend_types_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A position in memory of a device. The host never looks into `handle`, which allocate() returned;
 * it may be an address, an index or a pointer to an object. */
typedef struct tessera_device_position {
  void* handle;
  int64_t offset_bytes; /* from the beginning of the allocation */
} tessera_device_position;

/* The maximum of tessera_device_interface::alignment_bytes. */
#define TESSERA_MAX_DEVICE_ALIGNMENT_BYTES 4096

enum {
  /* The host may read and write the device's memory: handles are addresses, and offsets are added
   * to them. Only while no enqueued work uses the memory. */
  TESSERA_DEVICE_HOST_CAN_ACCESS = 1
};

typedef struct tessera_device_interface tessera_device_interface;
struct tessera_device_interface {
  uint32_t struct_size;
  uint32_t flags;       /* TESSERA_DEVICE_ */
  void* self;           /* for the functions below, which may be called from any thread */
  int64_t memory_bytes; /* of the device; 0: not known */
  /* Every position that the host passes has an offset that is a multiple of this: a power of
   * two. */
  int64_t alignment_bytes;

  /* Memory. Fails with TESSERA_OUT_OF_MEMORY if the device has not so much left. `bytes` is at
   * least 1. release_memory() is called when no enqueued work uses the memory any more. */
  int32_t (*allocate)(void* self, int64_t bytes, void** handle, tessera_error* error);
  void (*release_memory)(void* self, void* handle);

  /* Queues. release_queue() is called when the queue has no work left, or after a failure. */
  int32_t (*create_queue)(void* self, void** queue, tessera_error* error);
  void (*release_queue)(void* self, void* queue);

  /* Copies of `bytes` bytes, at least 1. The host keeps its memory unchanged until the copy is
   * known to be done. */
  int32_t (*copy_to_device)(void* self, void* queue, const void* from,
                            const tessera_device_position* to, int64_t bytes, tessera_error* error);
  int32_t (*copy_to_host)(void* self, void* queue, const tessera_device_position* from, void* to,
                          int64_t bytes, tessera_error* error);
  /* Within the device; the two ranges do not overlap. */
  int32_t (*copy)(void* self, void* queue, const tessera_device_position* from,
                  const tessera_device_position* to, int64_t bytes, tessera_error* error);
  /* From another device of the same backend to this one. Null: the host copies through its own
   * memory. */
  int32_t (*copy_from_peer)(void* self, void* queue, const tessera_device_interface* peer,
                            const tessera_device_position* from, const tessera_device_position* to,
                            int64_t bytes, tessera_error* error);

  /* Events. An event is complete when everything is done that was enqueued before it was recorded.
   * It
   * may be recorded again; waits that were enqueued before refer to the earlier recording. */
  int32_t (*create_event)(void* self, void** event, tessera_error* error);
  void (*release_event)(void* self, void* event);
  int32_t (*record_event)(void* self, void* queue, void* event, tessera_error* error);
  /* Later work of `queue` waits until `event`, which was recorded in a queue of this device or of
   * another device of the same backend, is complete. */
  int32_t (*wait_event)(void* self, void* queue, void* event, tessera_error* error);

  /* The calling thread waits until the event is complete, or until the queue is empty. */
  int32_t (*synchronise_event)(void* self, void* event, tessera_error* error);
  int32_t (*synchronise_queue)(void* self, void* queue, tessera_error* error);

  /* Null, or the time on the device between two events that are complete. */
  int32_t (*elapsed_seconds)(void* self, void* begin, void* end, double* seconds,
                             tessera_error* error);

  /* After a failure: TESSERA_OK if the device can still be used with its existing memory and new
   * queues, else the reason why not. */
  int32_t (*check_usable)(void* self, tessera_error* error);

  /* How DLPack calls the device (DLDeviceType and its number), if its handles are what DLPack
   * calls the data of such a device; 0: its memory is not exchanged with other libraries. */
  int32_t dlpack_type;
  int32_t dlpack_id;

  int64_t max_allocation_bytes; /* of one call of allocate(); 0: not known */
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_BACKEND_DEVICE_ABI_H */
