/* Includes the operations in OPS twice, for float and for double: set OPS to the file's name before.
 *
 * OPS sees the element type as REAL and IS_FLOAT, a vector of LANES of them as VEC, one anywhere in
 * memory as MEM, and writes NAME(f) for what is called f_f32 or f_f64, CONSTANT(c) for a macro that is
 * called c_F32 or c_F64.
 */
#define VEC NAME(gzk_vec)
#define MEM NAME(gzk_mem)
#define LANES CONSTANT(GZK_LANES)

#define REAL float
#define IS_FLOAT 1
#define NAME(f) f##_f32
#define CONSTANT(c) c##_F32
#include OPS
#undef REAL
#undef IS_FLOAT
#undef NAME
#undef CONSTANT

#define REAL double
#define IS_FLOAT 0
#define NAME(f) f##_f64
#define CONSTANT(c) c##_F64
#include OPS
#undef REAL
#undef IS_FLOAT
#undef NAME
#undef CONSTANT

#undef VEC
#undef MEM
#undef LANES
#undef OPS
