"""Names of CUDA's own functions: maths and its counterparts, what is pure, what takes no reference."""

from __future__ import annotations

_BASE_NAMES = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv exp "
    "exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma log log10 log1p "
    "log2 logb modf nearbyint nextafter norm3d norm4d normcdf normcdfinv pow rcbrt remainder remquo rhypot rint "
    "round rsqrt scalbn sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1"
)
_TRANSCENDENTAL_NAMES = (
    "sin cos tan sincos asin acos atan atan2 sinh cosh tanh exp exp2 exp10 expm1 log log2 log10 log1p pow erf erfc "
    "lgamma tgamma cbrt sinpi cospi"
)
FLOAT_COUNTERPARTS = {base: f"{base}f" for base in _BASE_NAMES.split()}
"""Double-precision function to its single-precision counterpart."""
TRANSCENDENTALS = frozenset(_TRANSCENDENTAL_NAMES.split())
"""Double-precision names of functions that take tens of instructions."""
FAST_COUNTERPARTS = {
    "sinf": "__sinf",
    "cosf": "__cosf",
    "tanf": "__tanf",
    "expf": "__expf",
    "exp10f": "__exp10f",
    "logf": "__logf",
    "log2f": "__log2f",
    "log10f": "__log10f",
    "powf": "__powf",
    "sincosf": "__sincosf",
}
"""Single-precision function to its less precise intrinsic."""
_INTRINSIC_NAMES = (
    "min max abs labs llabs umin umax isnan isinf isfinite signbit __ldg __popc __popcll __clz __clzll __ffs "
    "__ffsll __brev __byte_perm __mul24 __umul24 __mulhi __umulhi __float2int_rn __float2int_rz "
    "__int2float_rn __float_as_int __int_as_float __float2half __half2float __half22float2 __float22half2_rn "
    "__float2half_rn __hadd __hmul __hfma __hadd2 __hmul2 __hfma2 __hsub __hdiv __hmax __hmin __fdividef "
    "__saturatef __frcp_rn __fsqrt_rn __frsqrt_rn __fadd_rn __fmul_rn __fmaf_rn __dp4a float double int "
    "unsigned long size_t make_float2 make_float3 make_float4 make_int2 make_int4 make_uint4 make_double2 "
    "float2 float4 __float2bfloat16 __bfloat162float dim3 sizeof"
)
PURE_FUNCTIONS = (
    frozenset(FLOAT_COUNTERPARTS)
    | frozenset(FLOAT_COUNTERPARTS.values())
    | frozenset(FAST_COUNTERPARTS.values())
    | frozenset(_INTRINSIC_NAMES.split())
) - frozenset(
    {
        "sincos",
        "sincosf",
        "__sincosf",
        "sincospi",
        "sincospif",
        "modf",
        "modff",
        "frexp",
        "frexpf",
        "remquo",
        "remquof",
    }
)
"""Functions that only compute a value from their arguments."""

_BY_VALUE_PREFIXES = ("__", "atomic", "cuda", "make_", "tex", "surf", "wmma::", "nvcuda::")
_BY_VALUE_NAMES = frozenset(
    {"printf", "assert", "memcpy", "memset", "static_cast", "reinterpret_cast", "size_t"}
)


def takes_values(name: str) -> bool:
    """Whether a function that the file does not define is known to take scalars by value."""
    return name in PURE_FUNCTIONS or name in _BY_VALUE_NAMES or name.startswith(_BY_VALUE_PREFIXES)
