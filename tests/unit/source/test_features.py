from kernelskill.source.features import FEATURES, features
from kernelskill.source.unit import SourceUnit


def _features(text):
    unit = SourceUnit.parse(text)
    return features(unit, unit.kernels[0])


def test_every_feature_has_a_value_and_a_meaning():
    found = _features("__global__ void k() {}\n")
    assert list(found) == list(FEATURES)
    assert all(isinstance(value, float) for value in found.values())
    assert all(feature.meaning for feature in FEATURES.values())


def test_uncoalesced_matmul():
    found = _features(
        "__global__ void mm(const float* a, const float* b, float* c, int n) {\n"
        "  int r = blockIdx.x * blockDim.x + threadIdx.x, q = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "  if (r < n && q < n) { float s = 0; for (int k = 0; k < n; ++k) s += a[r * n + k] * b[k * n + q];\n"
        "    c[r * n + q] = s; } }\n"
        "void f(float* a, float* b, float* c, int n) { dim3 t(16, 16); mm<<<dim3(n / 16, n / 16), t>>>(a, b, c, n); }\n"
    )
    assert found["strided_by_thread_x"] == 2
    assert found["unit_by_thread_y"] == 1
    assert found["reused_loads_in_loop"] == 1
    assert found["read_only_pointers_not_restrict"] == 2
    assert found["block_threads"] == 256
    assert found["has_shared_memory"] == 0


def test_doubles_and_memory_accumulation():
    found = _features(
        "__global__ void k(const float* x, float* y, int n) { int i = threadIdx.x; y[i] = 0;\n"
        "  for (int r = 0; r < n; ++r) y[i] += 0.5 * pow(x[r * n + i], 2.0); atomicAdd(y, 1.f); }\n"
    )
    for name in (
        "has_double_literals",
        "has_double_math",
        "has_pow",
        "has_loop_accumulation_in_memory",
        "has_atomics",
    ):
        assert found[name] == 1, name
    assert found["uncoalesced_access"] == 0
