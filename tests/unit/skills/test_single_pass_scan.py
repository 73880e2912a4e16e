"""Prefix sums in one pass: what is written, and what is declined."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.proposal import Exactness
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY, refusals
from tests.skills.contexts import context_for
from tests.skills.prefix_sum_spellings import SPELLINGS

SKILL, FLOATS = "parallelism/single_pass_scan", "parallelism/single_pass_scan_of_floats"
BY_NAME = {spelling.name: spelling.source for spelling in SPELLINGS}
PLAIN, COUNTS = BY_NAME["two_buffers"], BY_NAME["exclusive_counts"]
ADD = "out[i] += sums[blockIdx.x];"
LAST = "add_sums<<<blocks, 128>>>(out, sums, n);"


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


def made(text: str, skill: str = SKILL, items: str = "16", threads: str = "256") -> str:
    candidate, context = Candidate.of("k.cu", {"k.cu": text}), context_for("f")
    found, declined = find_steps(candidate, LIBRARY.get(skill), LIBRARY, context)
    wanted = {"items": items, "threads": threads}
    steps = [entry.step for entry in found if dict(entry.step.parameters) == wanted]
    assert steps, [refusal.reason for refusal in declined]
    return apply_step(candidate, steps[0], LIBRARY, context).candidate.source


def test_one_launch_takes_the_place_of_three() -> None:
    text = made(PLAIN)
    assert text.count("<<<") == text.count("__global__") == 1
    assert "scan_blocks_single_pass<<<tile_count, 256>>>(in, out, n, tiles);" in text
    assert "const unsigned tile_count = n > 0 ? (unsigned)((n - 1) / 4096 + 1) : 1;" in text
    assert "cudaMemsetAsync(tiles, 0, bytes, 0);" in text
    assert "const int4 in_taken = *reinterpret_cast<const int4 *>(&in[element]);" in text


def test_tiles_are_of_the_wanted_shape() -> None:
    text = made(PLAIN, items="8", threads="128")
    assert "const int tile_start = tile * 1024;" in text
    assert "__launch_bounds__(128)" in text


def test_what_an_element_is_may_be_any_expression() -> None:
    text = made(COUNTS)
    assert "value[row][0] = a_taken.x > 3 ? 1 : 0;" in text
    assert "element < count ? (a[element] > 3 ? 1 : 0) : 0;" in text
    assert "Makes each value the sum of all before it" in text


def test_64_bits_take_two_words() -> None:
    text = made(BY_NAME["long_numbers"])
    assert "states[2ull * tile + 1] = how << 32 | bits >> 32;" in text
    assert "(2ull * tile_count + 1) * sizeof(unsigned long long)" in text
    assert "__double_as_longlong(sum)" in made(BY_NAME["doubles"], FLOATS)


def test_kernels_that_others_launch_are_kept() -> None:
    text = made(
        PLAIN + 'extern "C" void g(int* out, const int* sums) { add_sums<<<1, 128>>>(out, sums, 3); }\n'
    )
    assert "__global__ void add_sums" in text
    assert "__global__ void scan_sums" not in text


def test_results_may_go_through_a_temporary_where_arrays_lie_apart() -> None:
    text = made(BY_NAME["through_a_temporary"])
    assert (
        "const bool apart = ((size_t)(in + n) <= (size_t)(out) || (size_t)(out + n) <= (size_t)(in));" in text
    )
    assert "scan_blocks_single_pass<<<tile_count, 256>>>(in, out, n, tiles);" in text
    assert text.count("<<<") == 4
    used = BY_NAME["through_a_temporary"].replace(
        "cudaFreeAsync(local", "cudaMemsetAsync(local, 0, 4, 0);cudaFreeAsync(local"
    )
    assert "'local', which is no longer stored" in " ".join(refusals(SKILL, used))


def test_elements_may_begin_in_the_middle_of_an_array() -> None:
    text = changed(
        PLAIN, ("scan_blocks<<<blocks, 128>>>(in, out,", "scan_blocks<<<blocks, 128>>>(in + 1, out,")
    )
    assert "scan_blocks_single_pass<<<tile_count, 256>>>(in + 1, out, n, tiles);" in made(text)
    own = changed(
        PLAIN, ("scan_blocks<<<blocks, 128>>>(in, out,", "scan_blocks<<<blocks, 128>>>(out + 1, out,")
    )
    assert refusals(SKILL, own)


def test_kernels_in_a_namespace_stay_there() -> None:
    start, end = PLAIN.index("__global__"), PLAIN.index('extern "C"')
    text = f"{PLAIN[:start]}namespace steps {{\n{PLAIN[start:end]}}}\n{PLAIN[end:]}"
    for name in ("scan_blocks", "scan_sums", "add_sums"):
        text = text.replace(f"    {name}<<<", f"    steps::{name}<<<")
    assert "steps::scan_blocks_single_pass<<<" in made(text)


def test_the_stream_is_kept() -> None:
    text = PLAIN.replace("<<<blocks, 128>>>", "<<<blocks, 128, 0, s>>>").replace(
        "<<<1, 1>>>", "<<<1, 1, 0, s>>>"
    )
    text = made(
        text.replace("int n)\n{\n    const int blocks", "int n, cudaStream_t s)\n{\n    const int blocks")
    )
    assert "<<<tile_count, 256, 0, s>>>" in text
    assert "cudaMallocAsync(&tiles, bytes, s);" in text


def test_only_integers_keep_every_bit() -> None:
    assert LIBRARY.get(SKILL).exactness is Exactness.EXACT
    assert LIBRARY.get(FLOATS).exactness is Exactness.REORDERS
    assert "hold int" in refusals(FLOATS, PLAIN)[0]
    assert "hold float" in refusals(SKILL, BY_NAME["floats"])[0]


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([(ADD, "out[i] -= sums[blockIdx.x];")], "does more, or else, than to add"),
        ([(ADD, "out[i] += 2 * sums[blockIdx.x];")], "does more, or else, than to add"),
        ([(ADD, "out[i] += sums[blockIdx.x + 1];")], "does more, or else, than to add"),
        ([(ADD, "if (blockIdx.x > 0) out[i] += sums[blockIdx.x];")], "does more, or else, than to add"),
        ([(ADD, "if (i != 5) out[i] += sums[blockIdx.x];")], "does more, or else, than to add"),
        ([(ADD, "if (i < 99) out[i] += sums[blockIdx.x];")], "does more, or else, than to add"),
        ([(LAST, "add_sums<<<blocks, 128>>>(out, sums, n - 1);")], "does not change the same elements"),
        ([(LAST, "add_sums<<<blocks - 1, 128>>>(out, sums, n);")], "reach all elements"),
        ([(LAST, "add_sums<<<blocks, 64>>>(out, sums, n);")], "does more, or else, than to add"),
        ([(LAST, "cudaMemsetAsync(out, 0, 4, 0);")], "a single launch follows"),
        ([(LAST, f"cudaMemsetAsync(out, 0, 4, 0);\n    {LAST}")], "a single launch follows"),
        ([("(sums, blocks)", "(sums, blocks - 1)")], "another number of sums"),
        ([("b = 0; b < blocks", "b = 1; b < blocks")], "does more, or else, than to take the running sum"),
        ([("running = 0;", "running = 1;")], "does more, or else, than to take the running sum"),
        ([("running += sum;", "running += 2 * sum;")], "does more, or else, than to take the running sum"),
        ([("i < n ? in[i] : 0", "i < n ? in[i] : 1")], "beyond the last element"),
        ([("i < n ? in[i] : 0", "in[i]")], "beyond the last element"),
        ([("i < n ? in[i] : 0", "i < n ? in[i] + (int)blockIdx.x : 0")], "more than its number"),
        ([("i < n ? in[i] : 0", "i < n ? out[i + 1] : 0")], "what others store"),
        ([("out[i] = buffer[from][threadIdx.x];", "out[i] = 2 * buffer[from][threadIdx.x];")], "result alone"),
        ([("out[i] = buffer[from][threadIdx.x];", "out[i + 1] = buffer[from][threadIdx.x];")], "another one's"),
        ([("if (threadIdx.x == 127)", "if (i == 127)")], "does not store the sum"),
        ([("if (threadIdx.x == 127)", "if (threadIdx.x == 127 && i < n)")], "does not store the sum"),
        ([("cudaFreeAsync(sums, 0);", "cudaMemcpyAsync(out, sums, 4, cudaMemcpyDeviceToDevice, 0);")], "by others"),
    ],
)  # fmt: skip
def test_what_may_be_another_sum_is_declined(pairs: list[tuple[str, str]], why: str) -> None:
    assert why in " ".join(refusals(SKILL, changed(PLAIN, *pairs)))
