"""Checkup: what of kernelskill's needs this machine has. It changes nothing and runs no kernel."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from pathlib import Path
from typing import Literal

from kernelskill import __version__
from kernelskill.backends.cuda.detect import find_gpus
from kernelskill.backends.toolchain import Toolchain
from kernelskill.config import load_config, process_environment
from kernelskill.errors import DeviceUnavailable, KernelSkillError
from kernelskill.experience.pool import ExperiencePool
from kernelskill.llm.outlook import Outlook, look_at_key, look_at_model
from kernelskill.resources import cache_dir, data_dir, data_folder
from kernelskill.schema.base import Record
from kernelskill.skills.library import SkillLibrary, default_folders

_PACKAGES = (
    "langgraph",
    "pydantic",
    "numpy",
    "openai",
    "optuna",
    "SQLAlchemy",
    "tree-sitter",
    "tree-sitter-cuda",
    "typer",
    "rich",
)


class Finding(Record):
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "limited", "missing"]
    """`limited`: works without it, but less; `missing`: nothing works without it."""
    detail: str
    remedy: str = ""


def checkup() -> list[Finding]:
    """Look at everything and return what was found, the compiler first."""
    return [
        _compiler(),
        _host_compiler(),
        _gpu(),
        _counters(),
        _sanitizer(),
        _cupy(),
        _packages(),
        _model(),
        _key(),
        _skills(),
        _pool(),
        _cache(),
    ]


def _compiler() -> Finding:
    try:
        toolchain = Toolchain.find()
    except KernelSkillError as error:
        return Finding(name="nvcc", state="missing", detail=error.message, remedy=error.remedy)
    return Finding(name="nvcc", state="ok", detail=f"{toolchain.nvcc_version} at {toolchain.nvcc}")


def _host_compiler() -> Finding:
    found = shutil.which("g++")
    if found is None:
        return Finding(
            name="g++",
            state="missing",
            detail="not on the PATH",
            remedy="install it, for example: apt install g++",
        )
    return Finding(name="g++", state="ok", detail=found)


def _gpu() -> Finding:
    remedy = "measure on another machine with --device spool:DIR and `kernelskill worker DIR` there"
    try:
        gpus = find_gpus()
    except DeviceUnavailable as error:
        detail = f"{error.message}; --device emulated gives estimates"
        return Finding(name="GPU", state="limited", detail=detail, remedy=error.remedy or remedy)
    if not gpus:
        detail = "none; --device emulated gives estimates"
        return Finding(name="GPU", state="limited", detail=detail, remedy=remedy)
    names = ", ".join(f"cuda:{gpu.index} {gpu.name}" for gpu in gpus)
    detail = f"{names}; CUDA {gpus[0].cuda}"
    too_new = _nvcc_too_new_for(gpus[0].cuda)
    if too_new:
        return Finding(
            name="GPU",
            state="limited",
            detail=f"{detail}, whose driver need not load what {too_new} makes",
            remedy=f"update the driver, or put the nvcc of CUDA {gpus[0].cuda} first on the PATH",
        )
    return Finding(name="GPU", state="ok", detail=detail)


def _nvcc_too_new_for(cuda: str) -> str:
    """Return the compiler that a driver is too old for; empty where there is none, or it fits."""
    try:
        toolchain = Toolchain.find()
    except KernelSkillError:
        return ""
    return f"nvcc {toolchain.nvcc_version}" if toolchain.is_too_new_for(cuda) else ""


def _counters() -> Finding:
    found = shutil.which("ncu")
    if found is None:
        return Finding(
            name="Nsight Compute",
            state="limited",
            detail="ncu is not on the PATH; diagnoses use static facts and the memory trace",
            remedy="install Nsight Compute from the CUDA toolkit for hardware counters",
        )
    restricted = _counters_restricted()
    if restricted:
        return Finding(
            name="Nsight Compute",
            state="limited",
            detail=f"{found}; the driver keeps counters for administrators",
            remedy="set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or run as root",
        )
    return Finding(name="Nsight Compute", state="ok", detail=found)


def _counters_restricted() -> bool:
    try:
        text = Path("/proc/driver/nvidia/params").read_text(encoding="utf-8")
    except OSError:
        return False
    return "RmProfilingAdminOnly: 1" in text and os.geteuid() != 0


def _sanitizer() -> Finding:
    found = shutil.which("compute-sanitizer")
    if found is None:
        return Finding(
            name="sanitizer",
            state="limited",
            detail="compute-sanitizer is not on the PATH; the emulated device finds races and stray accesses",
            remedy="it comes with the CUDA toolkit",
        )
    return Finding(name="sanitizer", state="ok", detail=found)


def _cupy() -> Finding:
    for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        version = _version(name)
        if version:
            return Finding(name="CuPy", state="ok", detail=f"{name} {version}")
    return Finding(
        name="CuPy",
        state="limited",
        detail="not installed; only a test's own baseline() needs it",
        remedy="pip install 'kernelskill[cuda13]' or 'kernelskill[cuda12]'",
    )


def _packages() -> Finding:
    missing = [name for name in _PACKAGES if not _version(name)]
    if missing:
        return Finding(
            name="packages",
            state="missing",
            detail=f"not installed: {', '.join(missing)}",
            remedy="reinstall kernelskill with pip",
        )
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES[:4])
    return Finding(name="packages", state="ok", detail=f"kernelskill {__version__}; {versions}")


def _key() -> Finding:
    found = look_at_key()
    return Finding(name="model key", state=_state(found), detail=found.detail, remedy=found.remedy)


def _model() -> Finding:
    try:
        spec = load_config({}, folder=Path.cwd(), environment=process_environment()).model
    except KernelSkillError as error:
        return Finding(name="model", state="limited", detail=error.message, remedy=error.remedy)
    found = look_at_model(spec)
    return Finding(name="model", state=_state(found), detail=found.detail, remedy=found.remedy)


def _state(found: Outlook) -> Literal["ok", "limited"]:
    return "ok" if found.usable else "limited"


def _skills() -> Finding:
    try:
        library = SkillLibrary.load(default_folders(Path.cwd()))
    except KernelSkillError as error:
        return Finding(name="skills", state="missing", detail=error.message, remedy=error.remedy)
    mechanical = sum(skill.mechanical for skill in library.all())
    names = ", ".join(library.specialists())
    return Finding(
        name="skills", state="ok", detail=f"{len(library.all())} ({mechanical} mechanical) of {names}"
    )


def _pool() -> Finding:
    path = data_dir() / "experience.sqlite"
    try:
        pool = ExperiencePool.open(path, shipped=data_folder("experience_pool"))
    except KernelSkillError as error:
        return Finding(name="experience", state="limited", detail=error.message, remedy=error.remedy)
    try:
        return Finding(name="experience", state="ok", detail=f"{pool.size()} outcomes in {path}")
    finally:
        pool.close()


def _cache() -> Finding:
    folder = cache_dir()
    free = shutil.disk_usage(folder).free
    state: Literal["ok", "limited"] = "ok" if free > 2 << 30 else "limited"
    remedy = "" if state == "ok" else "free some space; builds and test data need a few gigabytes"
    return Finding(name="cache", state=state, detail=f"{folder}, {free / 1e9:.0f} GB free", remedy=remedy)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
