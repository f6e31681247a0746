/* The binary side of the plug-in contract: plain C structs and functions. Plug-in authors include
 * tessera/backend.h, which puts C++ on top; this file is what both sides agree on byte by byte, so
 * that a plug-in may be built by another compiler, with another standard library, than the host.
 *
 * Rules that hold everywhere:
 *  - Strings are UTF-8 and end with a zero byte. A pointer given to the other side stays valid for
 *    as long as the thing that it is part of, unless a comment says otherwise.
 *  - A function that can fail returns TESSERA_OK or the kind of its failure, and then has written
 *    the reason into `error`. No exception leaves a function of either side.
 *  - Structs that begin with struct_size may grow at their end; a reader looks at struct_size
 *    before it reads what a later version added. The others are fixed for this contract version.
 *  - Memory is freed by the side that allocated it, through the `release` that came with it.
 */
#ifndef TESSERA_BACKEND_ABI_H
#define TESSERA_BACKEND_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_CONTRACT_VERSION 1u

/* Every buffer that a conversion or a pack function sees starts at a multiple of this, and every
 * one that a kernel sees, unless its port asks for less. */
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
  TESSERA_INTERNAL = 7 /* a bug of whoever returns it */
};

/* Owned by the caller, so that reporting a failure allocates nothing. */
typedef struct tessera_error {
  uint32_t struct_size;
  int32_t kind;
  char message[1000]; /* ends with a zero byte; cut where it is too long */
} tessera_error;

/* Receives bytes that live only during the call. */
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
  TESSERA_STRING = 14
};

/* The logical type of a tensor, whatever its layout. rank -1: not known before running. A dimension
 * of -1: not known before running. */
typedef struct tessera_type {
  int32_t data_type;
  int32_t rank;
  const int64_t* dims;
} tessera_type;

/* A tensor in memory. `dims` are the logical dimensions; `bytes` what it takes in its layout.
 * `strides`, in elements, is null for dense storage; else the caller's port said that it accepts
 * strides. */
typedef struct tessera_buffer {
  void* data; /* null: an optional input or output that is left out */
  int64_t bytes;
  int32_t data_type;
  int32_t rank;
  const int64_t* dims;
  const int64_t* strides;
  int32_t request; /* for outputs: one of TESSERA_REQUEST_ */
  int32_t reserved;
} tessera_buffer;

enum {
  TESSERA_REQUEST_WRITE = 1,    /* the buffer holds nothing yet */
  TESSERA_REQUEST_IN_PLACE = 2, /* the buffer is that of the port's in_place_input */
  TESSERA_REQUEST_ADD = 4,      /* add to what the buffer holds */
  TESSERA_REQUEST_NONE = 8      /* nobody reads it: data is null */
};

/* --- The graph, as a plug-in sees it -----------------------------------------------------------
 */

typedef struct tessera_graph tessera_graph; /* opaque */

/* Nodes and values are numbered from 0; -1 is an optional input or output that is left out. Nodes
 * stand in an order in which they can run. */
typedef struct tessera_node {
  uint32_t struct_size;
  int32_t version; /* of the op: the newest one that the model's operator set contains */
  const char* name;
  const char* op;     /* "Conv" */
  const char* domain; /* "" is ONNX's own */
  const int32_t* inputs;
  int32_t input_count;
  int32_t output_count;
  const int32_t* outputs;
  int32_t body_count; /* nested graphs (If, Loop, Scan) */
  int32_t is_random;  /* two runs differ: may not be computed twice */
  int64_t flops;      /* a multiply-add is 2; -1 while shapes are unknown */
  int64_t bytes;      /* read and written, once each; -1 while shapes are unknown */
} tessera_node;

enum {
  TESSERA_VALUE_INPUT = 1,    /* fed when run */
  TESSERA_VALUE_CONSTANT = 2, /* known before running; see `constant` */
  TESSERA_VALUE_NEEDED = 4,   /* an output of the graph or fetched: no group may swallow it */
  TESSERA_VALUE_STATE = 8     /* kept between runs */
};

typedef struct tessera_value {
  uint32_t struct_size;
  uint32_t flags; /* TESSERA_VALUE_ */
  const char* name;
  tessera_type type;
  /* Elements of a constant, dense row-major. Null for one whose elements were let go after packing
   * (then it has more than TESSERA_SMALL_CONSTANT_BYTES). */
  const void* constant;
  int32_t producer;         /* the node that makes it, or -1 */
  int32_t consumer_count;   /* one for each input of a node that reads it */
  const int32_t* consumers; /* nodes */
  /* The sparse layout that the value may lie in: one of TESSERA_DENSE (none), _CSR, _ROW_SPARSE,
   * and the most elements or rows that it can store there. */
  int32_t sparse_format;
  int32_t reserved;
  int64_t sparse_capacity;
} tessera_value;

/* Constants up to this size always keep their elements (limits of a clip, sizes, axes). */
#define TESSERA_SMALL_CONSTANT_BYTES 4096

enum {
  TESSERA_ATTRIBUTE_INT = 1,
  TESSERA_ATTRIBUTE_FLOAT = 2,
  TESSERA_ATTRIBUTE_STRING = 3,
  TESSERA_ATTRIBUTE_INTS = 4,
  TESSERA_ATTRIBUTE_FLOATS = 5,
  TESSERA_ATTRIBUTE_STRINGS = 6,
  TESSERA_ATTRIBUTE_TENSOR = 7
};

/* Which member counts is told by `kind`; `count` is the length of the arrays. */
typedef struct tessera_attribute {
  uint32_t struct_size;
  int32_t kind;
  int64_t int_value;
  float float_value;
  int32_t count;
  const char* string_value;
  const int64_t* ints;
  const float* floats;
  const char* const* strings;
  tessera_buffer tensor;
} tessera_attribute;

/* One match of a pattern: the node for each step of the pattern, in the pattern's order. Valid
 * during the call. */
typedef void (*tessera_match_visitor)(void* user, const int32_t* nodes, int32_t node_count);

/* --- Running ---------------------------------------------------------------------------------- */

/* What a kernel may use while it runs; valid during the call. */
typedef struct tessera_run_context tessera_run_context;
struct tessera_run_context {
  uint32_t struct_size;
  int32_t threads; /* how many parallel_for may use, the calling one included */
  int32_t is_training;
  int32_t is_bulk;  /* the caller synchronises at the end of several kernels: do not */
  void* host_state; /* the host's own */
  void* queue;      /* of the device; null on the host's processor */
  void* workspace;  /* as many bytes as the kernel asked for; aligned */
  int64_t workspace_bytes;
  uint64_t random_seed; /* differs from run to run */
  /* Calls body(argument, begin, end) on ranges that together cover [0, count) once each, in any
   * order and from any thread of the host's pool, in pieces of about `grain` or more. `body` must
   * not throw. */
  void (*parallel_for)(tessera_run_context* context, int64_t count, int64_t grain,
                       void (*body)(void* argument, int64_t begin, int64_t end), void* argument);
  /* Memory for an output whose size only running shows (TESSERA_OUTPUT_SIZE_UNKNOWN), dense
   * row-major; once for each such output. Null where there is none left. */
  void* (*allocate_output)(tessera_run_context* context, int32_t output, int32_t rank,
                           const int64_t* dims);
};

/* --- Devices, layouts, conversions --------------------------------------------------------------
 */

typedef struct tessera_device {
  const char* kind; /* "cpu"; another name for each kind of accelerator */
  int32_t ordinal;
  int32_t reserved;
  const char* architecture; /* what its code depends on: "x86-64 avx512", "sm_90" */
} tessera_device;

/* Copies `from` to `to`: equal logical types, each in the layout that the conversion names. */
typedef int32_t (*tessera_convert)(void* self, tessera_run_context* context,
                                   const tessera_buffer* from, const tessera_buffer* to,
                                   tessera_error* error);

/* The default layout: dense, row-major, in the host's memory. Never listed by a plug-in. */
#define TESSERA_LAYOUT_DEFAULT "row_major"
/* In a port: any dense layout, the same for every port of the candidate that says so. */
#define TESSERA_LAYOUT_ANY_DENSE "*"

enum {
  /* Each stored element belongs to one logical element or is padding, and an elementwise kernel may
   * compute all of storage in order. Padding holds zero whenever a kernel is done: a kernel that
   * makes something else of zero must clear it again. */
  TESSERA_LAYOUT_IS_DENSE = 1
};

/* Sparse layouts are the host's own: it brings their conversions, and no plug-in lists them. A port
 * may name one where its value has that sparse_format; the value's sparse_capacity then says how
 * much room the buffer has. What is not stored is zero; what is stored may be zero too. csr rank 2:
 * for each row the columns of its stored elements, ascending row_sparse  rank 1 and more: some rows
 * (of axis 0), ascending, each with all of its elements A buffer is one piece: this header, then
 * the parts that it names, each at a multiple of TESSERA_ALIGNMENT_BYTES after the start. What lies
 * between and behind them is undefined. */
#define TESSERA_LAYOUT_CSR "csr"
#define TESSERA_LAYOUT_ROW_SPARSE "row_sparse"

enum { TESSERA_DENSE = 0, TESSERA_CSR = 1, TESSERA_ROW_SPARSE = 2 };

typedef struct tessera_sparse_header {
  uint32_t format; /* TESSERA_CSR or TESSERA_ROW_SPARSE */
  uint32_t reserved;
  int64_t stored;   /* elements (csr) or rows (row_sparse) */
  int64_t capacity; /* the most that there is room for */
  int64_t
      offsets_at; /* csr: int64, one more than rows: where each begins among the stored; else 0 */
  int64_t indices_at; /* csr: int32 columns; row_sparse: int64 rows */
  int64_t values_at;  /* the elements, in the order of the indices */
  int64_t reserved_too[2];
} tessera_sparse_header;

/* How a tensor lies in memory. Names without a colon are shared by all libraries and mean the same
 * everywhere:
 *   nhwc      rank 3 to 5; axis 1 (channels) innermost, the others in order
 *   nchw8c    rank 3 to 5; channels in blocks of 8, the block innermost, the last one padded
 *   nchw16c   the same in blocks of 16
 * Any other name must begin with the backend's name and a colon ("mylib:tiled"). */
typedef struct tessera_layout {
  uint32_t struct_size;
  uint32_t flags; /* TESSERA_LAYOUT_IS_ */
  const char* name;
  int32_t device; /* index into the backend's devices */
  int32_t reserved;
  /* Bytes that such a tensor takes; -1 where this layout does not hold it. All dims are known. */
  int64_t (*storage_bytes)(void* self, const tessera_type* type);
  tessera_convert to_default;   /* required */
  tessera_convert from_default; /* required */
  void* self;                   /* for the functions above */
} tessera_layout;

/* A direct way from one layout to another; may copy between devices. */
typedef struct tessera_conversion {
  uint32_t struct_size;
  uint32_t reserved;
  const char* from;
  const char* to;
  tessera_convert convert;
  void* self;
} tessera_conversion;

/* --- Candidates ---------------------------------------------------------------------------------
 */

/* How a kernel wants a constant input. The host packs once for each (weight, id, version of the
 * library) and shares the result between shapes, threads and executors; the kernel then gets the
 * packed bytes in place of the tensor. */
typedef struct tessera_pack {
  uint32_t struct_size;
  uint32_t reserved;
  const char* id; /* equal ids give equal bytes for equal weights: name format and blocking */
  int64_t bytes;
  int32_t (*pack)(void* self, tessera_run_context* context, const tessera_buffer* from, void* to,
                  int64_t to_bytes, tessera_error* error);
  void* self;
} tessera_pack;

/* Where a tensor lies in the storage of another one, which is dense in the layout of its port. */
typedef struct tessera_part {
  int64_t offset_bytes; /* a multiple of the element's size */
  /* In elements, one for each dimension of the part, none below 1; only in row_major and nhwc can
   * elements be told by strides. With a count of 0 the part is dense in the layout of its port. */
  const int64_t* strides;
  int32_t stride_count;
  int32_t reserved;
} tessera_part;

/* A buffer begins at a multiple of `alignment_bytes` (a power of two, TESSERA_ALIGNMENT_BYTES at
 * most; 0: that) and, unless the port accepts strides, is dense: views that are not so are copied
 * before they come to this port. Strides are known only when the kernel runs. */
typedef struct tessera_input_port {
  int32_t value;
  int32_t accepts_strides;
  const char* layout; /* null: the default */
  int64_t alignment_bytes;
  const tessera_pack* pack; /* null: the tensor itself */
  /* Of a joint candidate: where in output 0 this input lies; null: at its beginning, dense. */
  const tessera_part* part;
} tessera_input_port;

enum {
  TESSERA_OUTPUT_SIZE_UNKNOWN = 1,
  TESSERA_OUTPUT_ACCEPTS_STRIDES = 2 /* the buffer may be part of a larger tensor */
};

typedef struct tessera_output_port {
  int32_t value;
  uint32_t requests;       /* which TESSERA_REQUEST_ it can serve, or-ed; 0 means WRITE */
  const char* layout;      /* null: the default */
  int32_t in_place_input;  /* for IN_PLACE: index of the input port that it may overwrite; for ADD:
                              of the input port whose contents it adds to; else -1 */
  uint32_t flags;          /* TESSERA_OUTPUT_ */
  int64_t alignment_bytes; /* as for an input port */
  /* Of a view: where in input 0 this output lies; null: at its beginning, dense. */
  const tessera_part* part;
} tessera_output_port;

/* A dimension (of an input port) that the kernel is built for; the others are arguments. */
typedef struct tessera_built_for {
  int32_t input_port;
  int32_t axis;
} tessera_built_for;

enum { TESSERA_POOL_HOST = 0, TESSERA_POOL_OWN = 1 };

enum {
  TESSERA_CANDIDATE_NOT_DETERMINISTIC = 1,
  TESSERA_CANDIDATE_INFERENCE_ONLY = 2,
  TESSERA_CANDIDATE_VIEW = 4, /* every output is part of input 0: no kernel is built or run */
  TESSERA_CANDIDATE_STORES_CONSTANTS = 8, /* a saved kernel contains weights */
  TESSERA_CANDIDATE_BUILT_FOR_ALL = 16,   /* built for every dimension; `built_for` is not read */
  /* The inputs together make up the one output, each being part of it: no kernel is built or run.
   * Who makes an input writes it to its place, where it can; else the host copies it there. */
  TESSERA_CANDIDATE_JOINT = 32,
  /* Chosen only where its time was measured, or where the user pins a node to it: for groups that
   * take long to build, and of which nobody knows beforehand whether they are worth it. */
  TESSERA_CANDIDATE_MEASURED_ONLY = 64,
  /* A NaN or an infinity in an input may reach output elements that do not read it, as within a
   * tile of Winograd's algorithm. Others are judged by not doing so. */
  TESSERA_CANDIDATE_SPREADS_NAN = 128
};

typedef struct tessera_build_options {
  uint32_t struct_size;
  int32_t threads;
  const char* dense_layout; /* what TESSERA_LAYOUT_ANY_DENSE became; null without such a port */
  /* The constants of tessera_candidate::absorbed, in that order, dense row-major. They stay where
   * they are until the kernel is released; their dimensions only during the call. */
  const tessera_buffer* absorbed;
  int32_t absorbed_count;
  int32_t reserved;
} tessera_build_options;

/* A built kernel. Used from one thread at a time for each set of buffers, from several at once for
 * different ones: whatever changes while it runs belongs into the workspace. */
typedef struct tessera_kernel {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  int64_t workspace_bytes; /* at most what the candidate said */
  /* Inputs and outputs in the order of the candidate's ports. */
  int32_t (*run)(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                 const tessera_buffer* outputs, tessera_error* error);
  /* Null, or gives bytes from which tessera_candidate::load makes the kernel again. */
  int32_t (*save)(void* self, tessera_bytes_visitor visitor, void* user, tessera_error* error);
  void (*release)(void* self);
} tessera_kernel;

/* One way to compute a node or a group of nodes. Belongs to the plug-in; the host keeps it until it
 * calls `release`, and may outlive the graph that it was proposed for, so a candidate keeps copies
 * of what it needs from there. */
typedef struct tessera_candidate {
  uint32_t struct_size;
  uint32_t flags;        /* TESSERA_CANDIDATE_ */
  const char* algorithm; /* "winograd:avx512"; "" where there is but one */
  const int32_t* nodes;  /* ascending */
  int32_t node_count;
  int32_t input_count;
  const tessera_input_port* inputs; /* each value once; constants that the kernel reads too */
  const tessera_output_port* outputs;
  int32_t output_count;
  int32_t threads; /* the most it uses; 0: all of the pool */
  int32_t pool;    /* TESSERA_POOL_ */
  int32_t built_for_count;
  const tessera_built_for* built_for;
  int64_t workspace_bytes;
  int64_t library_bytes;     /* memory that the library keeps for it, weights not packed included */
  double optimistic_seconds; /* it cannot be faster; 0: no idea */
  double build_seconds;      /* expected; 0: no idea */
  void* self;
  /* Null for views and joint candidates. */
  int32_t (*build)(void* self, const tessera_build_options* options, tessera_kernel* kernel,
                   tessera_error* error);
  /* Null, or makes a kernel from bytes that tessera_kernel::save gave, perhaps in another process:
   * on the same processor, with the same ingredients of the backend, and of a candidate with equal
   * nodes, ports, algorithm, threads, and absorbed constants. The bytes stay where they are until
   * the kernel is released. Nobody else can have written them. */
  int32_t (*load)(void* self, const void* bytes, size_t size, tessera_kernel* kernel,
                  tessera_error* error);
  void (*release)(void* self);
  /* Constants that the nodes read and that become part of the kernel while it is built: `build`
   * gets their elements, and no port has them. */
  const int32_t* absorbed;
  int32_t absorbed_count;
  int32_t reserved;
} tessera_candidate;

enum { TESSERA_PRECISION_FLOAT32 = 0, TESSERA_PRECISION_BFLOAT16 = 1 };

/* EXACT: where the op's reference gives NaN, so does a kernel; where it gives an infinity, a kernel
 * gives no finite number. FAST: neither is asked for. */
enum { TESSERA_NAN_EXACT = 0, TESSERA_NAN_FAST = 1 };

/* One candidate that is asked for: the nodes of its group, ascending, its algorithm, and its ports
 * as they were offered: the layouts of the inputs, each with ":" and the id of its pack where it
 * has one, then "->", then the layouts of the outputs; a space between two. */
typedef struct tessera_wanted {
  const int32_t* nodes;
  int32_t node_count;
  int32_t reserved;
  const char* algorithm;
  const char* ports;
} tessera_wanted;

typedef struct tessera_propose_options {
  uint32_t struct_size;
  int32_t threads;
  int32_t precision;   /* the least that float32 arithmetic may be done in: TESSERA_PRECISION_ */
  int32_t is_training; /* candidates for inference only are of no use */
  /* Those of TESSERA_CANDIDATE_MEASURED_ONLY are of no use: nothing is measured, nothing pinned. */
  int32_t skips_measured_only;
  int32_t wanted_count;
  /* Where a plan is known: only these candidates are of use, and nobody asks why others are
   * refused. Whatever else is offered is let go of at once. Null: everything is of use. */
  const tessera_wanted* wanted;
  /* What candidates may do with NaN and infinities: TESSERA_NAN_. Not sent by older hosts (see
   * struct_size), for which EXACT is right. */
  int32_t nan;
  int32_t reserved;
} tessera_propose_options;

/* Where a backend puts what it can do; the host's. */
typedef struct tessera_proposals tessera_proposals;
struct tessera_proposals {
  uint32_t struct_size;
  uint32_t reserved;
  void* host_state;
  /* Takes the candidate over: from here on only the host calls its `release`. */
  void (*add)(tessera_proposals* proposals, const tessera_candidate* candidate);
  /* Why nothing can be done for `node`: a sentence without a final stop. */
  void (*refuse)(tessera_proposals* proposals, int32_t node, const char* reason);
};

/* --- Ops of a backend's own domain
 * ---------------------------------------------------------------- */

enum { TESSERA_ARITY_REQUIRED = 0, TESSERA_ARITY_OPTIONAL = 1, TESSERA_ARITY_VARIADIC = 2 };

typedef struct tessera_parameter {
  const char* name;
  const char* type_variable; /* parameters with one variable have one element type */
  uint32_t data_types;       /* which it takes: bit i is data type i */
  int32_t arity;             /* VARIADIC only as the last one */
} tessera_parameter;

typedef struct tessera_attribute_schema {
  const char* name;
  int32_t kind;
  int32_t is_required;
  const tessera_attribute* default_value; /* null: none */
} tessera_attribute_schema;

/* What a type rule sees of one node; valid during the call. */
typedef struct tessera_infer_context tessera_infer_context;
struct tessera_infer_context {
  uint32_t struct_size;
  int32_t input_count;
  int32_t output_count;
  int32_t reserved;
  void* host_state;
  /* rank and dims are -1 where unknown; data_type TESSERA_UNDEFINED for an omitted input. */
  const tessera_type* inputs;
  const void* const* constants; /* elements of each input, where they are known; else null */
  const tessera_attribute* (*attribute)(const tessera_infer_context* context, const char* name);
  /* A dimension of -1 is one that is not known before running. */
  void (*set_output)(tessera_infer_context* context, int32_t output, const tessera_type* type);
};

/* What a reference kernel of a plug-in's op sees besides its buffers. */
typedef struct tessera_node_context tessera_node_context;
struct tessera_node_context {
  uint32_t struct_size;
  int32_t input_count; /* as many buffers as inputs and outputs are given */
  int32_t output_count;
  int32_t reserved;
  void* host_state;
  const tessera_attribute* (*attribute)(const tessera_node_context* context, const char* name);
};

typedef struct tessera_op {
  uint32_t struct_size;
  int32_t version;
  const char* domain; /* not "" */
  const char* name;
  const tessera_parameter* inputs;
  const tessera_parameter* outputs;
  int32_t input_count;
  int32_t output_count;
  const tessera_attribute_schema* attributes;
  int32_t attribute_count;
  int32_t is_elementwise;
  int32_t (*infer)(void* self, tessera_infer_context* context, tessera_error* error);
  /* Null: the op has no reference, and what computes it stays unverified. Row-major buffers. */
  int32_t (*reference)(void* self, const tessera_node_context* node, tessera_run_context* context,
                       const tessera_buffer* inputs, const tessera_buffer* outputs,
                       tessera_error* error);
  void* self; /* for the functions above */
} tessera_op;

/* --- The short form
 * -------------------------------------------------------------------------------- */

/* A kernel for single nodes on row-major buffers of known sizes. Inputs and outputs are those of
 * the node, in its order; `data` is null where one is left out. */
typedef struct tessera_simple_kernel {
  uint32_t struct_size;
  uint32_t reserved;
  const char* domain;
  const char* op;
  /* Null where it can compute the node, else the reason why not. Valid until the next call. */
  const char* (*explain_refusal)(void* self, const tessera_graph* graph, int32_t node);
  int32_t (*run)(void* self, const tessera_node_context* node, tessera_run_context* context,
                 const tessera_buffer* inputs, const tessera_buffer* outputs, tessera_error* error);
  void* self;
} tessera_simple_kernel;

/* --- What a plug-in gives
 * ------------------------------------------------------------------------- */

typedef struct tessera_ingredient {
  const char* name; /* "version" */
  const char* value;
} tessera_ingredient;

typedef struct tessera_backend {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  const char* name;                      /* "mylib": lower case letters, digits and '_' */
  const char* version;                   /* for people */
  const tessera_ingredient* ingredients; /* what measured times and packed weights depend on */
  const tessera_device* devices;         /* at least one */
  const tessera_layout* layouts;
  const tessera_conversion* conversions;
  const tessera_op* ops;
  const tessera_simple_kernel* simple_kernels;
  int32_t ingredient_count;
  int32_t device_count;
  int32_t layout_count;
  int32_t conversion_count;
  int32_t op_count;
  int32_t simple_kernel_count;
  /* Null where the simple kernels are all there is. Every node that is in no candidate should be
   * refused with a reason. From one thread at a time. */
  int32_t (*propose)(void* self, const tessera_graph* graph, const tessera_propose_options* options,
                     tessera_proposals* proposals, tessera_error* error);
  void (*release)(void* self);
} tessera_backend;

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "tessera/backend_host_abi.h"

#endif /* TESSERA_BACKEND_ABI_H */
