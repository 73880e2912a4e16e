"""GuardedEvaluator: code that nobody wrote by hand runs only once the user has agreed."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.forecasts import Forecast, Forecasting, Wanted, always
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.schema.profile import Profile, ProfileDepth
from kernelskill.session.borders import Border, BorderQuestion, BorderRefused, Borders, EditGiven
from kernelskill.source.edits import unified_diff


def guarded(
    inner: Evaluator, borders: Borders, original: Candidate, store: EvaluationStore
) -> GuardedEvaluator:
    """Return an evaluator that asks first; it can do what the other one can."""
    if isinstance(inner, Forecasting):
        return GuardedForecaster(inner, inner, borders, original, store)
    return GuardedEvaluator(inner, borders, original, store)


class GuardedEvaluator:
    """Hands requests on, and asks before the first one that runs generated code.

    Args:
        inner: The evaluator of the run.
        borders: Asks.
        original: The user's own kernel; what the user pinned counts as their own, too.
        store: Holds what was answered before, for which nothing runs.
    """

    def __init__(
        self, inner: Evaluator, borders: Borders, original: Candidate, store: EvaluationStore
    ) -> None:
        self._inner = inner
        self._store = store
        self._borders = borders
        self._original = original
        self._own = {original.digest}
        self._agreed = False

    @property
    def device(self) -> str:
        """As the user names it."""
        return self._inner.device

    @property
    def identity(self) -> str:
        """What a request's key carries of the device."""
        return self._inner.identity

    @property
    def gpu(self) -> Gpu:
        """The hardware that figures belong to."""
        return self._inner.gpu

    @property
    def evidence(self) -> Evidence:
        """Whether times are measured or estimated."""
        return self._inner.evidence

    def own(self, candidate: Candidate) -> None:
        """Take a candidate for the user's own."""
        self._own.add(candidate.digest)

    def conditions(self) -> Conditions:
        """Return what the figures depend on."""
        return self._inner.conditions()

    def prefetch(self, requests: Sequence[Request]) -> None:
        """Start on requests that will be asked soon; nothing is asked of the user for that."""
        allowed = [request for request in requests if self._agreed or request.candidate.digest in self._own]
        self._inner.prefetch(allowed)

    def evaluate(self, request: Request) -> Evaluation:
        """Answer a request.

        Raises:
            BorderRefused: The user does not want the code to run.
            EditGiven: The user gave another text in its place.
        """
        if self._store.get(request.key) is None:
            self._agree(request.candidate)
        return self._inner.evaluate(request)

    def profile(self, candidate: Candidate, *, depth: ProfileDepth = "quick") -> Profile:
        """Collect the figures of a candidate on its first timed case."""
        self._agree(candidate)
        return self._inner.profile(candidate, depth=depth)

    def close(self) -> None:
        """Release processes and files."""
        self._inner.close()

    def _agree(self, candidate: Candidate) -> None:
        if self._agreed or candidate.digest in self._own:
            return
        answer = self._borders.answer(
            BorderQuestion(
                border=Border.FIRST_RUN,
                text=f"generated code is about to run on {self.device} for the first time",
                detail="every candidate is built, checked and timed in a process of its own",
                path=candidate.main,
                source=candidate.source,
                diff=unified_diff(self._original, candidate),
            )
        )
        if answer.kind == "edit":
            raise EditGiven(candidate.digest, answer.text)
        if answer.kind == "no":
            raise BorderRefused("generated code was not allowed to run")
        self._agreed = True


class GuardedForecaster(GuardedEvaluator):
    """The same for an evaluator that can tell times before the device looks; that runs code as well, elsewhere."""

    def __init__(
        self,
        inner: Evaluator,
        forecasting: Forecasting,
        borders: Borders,
        original: Candidate,
        store: EvaluationStore,
    ) -> None:
        super().__init__(inner, borders, original, store)
        self._forecasting = forecasting

    def forecasts(self, candidates: Sequence[Candidate], wanted: Wanted = always) -> dict[str, Forecast]:
        """Return the forecasts of candidates by their digests."""
        for candidate in candidates:
            self._agree(candidate)
        return self._forecasting.forecasts(candidates, wanted)
