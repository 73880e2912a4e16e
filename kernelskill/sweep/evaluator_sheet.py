"""The evaluator's own sheet: its protocol as the code has it, this machine, and how often it was found wrong."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

import kernelskill
from kernelskill.backends.cuda.detect import ask_nvidia_smi, find_gpus
from kernelskill.backends.recorder.specification import CALLS
from kernelskill.backends.toolchain import Toolchain
from kernelskill.config import RunConfig
from kernelskill.errors import ArtifactCorrupt, DeviceUnavailable, KernelSkillError
from kernelskill.evaluation import damage, judge, precision, suspicion, timing
from kernelskill.evaluation.case_run import POISONS
from kernelskill.evaluation.protocol import CheckRules
from kernelskill.resources import data_folder
from kernelskill.schema.base import Explained, Record
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Request
from kernelskill.sweep.rates import Rate
from kernelskill.sweep.zoo_run import ZooRecord

ZOO_FILES = "zoo-*.json"
NOISE_FILES = "noise-*.json"
_MISSING = "not found"
_R = TypeVar("_R", bound=Record)


class Setting(Record):
    """One constant of the protocol."""

    name: str
    value: str
    meaning: str


class ProtocolPart(Record):
    """The constants of one stage."""

    title: str
    settings: tuple[Setting, ...]


class NoiseRecord(Record):
    """How the judge decides where the truth is known: the same kernel twice, and a true gain."""

    conditions: Conditions
    same_accepted: Rate
    """Decisions about a kernel against itself that accepted it."""
    gain: float
    """The true gain of the other decisions, as a fraction."""
    gain_accepted: Rate
    """Decisions about the true gain that accepted it."""


class EvaluatorSheet(Record):
    """What a paper's appendix needs to know about the evaluator."""

    protocol: tuple[ProtocolPart, ...]
    versions: dict[str, str]
    """Of this machine."""
    zoo: tuple[ZooRecord, ...]
    """Recorded visits; empty where none was recorded."""
    noise: tuple[NoiseRecord, ...]
    results: str
    """Folder of the records."""


def evaluator_sheet(results: Path) -> EvaluatorSheet:
    """Put the sheet together; nothing is measured for it.

    Args:
        results: Folder with recorded visits to the zoo and noise figures.

    Raises:
        ArtifactCorrupt: A record there cannot be read back.
    """
    return EvaluatorSheet(
        protocol=protocol(),
        versions=versions(),
        zoo=tuple(_read(path, ZooRecord) for path in sorted(results.glob(ZOO_FILES))),
        noise=tuple(_read(path, NoiseRecord) for path in sorted(results.glob(NOISE_FILES))),
        results=str(results),
    )


def recorded_results() -> Path:
    """Return the folder of the records that come with kernelskill; it may be absent."""
    return data_folder("benchmarks") / "results" / "evaluator"


def protocol() -> tuple[ProtocolPart, ...]:
    """Return the constants of every stage, read from the code that uses them."""
    checks = (
        Setting(
            name="seeds",
            value=str(RunConfig.model_fields["trials"].default),
            meaning="secret seeds a case is checked with; the confirmation draws new ones",
        ),
        Setting(
            name="poisons",
            value=" ".join(f"{byte:#04x}" for byte in POISONS),
            meaning="bytes that fill outputs and guard bands before a call, in turn",
        ),
        Setting(
            name="recorded_calls",
            value=str(CALLS),
            meaning="calls of the launcher in one process that must ask for the same work",
        ),
        Setting(
            name="damage",
            value=f"1/{damage.SHARE}",
            meaning="part of a right answer that is overwritten before the same call is made again",
        ),
        *_settings(CheckRules()),
    )
    trust = (
        Setting(
            name="great_gain",
            value=f"{suspicion.GREAT_GAIN:g}",
            meaning="a step that gains more is looked at again",
        ),
        Setting(
            name="error_noted",
            value=f"{precision.NOTED:g}",
            meaning="an error so many times the original's own is said",
        ),
        Setting(
            name="error_refused",
            value=f"{precision.REFUSED:g}",
            meaning="one so many times is refused, unless lower precision is allowed",
        ),
    )
    decision = (
        Setting(name="confidence", value=f"{timing.CONFIDENCE:g}", meaning="of the interval of a case"),
        *_settings(judge.Margins()),
    )
    version = Setting(
        name="version",
        value=str(Request.model_fields["version"].default),
        meaning="of the protocol; answers of another are never used",
    )
    return (
        ProtocolPart(title="protocol", settings=(version,)),
        ProtocolPart(title="check", settings=checks),
        ProtocolPart(title="time", settings=_settings(timing.TimingRules())),
        ProtocolPart(title="trust", settings=trust),
        ProtocolPart(title="decide", settings=decision),
    )


def versions() -> dict[str, str]:
    """Return what figures of this machine depend on."""
    found = {
        "kernelskill": kernelskill.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": str(len(os.sched_getaffinity(0))),
    }
    try:
        toolchain = Toolchain.find()
        found |= {"nvcc": toolchain.nvcc_version, "g++": toolchain.gxx_version}
    except KernelSkillError as error:
        found["nvcc"] = f"{_MISSING}: {error.message}"
    try:
        gpus = find_gpus()
    except DeviceUnavailable as error:
        return found | {"gpu": f"{_MISSING}: {error.message}"}
    for gpu in gpus:
        driver = ask_nvidia_smi(gpu.uuid, ("driver_version",)).get("driver_version", "unknown driver")
        found[f"cuda:{gpu.index}"] = f"{gpu.name}, driver {driver}, CUDA {gpu.cuda}"
    return found if gpus else found | {"gpu": _MISSING}


def _settings(rules: Explained) -> tuple[Setting, ...]:
    """Return every field of a record of rules; its docstrings say what they mean."""
    return tuple(
        Setting(
            name=name,
            value=_text(getattr(rules, name)),
            meaning=" ".join((field.description or "").split()).rstrip("."),
        )
        for name, field in type(rules).model_fields.items()
    )


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _read(path: Path, kind: type[_R]) -> _R:
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ArtifactCorrupt(
            f"{str(path)!r} is no {kind.__name__} of this version: {str(error).splitlines()[0]}",
            remedy="record it again",
        ) from None
