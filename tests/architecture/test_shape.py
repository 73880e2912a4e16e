"""The shape of the code base: sizes, lazy imports, names, broad handlers, words that do not belong."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import kernelskill

ROOT = Path(kernelskill.__file__).parent
CHECKOUT = ROOT.parent
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
BROAD_HANDLERS = 4
"""Process borders: the child that holds test.py, and the workers."""
BANNED_NAMES = {"utils", "helpers", "common", "misc", "manager"}


def modules() -> Iterator[Path]:
    yield from (path for path in sorted(ROOT.rglob("*.py")) if "_data" not in path.parts)
    yield from sorted((CHECKOUT / "skills").rglob("*.py"))


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in modules()]


def test_modules_and_functions_stay_small() -> None:
    large = [
        f"{path.relative_to(CHECKOUT)}: {lines} lines"
        for path in modules()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_MODULE
    ]
    long = [
        f"{path.relative_to(CHECKOUT)}:{node.lineno} {node.name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert large == []
    assert long == []


def test_few_handlers_catch_everything() -> None:
    broad = [
        f"{path.relative_to(CHECKOUT)}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
        and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in node.body)
    ]
    assert len(broad) <= BROAD_HANDLERS, broad


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [path for path in modules() if path.stem in BANNED_NAMES] == []


@pytest.mark.parametrize("statement", ["import kernelskill", "import kernelskill.evaluation.spool_worker"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    heavy = "{'langgraph', 'sqlalchemy', 'tree_sitter', 'typer', 'rich', 'prompt_toolkit', 'cupy', 'openai'}"
    code = f"import sys; {statement}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_skill_folder_is_complete() -> None:
    for folder in (CHECKOUT / "skills").glob("*/*/"):
        assert (folder / "SKILL.md").is_file(), folder
