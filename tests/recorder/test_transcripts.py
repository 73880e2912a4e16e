"""Transcripts are outside input: whatever stands in them gives a plan, a refusal, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.backends.base import Call, PointerArgument
from kernelskill.backends.recorder.addresses import HostAddress, RecordingsDiffer
from kernelskill.backends.recorder.assemble import BadLauncher, assemble
from kernelskill.backends.recorder.programs import caller_library, recorder_program
from kernelskill.backends.recorder.specification import specification_text
from kernelskill.backends.recorder.transcript import TranscriptError, read_transcript
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature
from tests.recorder.conftest import ORDINARY, Source

LINES = [
    {"op": "allocation", "id": 0, "kind": "buffer", "name": "x", "base": 1 << 44, "size": 4096},
    {"op": "ready"},
    {"op": "call", "number": 0},
    {"op": "allocation", "id": 1, "kind": "temporary", "name": "", "base": 1 << 45, "size": 64},
    {"op": "allocate", "allocation": 1, "asynchronous": False, "stream": 0},
    {"op": "create_stream", "stream": 1, "blocking": False},
    {"op": "memset", "stream": 1, "destination": 1 << 45, "value": 0, "size": 64},
    {"op": "record_event", "stream": 1, "event": 0},
    {
        "op": "launch",
        "stream": 0,
        "kernel": "k",
        "grid": [1, 1, 1],
        "block": [32, 1, 1],
        "dynamic_shared": 0,
        "max_dynamic_shared": 0,
        "arguments": [(1 << 44).to_bytes(8, "little").hex(), "07000000"],
    },
    {
        "op": "copy_host",
        "stream": 0,
        "destination": (1 << 44) + 16,
        "data": (1 << 45).to_bytes(8, "little").hex(),
    },
    {"op": "synchronize", "scope": "device", "stream": 0, "event": 0},
    {"op": "release", "allocation": 1, "asynchronous": False, "stream": 0},
    {"op": "return", "value": 0, "error": 0},
    {"op": "end"},
]


def moved(lines: list[dict[str, object]], by: int) -> list[dict[str, object]]:
    """Return the same recording at other addresses."""
    text = json.dumps(lines)
    for base in (1 << 44, (1 << 44) + 16, 1 << 45):
        text = text.replace(str(base), str(base + by))
        text = text.replace(base.to_bytes(8, "little").hex(), (base + by).to_bytes(8, "little").hex())
    return json.loads(text)


def encoded(lines: list[dict[str, object]]) -> bytes:
    return b"\n".join(json.dumps(line).encode() for line in lines)


def plan_of(first: bytes, second: bytes) -> LaunchPlan:
    transcripts = read_transcript(first), read_transcript(second)
    assert all(t.first_call_returned for t in transcripts)
    return assemble(*transcripts, symbol="f", device_code="c" * 64, returned=None)


def test_two_layouts_give_one_plan() -> None:
    plan = plan_of(encoded(LINES), encoded(moved(LINES, 1 << 30)))
    assert [op.op for op in plan.operations] == [
        "allocate",
        "create_stream",
        "memset",
        "record_event",
        "launch",
        "copy_host",
        "synchronize",
        "release",
    ]
    assert [p.address.allocation for a in plan.launches()[0].arguments for p in a.pointers] == [0]


JUNK = st.one_of(
    st.integers(-2, 40),
    st.integers(0, 1 << 65),
    st.none(),
    st.booleans(),
    st.text(max_size=4),
    st.sampled_from(["device", "launch", "00", "0700000000", [], [1, 2], {"op": "launch"}, 1 << 44, 1 << 45]),
)
FIELDS = [(n, key) for n, line in enumerate(LINES) for key in line]


@given(st.lists(st.tuples(st.sampled_from(FIELDS), JUNK), min_size=1, max_size=3), st.integers(0, 2))
def test_forged_lines_are_refused_or_give_a_plan(
    changes: list[tuple[tuple[int, str], object]], where: int
) -> None:
    recordings = [json.loads(json.dumps(LINES)), moved(LINES, 1 << 30)]
    for (n, key), value in changes:
        for recording in recordings if where == 2 else [recordings[where]]:
            recording[n][key] = value
    try:
        transcripts = [read_transcript(encoded(recording)) for recording in recordings]
        if not all(t.first_call_returned for t in transcripts):
            return
        assemble(transcripts[0], transcripts[1], symbol="f", device_code="c" * 64, returned=None)
    except (TranscriptError, RecordingsDiffer, HostAddress, BadLauncher):
        return


@given(st.binary(max_size=200))
def test_garbage_is_no_transcript(data: bytes) -> None:
    try:
        transcript = read_transcript(data)
    except TranscriptError:
        return
    assert not transcript.first_call_returned


@pytest.mark.parametrize("user", [None, 65534])
def test_the_sandbox_stands_with_and_without_rights(refused: Source, user: int | None) -> None:
    """The same launcher, that looks for files, is recorded by root and by an ordinary user."""
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder = Path("/tmp") / f"kernelskill-test-{os.getpid()}-{user}"
    folder.mkdir(mode=0o755)
    try:
        signature = Signature(symbol="looks_for_files", parameters=ORDINARY)
        build = refused.build("looks_for_files")
        shutil.copy(recorder_program(refused.toolchain), folder / "recorder")
        shutil.copy(caller_library(signature, refused.toolchain), folder / "caller.so")
        shutil.copy(Path(build.folder) / "host.so", folder)
        call = Call(
            buffers={"x": 4096, "y": 4096},
            pointers={name: PointerArgument(buffer=name) for name in ("x", "y")},
            scalars={"n": 1024},
        )
        given_text = specification_text(
            build, signature, call, find_gpu("h200"), root=str(folder), layout=0, timeout_s=5
        )
        command = [folder / "recorder"]
        written = subprocess.run(command, input=given_text, capture_output=True, user=user, timeout=30).stdout
        transcript = read_transcript(written)
        assert transcript.ending is None
        assert [line["op"] for line in transcript.calls[0].lines] == ["launch"]
        assert len(transcript.calls) == 3
    finally:
        shutil.rmtree(folder)
