"""Candidates and signatures that the compiler tests share."""

from kernelskill.backends.element_types import element_type
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Parameter, Signature


def signature(symbol, *parameters, c_linkage=True, returns="void"):
    """`signature("f", ("x", "const float*"), ("n", "int"))`."""
    made = []
    for name, text in parameters:
        kind = "stream" if text == "cudaStream_t" else "pointer" if text.endswith("*") else "scalar"
        element = (
            element_type(text.removeprefix("const ").removesuffix("*").strip()) if kind != "stream" else None
        )
        made.append(
            Parameter(
                name=name, kind=kind, element=element, is_const=text.startswith("const "), declared=text
            )
        )
    return Signature(symbol=symbol, parameters=tuple(made), c_linkage=c_linkage, returns=returns)


def candidate(text, main="kernel.cu", **others):
    return Candidate.of(main, {main: text, **others})


SAXPY = """\
extern "C" __global__ void saxpy_kernel(const float* x, float* y, float a, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] += a * tile[threadIdx.x];
}
extern "C" void saxpy(const float* x, float* y, float a, int n) {
  saxpy_kernel<<<(n + 255) / 256, 256>>>(x, y, a, n);
}
"""
SAXPY_SIGNATURE = signature("saxpy", ("x", "const float*"), ("y", "float*"), ("a", "float"), ("n", "int"))
