/* The binary side of the plug-in contract: plain C structs and functions. Plug-in authors include
 * tessera/backend.h, which wraps this file in C++. Host and plug-in agree on this file byte by
 * byte, so a plug-in may be built with another compiler and another standard library than the host.
 *
 * Rules that hold everywhere:
 *  - Strings are UTF-8 and end with a zero byte. A pointer that is passed to the other side stays
 *    valid as long as the object that it is part of, unless a comment says otherwise.
 *  - A function that can fail returns TESSERA_OK, or the kind of its failure after it has written
 *    the reason into `error`. No exception leaves a function of either side.
 *  - Structs that begin with struct_size may grow at their end. A reader checks struct_size before
 *    it reads a member that a later version added. The others are fixed for this contract version.
 *  - Memory is freed by the side that allocated it, through the `release` that came with it. */
#ifndef TESSERA_BACKEND_ABI_H
#define TESSERA_BACKEND_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "tessera/backend_device_abi.h"
#include "tessera/backend_types_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_CONTRACT_VERSION 1u

/* --- The graph, as a plug-in sees it ---------------------------------------------------------- */

typedef struct tessera_graph tessera_graph; /* opaque */

/* Nodes and values are numbered from 0; -1 stands for an optional input or output that is left out.
 * Nodes are in an order in which they can run. */
typedef struct tessera_node {
  uint32_t struct_size;
  int32_t version; /* of the op: the newest in the model's operator set */
  const char* name;
  const char* op;     /* "Conv" */
  const char* domain; /* "" is ONNX's own */
  const int32_t* inputs;
  int32_t input_count;
  int32_t output_count;
  const int32_t* outputs;
  int32_t body_count; /* nested graphs (If, Loop, Scan) */
  int32_t is_random;  /* two runs differ: it must not be computed twice */
  int64_t flops;      /* a multiply-add is 2; -1 while shapes are unknown */
  int64_t bytes;      /* read and written, once each; -1 while shapes are unknown */
} tessera_node;

enum {
  TESSERA_VALUE_INPUT = 1,    /* passed by the caller in each run */
  TESSERA_VALUE_CONSTANT = 2, /* known before running; see `constant` */
  TESSERA_VALUE_NEEDED = 4,   /* an output of the graph or fetched: a group must return it */
  TESSERA_VALUE_STATE = 8     /* kept between runs */
};

typedef struct tessera_value {
  uint32_t struct_size;
  uint32_t flags; /* TESSERA_VALUE_ */
  const char* name;
  tessera_type type;
  /* The elements of a constant, dense row-major. Null if they were released after packing; only
   * constants of more than TESSERA_SMALL_CONSTANT_BYTES are released. */
  const void* constant;
  int32_t producer;         /* the node that computes it, or -1 */
  int32_t consumer_count;   /* one for each input of a node that reads it */
  const int32_t* consumers; /* nodes */
  /* The sparse layout in which the value may be stored: TESSERA_DENSE (none), TESSERA_CSR or
   * TESSERA_ROW_SPARSE; and the maximum number of elements or rows that it can store in that
   * layout. */
  int32_t sparse_format;
  int32_t reserved;
  int64_t sparse_capacity;
  const tessera_type* small_type; /* of a value of a small type; see TESSERA_FLOAT8E4M3FN */
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

/* `kind` says which member holds the value; `count` is the length of the arrays. */
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

/* Receives one match of a pattern: the node of each step of the pattern, in its order. The array is
 * valid only during the call. */
typedef void (*tessera_match_visitor)(void* user, const int32_t* nodes, int32_t node_count);

/* --- Running ---------------------------------------------------------------------------------- */

/* Services of the host for a running kernel; valid only during the call. */
typedef struct tessera_run_context tessera_run_context;
struct tessera_run_context {
  uint32_t struct_size;
  int32_t threads; /* maximum for parallel_for, with the calling thread */
  int32_t is_training;
  int32_t is_bulk;  /* the caller synchronises once after several kernels: do not synchronise */
  void* host_state; /* for the host only */
  /* Of the device; null on the host's CPU. A kernel or a conversion that has a queue only enqueues
   * its work in it, and returns. */
  void* queue;
  /* Of the size that the kernel asked for; aligned. With a queue, it points to a
   * tessera_device_position. */
  void* workspace;
  int64_t workspace_bytes;
  uint64_t random_seed; /* differs from run to run */
  /* Calls body(argument, begin, end) for ranges of about `grain` elements or more, which together
   * cover [0, count) exactly once. The order is arbitrary, and any thread of the host's pool may
   * make a call. `body` must not throw. */
  void (*parallel_for)(tessera_run_context* context, int64_t count, int64_t grain,
                       void (*body)(void* argument, int64_t begin, int64_t end), void* argument);
  /* Returns memory, dense row-major, for an output whose size is known only in the run
   * (TESSERA_OUTPUT_SIZE_UNKNOWN). Call it once for each of these outputs. Null if no memory is
   * left. */
  void* (*allocate_output)(tessera_run_context* context, int32_t output, int32_t rank,
                           const int64_t* dims);
};

/* --- Devices, layouts, conversions ------------------------------------------------------------ */

typedef struct tessera_device {
  const char* kind; /* "cpu", or another name for each kind of accelerator */
  int32_t ordinal;
  int32_t reserved;
  const char* architecture; /* the instruction set of its code: "x86-64 avx512", "sm_90" */
} tessera_device;

/* The name of a device is its kind, or "kind:ordinal" if the ordinal is not 0. A device that has an
 * interface (tessera_backend::device_interfaces) has memory of its own, and layouts of its own in
 * it: their full names end with "@" and the name of the device ("nhwc@mylib:1"). The host provides
 * TESSERA_LAYOUT_DEFAULT on each such device, and copies to and from it. A port names its layout in
 * full. All ports of a candidate are on one device, dense, and of known sizes. Tensors of strings
 * stay in the host's memory. */

/* Copies `from` to `to`. Both have the same logical type, each is in the layout that the conversion
 * names. */
typedef int32_t (*tessera_convert)(void* self, tessera_run_context* context,
                                   const tessera_buffer* from, const tessera_buffer* to,
                                   tessera_error* error);

/* The default layout: dense, row-major, in host memory. A plug-in must not list it. */
#define TESSERA_LAYOUT_DEFAULT "row_major"
/* In a port: any dense layout in the host's memory, but the same one for all ports of the candidate
 * that use this name. "*@mylib:1": any dense layout on that device. */
#define TESSERA_LAYOUT_ANY_DENSE "*"

enum {
  /* Each stored element is one logical element or padding, and an elementwise kernel may compute
   * the whole storage in order. Padding must be zero when a kernel returns: a kernel that maps zero
   * to another value must clear the padding again. */
  TESSERA_LAYOUT_IS_DENSE = 1,
  /* Of a shared layout: this backend's conversions from and to it yield to those of any other. */
  TESSERA_LAYOUT_HAS_SIMPLE_CONVERSIONS = 2
};

/* Sparse layouts belong to the host: it provides their conversions, and a plug-in must not list
 * them. A port may name one if its value has that sparse_format; the value's sparse_capacity then
 * says how much room the buffer has. Elements that are not stored are zero; stored elements may be
 * zero too.
 *  - csr: rank 2. For each row, the columns of its stored elements, ascending.
 *  - row_sparse: rank 1 or more. Some rows (of axis 0), ascending, each with all of its elements.
 * A buffer is one block of memory: this header, then the arrays that it names. Each array begins at
 * a multiple of TESSERA_ALIGNMENT_BYTES from the start of the buffer. The bytes between and after
 * the arrays are undefined. */
#define TESSERA_LAYOUT_CSR "csr"
#define TESSERA_LAYOUT_ROW_SPARSE "row_sparse"

enum { TESSERA_DENSE = 0, TESSERA_CSR = 1, TESSERA_ROW_SPARSE = 2 };

typedef struct tessera_sparse_header {
  uint32_t format; /* TESSERA_CSR or TESSERA_ROW_SPARSE */
  uint32_t reserved;
  int64_t stored;   /* elements (csr) or rows (row_sparse) */
  int64_t capacity; /* maximum of `stored` */
  /* csr: position of the int64 array, with one entry more than rows, that says where each row
   * begins among the stored elements; else 0. */
  int64_t offsets_at;
  int64_t indices_at; /* csr: int32 columns; row_sparse: int64 rows */
  int64_t values_at;  /* the elements, in the order of the indices */
  int64_t reserved_too[2];
} tessera_sparse_header;

/* How a tensor is stored in memory. Names without a colon are shared by all libraries and mean the
 * same everywhere:
 *    nhwc      rank 3 to 5; axis 1 (channels) innermost, the other axes in order
 *    nchw8c    rank 3 to 5; channels in blocks of 8, the block innermost, the last block padded
 *    nchw16c   the same in blocks of 16
 * Any other name must begin with the backend's name and a colon ("mylib:tiled"). */
typedef struct tessera_layout {
  uint32_t struct_size;
  uint32_t flags;   /* TESSERA_LAYOUT_IS_, TESSERA_LAYOUT_HAS_ */
  const char* name; /* without the device */
  int32_t device;   /* index into the backend's devices */
  int32_t reserved;
  /* Returns the bytes that a tensor of this type needs; -1 if the layout cannot store this type.
   * All dims are known. */
  int64_t (*storage_bytes)(void* self, const tessera_type* type);
  /* Required. To and from the default layout in the same memory: a layout on a device converts on
   * the device, in its queue. */
  tessera_convert to_default;
  tessera_convert from_default;
  void* self; /* for the functions above */
} tessera_layout;

/* A direct conversion from one layout to another. If one of the two is on a device, it works in the
 * queue of that device; if both are, on two devices, in that of `to`. */
typedef struct tessera_conversion {
  uint32_t struct_size;
  uint32_t reserved;
  const char* from; /* full names */
  const char* to;
  tessera_convert convert;
  void* self;
} tessera_conversion;

/* --- Candidates ------------------------------------------------------------------------------- */

/* The form in which a kernel needs a constant input. The host packs once for each (weight, id,
 * library version) and shares the result between shapes, threads and executors. The kernel then
 * gets the packed bytes in place of the tensor. */
typedef struct tessera_pack {
  uint32_t struct_size;
  uint32_t reserved;
  const char* id; /* equal ids mean equal bytes for equal weights: name format and blocking */
  int64_t bytes;
  int32_t (*pack)(void* self, tessera_run_context* context, const tessera_buffer* from, void* to,
                  int64_t to_bytes, tessera_error* error);
  void* self;
} tessera_pack;

/* The position of a tensor in the storage of another tensor, which is dense in the layout of its
 * port. */
typedef struct tessera_part {
  int64_t offset_bytes; /* a multiple of the element size */
  /* In elements, one for each dimension of the part, each at least 1. Only elements of row_major
   * and nhwc can be addressed by strides. If stride_count is 0, the part is dense in the layout of
   * its port. */
  const int64_t* strides;
  int32_t stride_count;
  int32_t reserved;
} tessera_part;

/* A buffer begins at a multiple of `alignment_bytes`: a power of two, at most
 * TESSERA_ALIGNMENT_BYTES; 0 means TESSERA_ALIGNMENT_BYTES. A buffer is dense unless the port
 * accepts strides: the host copies a view that is not dense before it passes it to such a port.
 * Strides are known only when the kernel runs. */
typedef struct tessera_input_port {
  int32_t value;
  int32_t accepts_strides;
  const char* layout; /* null: the default */
  int64_t alignment_bytes;
  const tessera_pack* pack; /* null: the tensor itself */
  /* Of a joint candidate: the position of this input in output 0; null: at its beginning, dense. */
  const tessera_part* part;
} tessera_input_port;

enum {
  TESSERA_OUTPUT_SIZE_UNKNOWN = 1,
  TESSERA_OUTPUT_ACCEPTS_STRIDES = 2 /* the buffer may be part of a larger tensor */
};

typedef struct tessera_output_port {
  int32_t value;
  uint32_t requests;       /* supported TESSERA_REQUEST_, or-ed; 0 means WRITE */
  const char* layout;      /* null: the default */
  int32_t in_place_input;  /* for IN_PLACE: index of the input port that it may overwrite; for ADD:
                              index of the input port to whose contents it adds; else -1 */
  uint32_t flags;          /* TESSERA_OUTPUT_ */
  int64_t alignment_bytes; /* as for an input port */
  /* Of a view: the position of this output in input 0; null: at its beginning, dense. */
  const tessera_part* part;
} tessera_output_port;

/* A dimension of an input port that is a constant in the kernel. It reads the others from its
 * buffers in each run, and computes all sizes for which these constants are equal, as far as
 * dimensions of its ports that were 0, 1, or more than 1 still are, and equal ones are still equal.
 * The candidate's ports and workspace_bytes (unless it has workspace_for) hold for all of these. */
typedef struct tessera_built_for {
  int32_t input_port;
  int32_t axis;
} tessera_built_for;

enum { TESSERA_POOL_HOST = 0, TESSERA_POOL_OWN = 1 };

enum {
  TESSERA_CANDIDATE_NOT_DETERMINISTIC = 1,
  TESSERA_CANDIDATE_INFERENCE_ONLY = 2,
  TESSERA_CANDIDATE_VIEW = 4,             /* every output is part of input 0; without a kernel */
  TESSERA_CANDIDATE_STORES_CONSTANTS = 8, /* a saved kernel contains weights */
  TESSERA_CANDIDATE_BUILT_FOR_ALL = 16,   /* built for every dimension; `built_for` is ignored */
  /* The inputs are parts that together fill the only output; without a kernel. The step of an input
   * writes it into its part of the output if possible; otherwise the host copies it there. */
  TESSERA_CANDIDATE_JOINT = 32,
  /* Chosen only if it was measured or is pinned: for groups that may not be worth their build. */
  TESSERA_CANDIDATE_MEASURED_ONLY = 64,
  /* A NaN or an infinity in an input may reach output elements that do not read it. The host
   * refuses candidates without this flag that do this. */
  TESSERA_CANDIDATE_SPREADS_NAN = 128,
  /* Computes several nodes in one pass over memory. If nothing is measured and no backend is named,
   * the largest of such groups is chosen, whatever its backend. */
  TESSERA_CANDIDATE_ONE_PASS = 256,
  /* The kernel is compiled while Tessera runs and then kept by the host (put_blob), so that later
   * processes only load it. `build_seconds` is the time to compile it. */
  TESSERA_CANDIDATE_COMPILED = 512,
  /* Not kept yet. If nothing is measured, it is compiled behind the runs. */
  TESSERA_CANDIDATE_TO_COMPILE = 1024,
  /* Its error may exceed the op's bound (docs/accuracy.md): refused without ACCURACY_FAST. */
  TESSERA_CANDIDATE_ROUGH = 2048,
  TESSERA_CANDIDATE_KNOWS_SMALL_TYPES = 4096 /* see TESSERA_FLOAT8E4M3FN */
};

typedef struct tessera_build_options {
  uint32_t struct_size;
  int32_t threads;
  /* The layout that was chosen for TESSERA_LAYOUT_ANY_DENSE; null if no port uses that name. */
  const char* dense_layout;
  /* The constants of tessera_candidate::absorbed, in that order, dense row-major. Their elements
   * stay at the same address until the kernel is released; their dimensions are valid only during
   * the call. */
  const tessera_buffer* absorbed;
  int32_t absorbed_count;
  int32_t reserved;
} tessera_build_options;

/* A built kernel. One thread at a time uses it with the same set of buffers, but several threads
 * may use it simultaneously with different sets. So everything that changes while it runs must be
 * in the workspace. */
typedef struct tessera_kernel {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  int64_t workspace_bytes; /* at most that of the candidate */
  /* Inputs and outputs in the order of the candidate's ports. */
  int32_t (*run)(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                 const tessera_buffer* outputs, tessera_error* error);
  /* Null, or passes bytes to `visitor` from which tessera_candidate::load builds the kernel
   * again. */
  int32_t (*save)(void* self, tessera_bytes_visitor visitor, void* user, tessera_error* error);
  void (*release)(void* self);
  /* Null, or passes the text of a compiled kernel to `visitor`, for users: TESSERA_KERNEL_. Fails
   * with TESSERA_UNSUPPORTED if it has no text of this form. The host sets struct_size to the size
   * of its struct before it calls `build` or `load`; set this member only if it is covered. */
  int32_t (*describe)(void* self, int32_t form, tessera_bytes_visitor visitor, void* user,
                      tessera_error* error);
} tessera_kernel;

enum {
  TESSERA_KERNEL_EXPRESSION = 0, /* tessera_fused_group::text */
  TESSERA_KERNEL_SOURCE = 1,     /* in the language of its compiler */
  TESSERA_KERNEL_ASSEMBLY = 2,
  /* The usual extension of files with that source: "ll", "cl". */
  TESSERA_KERNEL_SOURCE_EXTENSION = 3
};

/* One way to compute a node or a group of nodes. The plug-in owns it; the host uses it until it
 * calls `release`. That may be after the end of the graph for which it was proposed, so a candidate
 * keeps copies of everything that it needs from the graph. */
typedef struct tessera_candidate {
  uint32_t struct_size;
  uint32_t flags;        /* TESSERA_CANDIDATE_ */
  const char* algorithm; /* "winograd:avx512"; "" if there is only one */
  const int32_t* nodes;  /* ascending */
  int32_t node_count;
  int32_t input_count;
  const tessera_input_port* inputs; /* each value once, also constants that the kernel reads */
  const tessera_output_port* outputs;
  int32_t output_count;
  int32_t threads; /* the maximum that it uses; 0: all of the pool */
  int32_t pool;    /* TESSERA_POOL_ */
  int32_t built_for_count;
  const tessera_built_for* built_for;
  int64_t workspace_bytes;
  /* Memory that the library keeps for it, including weights that are not packed. */
  int64_t library_bytes;
  double optimistic_seconds; /* a lower bound of its time; 0: not known */
  double build_seconds;      /* estimate; 0: not known */
  void* self;
  /* Null for views and joint candidates. */
  int32_t (*build)(void* self, const tessera_build_options* options, tessera_kernel* kernel,
                   tessera_error* error);
  /* Null, or creates a kernel from bytes that tessera_kernel::save returned, perhaps in another
   * process. The host calls it only on the same processor, with the same ingredients of the
   * backend, and for a candidate with equal nodes, ports, algorithm, threads and absorbed
   * constants. The bytes stay there until the kernel is released; nobody else wrote them. */
  int32_t (*load)(void* self, const void* bytes, size_t size, tessera_kernel* kernel,
                  tessera_error* error);
  void (*release)(void* self);
  /* Constants that the nodes read and that become part of the kernel when it is built. `build` gets
   * their elements; they have no port. */
  const int32_t* absorbed;
  int32_t absorbed_count;
  int32_t reserved;
  /* Null, or returns workspace_bytes for other sizes, those of these buffers, which have no data; a
   * negative number if they are too large. */
  int64_t (*workspace_for)(void* self, const tessera_buffer* inputs, const tessera_buffer* outputs);
} tessera_candidate;

/* A candidate that the host asks for: the nodes of its group, ascending; its algorithm; and its
 * ports as they were offered: the layouts of the inputs, each followed by ":" and the id of its
 * pack if it has one; then "->" and the layouts of the outputs; with a space between items. */
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
  int32_t precision;   /* minimum for float32 arithmetic: TESSERA_PRECISION_ */
  int32_t is_training; /* 1: candidates for inference only are ignored */
  /* 1: candidates with TESSERA_CANDIDATE_MEASURED_ONLY are ignored, because nothing is measured and
   * nothing is pinned. */
  int32_t skips_measured_only;
  int32_t wanted_count;
  /* Set if a plan is known: the host needs only these candidates and no refusals, and releases any
   * other candidate immediately. Null: the host considers all candidates. */
  const tessera_wanted* wanted;
  /* How candidates may treat NaN and infinities: TESSERA_NAN_. Older hosts do not send it (see
   * struct_size); assume EXACT for them. */
  int32_t nan;
  int32_t accuracy;    /* TESSERA_ACCURACY_; hosts that send `nan` but do not know it set it to 0 */
  int32_t takes_sizes; /* 1: the host releases candidates with TESSERA_CANDIDATE_BUILT_FOR_ALL */
  int32_t reserved;
} tessera_propose_options;

/* Receives the candidates and refusals of a backend; implemented by the host. */
typedef struct tessera_proposals tessera_proposals;
struct tessera_proposals {
  uint32_t struct_size;
  uint32_t reserved;
  void* host_state;
  /* Takes ownership of the candidate: from now on only the host calls its `release`. */
  void (*add)(tessera_proposals* proposals, const tessera_candidate* candidate);
  /* The reason why the backend cannot compute `node`: a sentence without a final stop. */
  void (*refuse)(tessera_proposals* proposals, int32_t node, const char* reason);
};

/* --- Ops of a backend's own domain ------------------------------------------------------------ */

enum { TESSERA_ARITY_REQUIRED = 0, TESSERA_ARITY_OPTIONAL = 1, TESSERA_ARITY_VARIADIC = 2 };

typedef struct tessera_parameter {
  const char* name;
  const char* type_variable; /* parameters with the same variable have the same element type */
  uint32_t data_types;       /* accepted types: bit i is data type i */
  int32_t arity;             /* VARIADIC only for the last parameter */
} tessera_parameter;

typedef struct tessera_attribute_schema {
  const char* name;
  int32_t kind;
  int32_t is_required;
  const tessera_attribute* default_value; /* null: none */
} tessera_attribute_schema;

/* The node for which a type rule infers types; valid only during the call. */
typedef struct tessera_infer_context tessera_infer_context;
struct tessera_infer_context {
  uint32_t struct_size;
  int32_t input_count;
  int32_t output_count;
  int32_t reserved;
  void* host_state;
  /* A rank or dimension of -1 is unknown; data_type is TESSERA_UNDEFINED for an input that is left
   * out. */
  const tessera_type* inputs;
  const void* const* constants; /* elements of each input, or null if they are not known */
  const tessera_attribute* (*attribute)(const tessera_infer_context* context, const char* name);
  /* A dimension of -1 is not known before running. */
  void (*set_output)(tessera_infer_context* context, int32_t output, const tessera_type* type);
};

/* The node that a reference kernel of a plug-in's op or a simple kernel computes. */
typedef struct tessera_node_context tessera_node_context;
struct tessera_node_context {
  uint32_t struct_size;
  int32_t input_count; /* the number of input buffers */
  int32_t output_count;
  int32_t reserved;
  void* host_state;
  const tessera_attribute* (*attribute)(const tessera_node_context* context, const char* name);
};

typedef struct tessera_op {
  uint32_t struct_size;
  int32_t version;
  const char* domain; /* must not be "" */
  const char* name;
  const tessera_parameter* inputs;
  const tessera_parameter* outputs;
  int32_t input_count;
  int32_t output_count;
  const tessera_attribute_schema* attributes;
  int32_t attribute_count;
  int32_t is_elementwise;
  int32_t (*infer)(void* self, tessera_infer_context* context, tessera_error* error);
  /* Null if the op has no reference kernel; then its candidates cannot be verified. Buffers are
   * row-major. */
  int32_t (*reference)(void* self, const tessera_node_context* node, tessera_run_context* context,
                       const tessera_buffer* inputs, const tessera_buffer* outputs,
                       tessera_error* error);
  void* self; /* for the functions above */
} tessera_op;

/* --- The short form --------------------------------------------------------------------------- */

/* A kernel for single nodes on row-major buffers of known sizes. Inputs and outputs are those of
 * the node, in its order; `data` is null for one that is left out. */
typedef struct tessera_simple_kernel {
  uint32_t struct_size;
  uint32_t reserved;
  const char* domain;
  const char* op;
  /* Returns null if the kernel can compute the node, else the reason why not. The text is valid
   * until the next call. */
  const char* (*explain_refusal)(void* self, const tessera_graph* graph, int32_t node);
  int32_t (*run)(void* self, const tessera_node_context* node, tessera_run_context* context,
                 const tessera_buffer* inputs, const tessera_buffer* outputs, tessera_error* error);
  void* self;
} tessera_simple_kernel;

/* --- Provided by plug-ins --------------------------------------------------------------------- */

typedef struct tessera_ingredient {
  const char* name; /* "version" */
  const char* value;
} tessera_ingredient;

/* Counts of the kernels that a backend has compiled in this process, since it was opened. */
typedef struct tessera_compile_counts {
  uint32_t struct_size; /* set by the host */
  uint32_t reserved;
  int64_t kernels;  /* built from a group: several may share one compiled code */
  int64_t unique;   /* different codes among them */
  int64_t compiled; /* codes that a compiler made */
  int64_t loaded;   /* codes that were found in the store of blobs */
  double compile_seconds;
} tessera_compile_counts;

typedef struct tessera_backend {
  /* The host sets it to the size of its struct before it calls tessera_open_backend, so a plug-in
   * of newer headers knows which members it may set; older hosts set 0. */
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  const char* name;                      /* "mylib": lower case letters, digits and '_' */
  const char* version;                   /* shown to users */
  const tessera_ingredient* ingredients; /* measured times and packed weights depend on them */
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
  /* Null if there are only simple kernels. The backend should refuse every node that is in no
   * candidate, with a reason. Called from one thread at a time. */
  int32_t (*propose)(void* self, const tessera_graph* graph, const tessera_propose_options* options,
                     tessera_proposals* proposals, tessera_error* error);
  void (*release)(void* self);
  /* Null, or by device: null if the device is the host's processor, which works in the host's
   * memory, else the functions of its memory and queues. Backends of older headers do not have this
   * member (see struct_size). */
  const tessera_device_interface* const* device_interfaces;
  /* Null, or fills in `counts`; from any thread. Backends of older headers do not have it. */
  void (*compile_counts)(void* self, tessera_compile_counts* counts);
} tessera_backend;

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "tessera/backend_host_abi.h"
#endif /* TESSERA_BACKEND_ABI_H */
