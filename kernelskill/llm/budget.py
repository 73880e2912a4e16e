"""ModelBudget: a model that is asked only as long as tokens, money and requests last."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pydantic import Field

from kernelskill.errors import UsageError
from kernelskill.llm.base import (
    NO_USAGE,
    Model,
    ModelFailure,
    ModelRequest,
    Pending,
    Reply,
    Usage,
)
from kernelskill.llm.prices import Price
from kernelskill.llm.recording import AnswerFile
from kernelskill.llm.tokens import estimate_tokens
from kernelskill.schema.base import Record


class ModelLimits(Record):
    """What may be spent on a model. None is no limit."""

    tokens: int | None = Field(default=None, ge=0)
    """In and out together."""
    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    requests: int | None = Field(default=None, ge=0)


class Leash:
    """Lets a model ask its budget before it tries again; a model without one may."""

    def __init__(self) -> None:
        self.budget: ModelBudget | None = None

    def __call__(self, request: ModelRequest, took: Usage) -> str:
        return self.budget.again(request, took) if self.budget is not None else ""


class ModelBudget:
    """Asks a model within limits, and keeps count by role.

    Before a request goes out, the most that it can take is set aside: its prompt by an upper estimate and
    its whole limit of output tokens. Before another attempt the model asks `again`.

    Args:
        model: Asked where the budget permits.
        limits: Of everything, earlier parts of the run included.
        price: Of the model's tokens.
        file: Where answers are kept; what they took counts, and a kept answer is free.

    Raises:
        UsageError: Money is limited and the model has no known price.
    """

    def __init__(
        self,
        model: Model,
        limits: ModelLimits,
        *,
        price: Price | None = None,
        file: AnswerFile | None = None,
    ) -> None:
        if limits.usd is not None and price is None:
            raise UsageError(
                f"no price is known for {model.name!r}, so a limit of money cannot be kept",
                remedy="give its price in prices.toml (docs/models.md), or limit tokens instead",
            )
        self.name = model.name
        self._model = model
        self._limits = limits
        self._price = price
        self._file = file
        self._settled = threading.Condition()
        self._spent: dict[str, Usage] = {}
        self._set_aside: dict[int, Usage] = {}
        self._tickets_of: dict[str, list[int]] = {}
        self._tickets = 0
        self._exhausted = ""
        for row in file.rows if file is not None else ():
            self._count(row.role, row.usage)

    @property
    def exhausted(self) -> str:
        """Which limit has refused a request, in words; empty while none has."""
        return self._exhausted

    def usage_by_role(self) -> dict[str, Usage]:
        """Return what was spent, the roles in alphabetical order."""
        with self._settled:
            return dict(sorted(self._spent.items()))

    def usage(self) -> Usage:
        """Return what was spent by all roles together."""
        return sum(self.usage_by_role().values(), NO_USAGE)

    def estimate(self, request: ModelRequest) -> Usage:
        """Return the most that one attempt at a request can take."""
        usage = Usage(
            input_tokens=estimate_tokens(request), output_tokens=request.max_output_tokens, estimated=True
        )
        cost = self._price.cost_usd(usage) if self._price is not None else None
        return usage.model_copy(update={"cost_usd": cost})

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        """Ask as many as the budget permits; the rest are failures of the kind `budget`.

        Those that do not fit beside the others are asked after them, if the others have left enough.
        """
        replies: dict[str, Reply] = {}
        unique = {request.digest: request for request in requests}
        left = list(unique.values())
        while left:
            admitted = self._admit(left)
            if not admitted:
                replies |= {request.digest: self._refuse(request) for request in left}
                break
            replies |= self._ask(admitted)
            left = [request for request in left if request.digest not in replies]
        return tuple(replies[request.digest] for request in requests)

    def again(self, request: ModelRequest, took: Usage) -> str:
        """Set aside what a failed attempt took; name the limit that another attempt would pass, or nothing."""
        with self._settled:
            for ticket in self._tickets_of.get(request.digest, ())[:1]:
                self._set_aside[ticket] += took
            limit = self._limit_passed(NO_USAGE, others=True)
            if limit:
                self._exhausted = f"the model's budget of {limit}"
        return limit

    def _ask(self, admitted: dict[int, ModelRequest]) -> dict[str, Reply]:
        asked = list(admitted.values())
        kept = {request.digest for request in asked if self._is_kept(request)}
        replies: tuple[Reply, ...] = ()
        try:
            replies = self._model.ask(asked)
        finally:
            with self._settled:
                for ticket, request in admitted.items():
                    del self._set_aside[ticket]
                    self._tickets_of[request.digest].remove(ticket)
                for request, reply in zip(asked, replies, strict=False):
                    if request.digest not in kept and not isinstance(reply, Pending):
                        self._count(request.role, reply.usage)
                self._settled.notify_all()
        return {request.digest: reply for request, reply in zip(asked, replies, strict=True)}

    def _admit(self, requests: list[ModelRequest]) -> dict[int, ModelRequest]:
        """Set aside what the next requests can take, as many as fit; waits where another thread may leave enough."""
        admitted: dict[int, ModelRequest] = {}
        with self._settled:
            for request in requests:
                most = NO_USAGE if self._is_kept(request) else self.estimate(request)
                while not admitted and not self._fits(most, others=True) and self._fits(most, others=False):
                    self._settled.wait()
                if self._fits(most, others=True):
                    self._tickets += 1
                    self._set_aside[self._tickets] = most
                    self._tickets_of.setdefault(request.digest, []).append(self._tickets)
                    admitted[self._tickets] = request
        return admitted

    def _fits(self, most: Usage, *, others: bool) -> bool:
        return not most.requests or not self._limit_passed(most, others=others)

    def _limit_passed(self, most: Usage, *, others: bool) -> str:
        """Name the limit that a request would pass, or return an empty text."""
        aside = self._set_aside.values() if others else ()
        total = sum((*self._spent.values(), *aside), NO_USAGE) + most
        limits = self._limits
        if limits.requests is not None and total.requests > limits.requests:
            return f"{limits.requests} requests"
        if limits.tokens is not None and total.tokens > limits.tokens:
            return f"{limits.tokens} tokens"
        if limits.usd is not None and (total.cost_usd is None or total.cost_usd > limits.usd):
            return f"{limits.usd:g} USD"
        return ""

    def _refuse(self, request: ModelRequest) -> ModelFailure:
        with self._settled:
            limit = self._limit_passed(self.estimate(request), others=False) or "what others have set aside"
            self._exhausted = f"the model's budget of {limit}"
        estimate = self.estimate(request)
        return ModelFailure(
            request=request.digest,
            kind="budget",
            message=f"a request of up to {estimate.tokens} tokens would pass the model's budget of {limit}",
            remedy="raise the limit and resume; everything answered so far is kept",
        )

    def _count(self, role: str, usage: Usage) -> None:
        if usage.cost_usd is None and self._price is not None:
            usage = usage.model_copy(update={"cost_usd": self._price.cost_usd(usage)})
        self._spent[role] = self._spent.get(role, NO_USAGE) + usage

    def _is_kept(self, request: ModelRequest) -> bool:
        return self._file is not None and self._file.answer(request.digest) is not None
