/* The types that all of tessera/backend_abi.h uses, which includes this file: status, errors, types
 * of tensors, buffers. */
#ifndef TESSERA_BACKEND_TYPES_ABI_H
#define TESSERA_BACKEND_TYPES_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Alignment of every buffer that a conversion, a pack function or a kernel gets. Only a kernel's
 * buffer may be less aligned, if its port asks for less. */
#define TESSERA_ALIGNMENT_BYTES 64

/* --- Status and errors ------------------------------------------------------------------------ */

enum {
  TESSERA_OK = 0,
  TESSERA_INVALID_MODEL = 1,
  TESSERA_INVALID_ARGUMENT = 2,
  TESSERA_UNSUPPORTED = 3,
  TESSERA_OUT_OF_MEMORY = 4,
  TESSERA_DEVICE_FAILED = 5,
  TESSERA_CORRUPT = 6,
  TESSERA_INTERNAL = 7 /* a bug in the code that returns it */
};

/* The caller owns it, so reporting a failure allocates nothing. */
typedef struct tessera_error {
  uint32_t struct_size;
  int32_t kind;
  char message[1000]; /* ends with a zero byte; cut if it is too long */
} tessera_error;

/* Receives bytes that are valid only during the call. */
typedef void (*tessera_bytes_visitor)(void* user, const void* bytes, size_t size);

/* --- Types and values ------------------------------------------------------------------------- */

enum {
  TESSERA_UNDEFINED = 0,
  TESSERA_BOOL = 1,
  TESSERA_INT8 = 2,
  TESSERA_INT16 = 3,
  TESSERA_INT32 = 4,
  TESSERA_INT64 = 5,
  TESSERA_UINT8 = 6,
  TESSERA_UINT16 = 7,
  TESSERA_UINT32 = 8,
  TESSERA_UINT64 = 9,
  TESSERA_FLOAT16 = 10,
  TESSERA_BFLOAT16 = 11,
  TESSERA_FLOAT32 = 12,
  TESSERA_FLOAT64 = 13,
  TESSERA_STRING = 14,
  /* The small types, of which each element takes a byte: floats in its low bits, integers as int8
   * or uint8. Plug-ins of older headers do not know them. So the `type` of such a value is unknown,
   * and only tessera_value::small_type tells it; that is null for other values, and hosts of older
   * headers do not have it (see struct_size). The host refuses a candidate whose nodes read or
   * write such a value, unless it has the flag TESSERA_CANDIDATE_KNOWS_SMALL_TYPES. All its ports
   * of small types are row_major. Ops of plug-ins take no small types. */
  TESSERA_FLOAT8E4M3FN = 16,
  TESSERA_FLOAT8E4M3FNUZ = 17,
  TESSERA_FLOAT8E5M2 = 18,
  TESSERA_FLOAT8E5M2FNUZ = 19,
  TESSERA_FLOAT8E8M0 = 20,
  TESSERA_FLOAT4E2M1 = 21,
  TESSERA_INT4 = 22,
  TESSERA_UINT4 = 23,
  TESSERA_INT2 = 24,
  TESSERA_UINT2 = 25
};

/* The logical type of a tensor, independent of its layout. A rank or a dimension of -1 is not known
 * before running. */
typedef struct tessera_type {
  int32_t data_type;
  int32_t rank;
  const int64_t* dims;
} tessera_type;

/* A tensor in memory. `dims` are the logical dimensions; `bytes` is its size in its layout.
 * `strides`, in elements, is null for dense storage; it is set only if the port accepts strides.
 * Buffers in memory of a device are dense. */
typedef struct tessera_buffer {
  void* data; /* null: an optional input or output that is left out */
  int64_t bytes;
  int32_t data_type;
  int32_t rank;
  const int64_t* dims;
  const int64_t* strides;
  int32_t request; /* for outputs: one of TESSERA_REQUEST_ */
  /* 0: `data` is an address in the host's memory. Else `data` points to a tessera_device_position
   * in memory of device `device` - 1 of the backend that owns the memory. */
  int32_t device;
} tessera_buffer;

enum {
  TESSERA_REQUEST_WRITE = 1,    /* write the result; the buffer is undefined before */
  TESSERA_REQUEST_IN_PLACE = 2, /* the output has the buffer of the port's in_place_input */
  TESSERA_REQUEST_ADD = 4,      /* add to the contents of the buffer */
  TESSERA_REQUEST_NONE = 8      /* nothing reads the output: data is null */
};

enum { TESSERA_PRECISION_FLOAT32 = 0, TESSERA_PRECISION_BFLOAT16 = 1 };

/* EXACT: if the op's reference returns NaN, a kernel does so too; if the reference returns an
 * infinity, a kernel returns no finite number. FAST: neither is required. */
enum { TESSERA_NAN_EXACT = 0, TESSERA_NAN_FAST = 1 };

/* BOUNDED: errors are within the op's bound (docs/accuracy.md). FAST: ROUGH candidates, too. */
enum { TESSERA_ACCURACY_BOUNDED = 0, TESSERA_ACCURACY_FAST = 1 };

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_BACKEND_TYPES_ABI_H */
