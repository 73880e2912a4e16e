"""ReplayEvaluator: answers from recorded evaluations, so that a run can be shown without any device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kernelskill.errors import ArtifactCorrupt, UsageError
from kernelskill.evaluation.timing import pair
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.evaluation import Evaluation, PairedTiming, Request, Status
from kernelskill.schema.profile import Profile, ProfileDepth

NOT_RECORDED = "not recorded"
AnyRecord = TypeVar("AnyRecord", bound=Record)


class ReplayEvaluator:
    """Implements `evaluation.base.Evaluator` on records.

    A request is answered by its key, else by candidate and stage; then it is compared with its
    incumbent by the recorded medians.

    Args:
        evaluations: What was recorded; never empty.
        profiles: What was recorded.
        source: The folder or file, for messages.
    """

    def __init__(self, evaluations: Sequence[Evaluation], profiles: Sequence[Profile], source: Path) -> None:
        self._keys = {evaluation.key: evaluation for evaluation in evaluations}
        # Later records win; a full check of a candidate is as good as any other, a cheap one is not.
        deepest = sorted(evaluations, key=lambda e: e.depth != "cheap")
        self._candidates = {(e.candidate, e.stage): e for e in deepest}
        self._brief = {(e.candidate, e.stage): e for e in evaluations if e.depth == "cheap"}
        self._profiles = {profile.candidate: profile for profile in profiles}
        self._source = source
        self._conditions = evaluations[-1].conditions
        self.device = "replay"
        self.evidence: Evidence = self._conditions.evidence
        self.gpu: Gpu = find_gpu(self._conditions.gpu)

    @staticmethod
    def open(source: Path) -> ReplayEvaluator:
        """Open a run folder, a folder of evaluations, or a file with one evaluation a line.

        Raises:
            UsageError: Nothing is recorded there.
            ArtifactCorrupt: A record cannot be read.
        """
        if not source.exists():
            raise UsageError(
                f"no recorded evaluations at {str(source)!r}", remedy="give a run folder after replay:"
            )
        if source.is_file():
            evaluations = list(_lines(source))
            profiles: list[Profile] = []
        else:
            folder = source / "evaluations" if (source / "evaluations").is_dir() else source
            evaluations = list(_records(folder, Evaluation))
            profiles = list(_records(source / "profiles", Profile))
        if not evaluations:
            raise UsageError(
                f"{str(source)!r} holds no evaluations", remedy="give a run folder after replay:"
            )
        return ReplayEvaluator(evaluations, profiles, source)

    def conditions(self) -> Conditions:
        """Return the conditions under which was recorded."""
        return self._conditions

    @property
    def identity(self) -> str:
        """Recorded answers are looked up by candidate where the key is another's."""
        return self.device

    def prefetch(self, requests: Sequence[Request]) -> None:
        """Nothing to build."""

    def evaluate(self, request: Request) -> Evaluation:
        """Return what was recorded; what was not ends as unsupported, never as a guess."""
        exact = self._keys.get(request.key)
        if exact is not None:
            return exact
        found = self._found(request)
        if found is None and request.stage == "check":
            timed = self._candidates.get((request.candidate.digest, "time"))
            found = timed and timed.model_copy(
                update={
                    "stage": "check",
                    "timings": (),
                    "paired": (),
                    "incumbent_timings": (),
                    "baseline_timings": (),
                }
            )
        if found is None:
            return self._unknown(request)
        return found.model_copy(update={"key": request.key, **self._against(request, found)})

    def profile(self, candidate: Candidate, *, depth: ProfileDepth = "quick") -> Profile:
        """Return the recorded profile, of whatever depth; without one, an empty one that says so."""
        known = self._profiles.get(candidate.digest)
        if known is not None:
            return known
        return Profile(
            candidate=candidate.digest,
            case=0,
            source="static",
            kernels=(),
            unavailable=f"{NOT_RECORDED} in {self._source.name}",
            conditions=self._conditions,
        )

    def close(self) -> None:
        """Nothing to release."""

    def _found(self, request: Request) -> Evaluation | None:
        wanted = (request.candidate.digest, request.stage)
        deep = self._candidates.get(wanted)
        if request.depth == "cheap":
            return self._brief.get(wanted, deep)
        return None if deep is not None and deep.depth == "cheap" else deep

    def _against(self, request: Request, found: Evaluation) -> dict[str, tuple[PairedTiming, ...]]:
        """Compare recorded medians with those of the incumbent that is asked for."""
        if not found.passed or request.stage != "time" or request.incumbent is None:
            return {}
        incumbent = self._candidates.get((request.incumbent.digest, "time"))
        if incumbent is None:
            return {"paired": ()}
        pairs = []
        for timing in found.timings:
            other = incumbent.timing(timing.case)
            if other is not None:
                pairs.append(pair(timing.case, [other.median_ms / timing.median_ms]))
        return {"paired": tuple(pairs)}

    def _unknown(self, request: Request) -> Evaluation:
        return Evaluation(
            key=request.key,
            candidate=request.candidate.digest,
            stage=request.stage,
            status=Status.UNSUPPORTED,
            detail=NOT_RECORDED,
            conditions=self._conditions,
        )


def _records(folder: Path, model: type[AnyRecord]) -> Iterator[AnyRecord]:
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            yield model.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise ArtifactCorrupt(f"{path} is no {model.__name__.lower()}: {_first(error)}") from None


def _lines(source: Path) -> Iterator[Evaluation]:
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactCorrupt(f"cannot read {str(source)!r}: {error}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield Evaluation.model_validate_json(line)
            except ValidationError as error:
                raise ArtifactCorrupt(f"{source}:{number} is no evaluation: {_first(error)}") from None


def _first(error: OSError | ValidationError) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        return f"{'.'.join(map(str, problem['loc'])) or 'text'}: {problem['msg']}"
    return str(error.strerror)
