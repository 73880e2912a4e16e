"""What every skill makes of the corpus compiles for a GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Promise
from kernelskill.source.unit import SourceUnit
from tests.skills.contexts import context_for
from tests.skills.test_equivalence import CORPUS, variants


@pytest.mark.slow
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_step_compiles(path: Path, tmp_path: Path) -> None:
    candidate = Candidate.of("k.cu", {"k.cu": path.read_text()})
    texts = [path.read_text()]
    seen = set()
    for found, result in variants(candidate, context_for("f", Promise.NO_ALIAS), path.stem):
        if (found.step.skill, found.site.key) not in seen:
            seen.add((found.step.skill, found.site.key))
            texts.append(result.source)
    parts = []
    for index, text in enumerate(texts):
        undefined = "".join(f"#undef {macro.name}\n" for macro in SourceUnit.parse(text).macros)
        body = text.replace('extern "C" ', "")
        parts.append(f"namespace v{index} {{\n{body}\n}}\n{undefined}")
    (tmp_path / "all.cu").write_text("".join(parts))
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", "-w", "all.cu", "-o", "all.ptx"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:3000]
