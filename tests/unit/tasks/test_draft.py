import pytest

from kernelskill.errors import TaskError
from kernelskill.tasks.draft import draft, draft_tests
from kernelskill.tasks.sources import read_kernel
from kernelskill.tasks.suite import load_suite
from kernelskill.tasks.testfile import TestFile

MAIN_ONLY = """
__global__ void blur(const float* image, float* out, int width, int height) {}
int main() {
    float *a, *b;
    int width = 640, height = 480;
    dim3 block(16, 16);
    dim3 grid((width + 15) / 16, (height + 15) / 16);
    blur<<<grid, block>>>(a, b, width, height);
}
"""


def test_a_file_with_only_main_gets_a_launcher_of_the_same_shape():
    made = draft(MAIN_ONLY)
    assert (
        "blur<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(image, out, width, height);"
        in (made.launcher)
    )
    assert made.launcher.startswith('extern "C" void blur_launch(const float* image, float* out, int width')
    assert "KERNEL" not in made.tests


def test_a_launch_with_names_of_its_own_is_marked():
    made = draft(MAIN_ONLY.replace("(width + 15) / 16,", "blocks,"))
    assert "check grid and block" in made.launcher


def test_a_bare_kernel_gets_launch():
    made = draft("template <typename T, int V> __global__ void scale(T* y, const T* x, int n) {}")
    assert 'KERNEL = "scale<float, 4>"' in made.tests
    assert "def launch(n):" in made.tests
    assert made.launcher == ""


def test_types_sizes_and_words_of_python_are_handled():
    text = draft_tests(
        'extern "C" void f(const double* in, const __nv_bfloat16* b, const uchar4* c, bool* out,'
        " float lambda, unsigned long n, cudaStream_t s) { k<<<1, 1>>>(); }"
    )
    compile(text, "test.py", "exec")
    assert '"in": rng.standard_normal(n, dtype=np.float64)' in text
    assert '"b": rng.standard_normal(n).astype(ml_dtypes.bfloat16)' in text
    assert '"c": rng.integers(0, 100, (n, 4)).astype(np.uint8)' in text
    assert "def reference(**inputs):" in text
    assert '"s"' not in text


def test_every_draft_loads_and_only_the_reference_is_missing(tmp_path):
    for entry in load_suite("core").entries:
        text = draft_tests(read_kernel(tmp_path / entry.kernel).candidate.source)
        path = tmp_path / f"{entry.name}.py"
        path.write_text(text)
        test = TestFile(path)
        assert test.describe().cases[-1].timed
        with pytest.raises(NotImplementedError, match="write the reference"):
            test.reference(0, test.make_inputs(0, 1))


def test_a_file_without_kernels_is_refused():
    with pytest.raises(TaskError, match="neither a launcher nor a kernel"):
        draft("int main() {}")
