"""A standalone program that runs a launcher by itself: buffers, inputs, timing and `main()` in one file."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Case, Parameter, Role, Task

_FLOAT_FILL = "fill_uniform"
_ZERO_FILL = "zero"


def reproducer(
    task: Task, candidate: Candidate, case: Case, buffers: Mapping[str, int], scalars: Mapping[str, object]
) -> str:
    """Return the text of a `.cu` file that times a candidate's launcher on one case.

    Floating-point inputs are uniform in [-1, 1); integers are zero, so that they are valid as
    indices whatever they mean. The program needs nothing but `nvcc`.

    Args:
        task: Holds the signature.
        candidate: Its main file is included; it must lie beside the program.
        case: Whose sizes are used.
        buffers: Pointer parameter name to size in bytes.
        scalars: Scalar parameter name to value; `hex:` and little-endian bytes for others.
    """
    declarations = [_declare(p, task, buffers, scalars) for p in task.signature.parameters]
    arguments = ", ".join(f"arg_{p.name}" for p in task.signature.parameters)
    return _TEMPLATE.format(
        title=f"{task.name}: one timed case ({case.label})",
        main=candidate.main.rsplit("/", 1)[-1],
        declarations="\n".join(f"  {line}" for line in declarations),
        call=f"{task.signature.symbol}({arguments});",
    )


def _declare(
    parameter: Parameter, task: Task, buffers: Mapping[str, int], scalars: Mapping[str, object]
) -> str:
    name = f"arg_{parameter.name}"
    if parameter.kind == "stream":
        return f"cudaStream_t {name} = nullptr;"
    assert parameter.element is not None
    if parameter.kind == "pointer":
        is_input = task.roles[parameter.name] in (Role.INPUT, Role.INOUT)
        fill = _FLOAT_FILL if is_input and parameter.element.dtype in ("float32", "float64") else _ZERO_FILL
        lane = {"float32": "float", "float64": "double"}.get(parameter.element.dtype, "unsigned char")
        size = buffers.get(parameter.name, 0)
        return (
            f"auto *{name} = static_cast<{parameter.element.name} *>("
            f"allocate<{lane}>({size}ull, Fill::{fill}));"
        )
    value = scalars.get(parameter.name, 0)
    if isinstance(value, str):
        data = ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(value.removeprefix("hex:")))
        return (
            f"{parameter.element.name} {name}; {{ const unsigned char bytes[] = {{{data}}}; "
            f"memcpy(&{name}, bytes, sizeof bytes); }}"
        )
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"{parameter.element.name} {name} = {text};"


_TEMPLATE = """\
// {title}
// Build and run:  nvcc -O3 -arch=native -o reproducer reproducer.cu && ./reproducer
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>
#define main main_of_the_kernel_file  // in case it has one
#include "{main}"
#undef main

namespace reproducer {{

enum class Fill {{ zero, fill_uniform }};

void check(cudaError_t status) {{
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s\\n", cudaGetErrorString(status));
  exit(1);
}}

template <class Lane> void *allocate(size_t bytes, Fill fill) {{
  void *device = nullptr;
  check(cudaMalloc(&device, std::max<size_t>(bytes, 1)));
  check(cudaMemset(device, 0, bytes));
  if (fill == Fill::fill_uniform) {{
    std::vector<Lane> host(bytes / sizeof(Lane));
    unsigned state = 12345u;
    for (Lane &value : host) {{
      state = state * 1664525u + 1013904223u;
      value = static_cast<Lane>((state >> 8) * (2.0 / 16777216.0) - 1.0);
    }}
    check(cudaMemcpy(device, host.data(), host.size() * sizeof(Lane), cudaMemcpyHostToDevice));
  }}
  return device;
}}

}}  // namespace reproducer

int main() {{
  using namespace reproducer;
{declarations}
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  std::vector<float> samples;
  for (int i = 0; i < 25; ++i) {{
    check(cudaEventRecord(start));
    {call}
    check(cudaGetLastError());
    check(cudaEventRecord(stop));
    check(cudaEventSynchronize(stop));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, stop));
    if (i >= 5) samples.push_back(ms);
  }}
  std::sort(samples.begin(), samples.end());
  printf("median of %zu calls: %.6f ms\\n", samples.size(), samples[samples.size() / 2]);
  return 0;
}}
"""
