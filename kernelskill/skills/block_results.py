"""Combine one value of each thread of a block for all of its threads."""

from __future__ import annotations

from kernelskill.skills.row_accumulators import Way

WORDS = {"+": "sum", "*": "product", "max": "max", "min": "min", "&": "and", "|": "or", "^": "xor"}


def block_result_function(name: str, kind: str, way: Way) -> str:
    """Return the text of a device function that combines over a block, for all of its threads."""
    brought = "__shfl_xor_sync(0xffffffffu, value, step)"
    if way.takes_expressions:
        loop = f"        {way.statement('value', brought)}\n"
        head = "    for (int step = 16; step > 0; step /= 2)\n"
    else:
        loop = f"        const {kind} other = {brought};\n        {way.statement('value', 'other')}\n    }}\n"
        head = "    for (int step = 16; step > 0; step /= 2) {\n"
    return (
        "// Combines the values of a block's threads, whole warps of them; every thread gets the result.\n"
        f"__device__ __forceinline__ {kind} {name}({kind} value)\n"
        "{\n"
        f"    __shared__ {kind} of_warp[32];\n"
        f"{head}{loop}"
        "    __syncthreads();  // the last result may still be read\n"
        "    if (threadIdx.x % 32 == 0)\n"
        "        of_warp[threadIdx.x / 32] = value;\n"
        "    __syncthreads();\n"
        "    value = of_warp[0];\n"
        "    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp)\n"
        f"        {way.statement('value', 'of_warp[warp]')}\n"
        "    return value;\n"
        "}\n"
    )
