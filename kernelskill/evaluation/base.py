"""The seam the search talks to: an Evaluator answers Requests with Evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.schema.profile import Profile, ProfileDepth


class Closing(Protocol):
    """Something that has to be closed."""

    def close(self) -> None:
        """Release what it holds."""


class Evaluator(Protocol):
    """Judges candidates of one task on one device. The only source of figures in a run."""

    @property
    def device(self) -> str:
        """As the user names it."""

    @property
    def identity(self) -> str:
        """What a request's key carries of the device; another GPU's times must never answer."""

    @property
    def gpu(self) -> Gpu:
        """The hardware that figures belong to."""

    @property
    def evidence(self) -> Evidence:
        """Whether times are measured or estimated."""

    def conditions(self) -> Conditions:
        """Return what the figures depend on."""

    def prefetch(self, requests: Sequence[Request]) -> None:
        """Start on requests that will be asked soon: builds here, jobs elsewhere; returns at once."""

    def evaluate(self, request: Request) -> Evaluation:
        """Answer a request; a finished answer of the same key is returned without work.

        Raises:
            HarnessError: Our own machinery failed; the request may be asked again.
        """

    def profile(self, candidate: Candidate, *, depth: ProfileDepth = "quick") -> Profile:
        """Collect the figures of a candidate on its first timed case."""

    def close(self) -> None:
        """Release processes and files."""
