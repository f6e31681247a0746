/* Fused groups: several nodes that one kernel computes in one pass over the elements. The host
 * finds the groups and writes what they compute as expressions; a plug-in prints an expression in
 * the language of its compiler. tessera/backend_fusion.h wraps this file in C++. The rules of
 * tessera/backend_abi.h hold here too. */
#ifndef TESSERA_BACKEND_FUSION_ABI_H
#define TESSERA_BACKEND_FUSION_ABI_H

#include <stdint.h>

#include "tessera/backend_types_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The newest version of expressions. A new operation, or a new meaning of an old one, is a new
 * version. */
#define TESSERA_EXPRESSION_VERSION 1u

/* The operations. An instruction computes one element of `data_type`; its arguments are results of
 * earlier instructions, of the same type unless the list says otherwise. Floating arithmetic is
 * that of IEEE 754, rounded to nearest, ties to even; nothing may be reordered, contracted or
 * approximated. Integer arithmetic wraps around. "Floats" below are float32 and float64: 16-bit
 * floats are loaded, stored, selected, cast and converted to and from float32 only. */
enum {
  /* The element of operand `index` at this point. */
  TESSERA_EXPRESSION_OPERAND = 0,
  /* `bits`: the element, in the lowest bytes. */
  TESSERA_EXPRESSION_CONSTANT = 1,

  /* Floats and integers. */
  TESSERA_EXPRESSION_ADD = 2,
  TESSERA_EXPRESSION_SUBTRACT = 3,
  TESSERA_EXPRESSION_MULTIPLY = 4,
  /* Integers: truncated; the second argument is a constant, neither 0 nor -1. */
  TESSERA_EXPRESSION_DIVIDE = 5,
  /* Integers only: the remainder of that division, with the sign of the dividend. */
  TESSERA_EXPRESSION_REMAINDER = 6,
  /* Floats: changes the sign bit only, also of NaN. */
  TESSERA_EXPRESSION_NEGATE = 7,
  /* Floats: clears the sign bit. */
  TESSERA_EXPRESSION_ABSOLUTE = 8,

  /* Floats only. */
  TESSERA_EXPRESSION_FUSED_MULTIPLY_ADD = 9, /* first * second + third, rounded once */
  TESSERA_EXPRESSION_SQUARE_ROOT = 10,
  TESSERA_EXPRESSION_FLOOR = 11,
  TESSERA_EXPRESSION_CEILING = 12,
  TESSERA_EXPRESSION_TRUNCATE = 13,
  TESSERA_EXPRESSION_ROUND = 14, /* to an integer, ties to even */

  /* Integers and bools: bit by bit. */
  TESSERA_EXPRESSION_AND = 15,
  TESSERA_EXPRESSION_OR = 16,
  TESSERA_EXPRESSION_XOR = 17,
  TESSERA_EXPRESSION_NOT = 18,
  /* Integers. The count (second argument) is in [0, width). Right: fills in the sign bit if the
   * type is signed. */
  TESSERA_EXPRESSION_SHIFT_LEFT = 19,
  TESSERA_EXPRESSION_SHIFT_RIGHT = 20,

  /* The result is bool, the two arguments are of one type: floats, integers or (EQUAL) bools. False
   * if one is NaN. */
  TESSERA_EXPRESSION_EQUAL = 21,
  TESSERA_EXPRESSION_LESS = 22,
  TESSERA_EXPRESSION_LESS_OR_EQUAL = 23,

  /* The first argument is bool: the second if it is true, else the third. Any type. */
  TESSERA_EXPRESSION_SELECT = 24,

  /* To `data_type` from the other type of the argument.
   *  - Integer to integer: the lowest bits; the sign of a signed argument is extended.
   *  - Integer to float, float64 to float32, float32 to a 16-bit float: the nearest value.
   *  - Bool to integer or float: 0 or 1. Float32 to float64, 16-bit float to float32: exact.
   *  - Float to int32, int64 or uint64 (no other integers): truncated; saturated to the range; 0
   *    for NaN.
   * Others do not occur. (To bool: a comparison with zero.) */
  TESSERA_EXPRESSION_CONVERT = 25,
  /* The bits of the argument, whose type has the same size. */
  TESSERA_EXPRESSION_BIT_CAST = 26,

  /* Over all points that differ along the reduced axes only. Float32, float64, int32, int64. Sums
   * and products of floats may be computed in any order. MAX and MIN: NaN if an element is NaN;
   * which zero is larger is not defined. The result is the same for all of these points. */
  TESSERA_EXPRESSION_REDUCE_SUM = 27,
  TESSERA_EXPRESSION_REDUCE_PRODUCT = 28,
  TESSERA_EXPRESSION_REDUCE_MAX = 29,
  TESSERA_EXPRESSION_REDUCE_MIN = 30
};

typedef struct tessera_instruction {
  int32_t operation;    /* TESSERA_EXPRESSION_ */
  int32_t data_type;    /* of the result */
  int32_t arguments[3]; /* numbers of earlier instructions; -1: none */
  int32_t index;        /* of OPERAND; else 0 */
  uint64_t bits;        /* of CONSTANT; else 0 */
} tessera_instruction;

/* How the points of the space (tessera_fused_group::dims) read an input, or write an output: point
 * (i, j, ...) accesses element offset + i * strides[0] + j * strides[1] + ... of the row-major
 * tensor. */
typedef struct tessera_fused_access {
  int32_t port;      /* index into the inputs, or the outputs, of the group */
  int32_t data_type; /* of the tensor */
  /* 1: the tensor has the dimensions of the space, and each point accesses the element of its own
   * indices: the tensor may be in any dense layout. Then `strides` are those of row_major. */
  int32_t is_whole;
  /* Of a result: the instruction whose value is written. Else -1. */
  int32_t instruction;
  int64_t offset;
  const int64_t* strides; /* for each axis; 0: the same element all along the axis */
} tessera_fused_access;

/* A group is data: nothing in it depends on names. Results of instructions that depend on no
 * operand that varies along a reduced axis, except through a reduction, are the same for all points
 * along these axes. A result with stride 0 along the reduced axes is written once for all of them.
 * Each element of an output is written by one result; several results may write to one output. */
typedef struct tessera_fused_group {
  uint32_t struct_size;
  uint32_t expression_version;
  const int32_t* nodes; /* ascending; a convex group */
  int32_t node_count;
  int32_t input_count;
  const int32_t* inputs;  /* values that the group reads from outside, each once */
  const int32_t* outputs; /* values that others read, each once */
  int32_t output_count;
  int32_t rank;
  const int64_t* dims; /* of the space; all known, none 0 */
  /* Bit i: axis i is reduced. 0 if no instruction is a reduction. */
  uint64_t reduced_axes;
  int32_t operand_count;
  int32_t result_count;
  const tessera_fused_access* operands; /* what OPERAND instructions read */
  const tessera_fused_access* results;
  const tessera_instruction* instructions; /* each is used, and no two are equal */
  int32_t instruction_count;
  int32_t reserved;
  /* The instructions as text: equal for groups that compute the same, whatever their names, the
   * order of their nodes, and their sizes. */
  const char* text;
  /* Of all instructions, and of the accesses once each: for estimates. */
  int64_t flops;
  int64_t bytes;
} tessera_fused_group;

/* Receives one group, which is valid only during the call. */
typedef void (*tessera_fused_group_visitor)(void* user, const tessera_fused_group* group);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_BACKEND_FUSION_ABI_H */
