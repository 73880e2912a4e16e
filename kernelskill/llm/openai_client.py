"""OpenAIModel: any server that speaks OpenAI's chat completions, asked in parallel and with patience."""

from __future__ import annotations

import queue
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress

import openai
import tenacity

from kernelskill.errors import HarnessError, KernelSkillError, UsageError
from kernelskill.llm.address import Address
from kernelskill.llm.base import NO_USAGE, ModelAnswer, ModelFailure, ModelRequest, Reply, Usage
from kernelskill.llm.faults import AttemptFailed, Fault, fault_of, malformed, one_line
from kernelskill.llm.keys import Key
from kernelskill.llm.openai_call import Attempt, attempt, usage_of_fault
from kernelskill.llm.patience import Patience, Rest
from kernelskill.llm.prices import Price
from kernelskill.llm.shape import Shape
from kernelskill.llm.transport import open_client
from kernelskill.registry import near_names

_NO_KEY_NEEDED = "none"
_JOIN_S = 0.2
_LIST_S = 10.0
_MOST_SHAPES = 8
"""A server that has refused this many forms of one request is not asked in another."""
_PLAINER_FROM = 2
_GUESSES_TO_LEARN = 2
_HOPELESS = ("bad_key", "unknown_model")
"""With these no later request fares better; so long as none was ever answered, none is sent."""


Done = Callable[[ModelRequest, Reply], None]
Again = Callable[[ModelRequest, Usage], str]


def ignore(_request: ModelRequest, _reply: Reply) -> None:
    """Do nothing with a reply."""


def unlimited(_request: ModelRequest, _took: Usage) -> str:
    """Name no limit."""
    return ""


class OpenAIModel:
    """A model behind a server with chat completions.

    Args:
        address: The model and its server.
        key: Sent to that server alone.
        price: Of the model; None where it is not known.
        patience: Limits of waiting.
        done: Told each reply as soon as it is there, in the thread that got it.
        again: Asked before another attempt, with what the last one took; names a limit to stop at.

    Raises:
        UsageError: The client cannot be made, for example because a proxy is set wrongly.
    """

    def __init__(
        self,
        address: Address,
        key: Key,
        *,
        price: Price | None = None,
        patience: Patience | None = None,
        done: Done = ignore,
        again: Again = unlimited,
    ) -> None:
        self.name = address.model
        self._address = address
        self._key = key
        self._price = price
        self._done = done
        self._again = again
        self._raised: list[KernelSkillError] = []
        self._patience = patience or Patience()
        self._places = threading.Semaphore(self._patience.parallel)
        self._stop = threading.Event()
        self._rest = Rest()
        self._jitter = random.Random()
        hosted = address.host == "api.openai.com"
        self._shape_proven = ""
        self._stream_proven = False
        self._guesses = 0
        self._reached = False
        self._answered = False
        self._hopeless: Fault | None = None
        self._shape = Shape(limit="max_completion_tokens" if hosted else "max_tokens")
        self._client = self._open()
        weakref.finalize(self, self._client.close)

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        """Return one reply a request, in the order asked; at most `patience.parallel` are under way."""
        unique = {request.digest: request for request in requests}
        waiting: queue.SimpleQueue[ModelRequest] = queue.SimpleQueue()
        for request in unique.values():
            waiting.put(request)
        replies: dict[str, Reply] = {}
        # Daemons, so that an interrupted program does not wait for servers.
        threads = [
            threading.Thread(target=self._work, args=(waiting, replies), daemon=True)
            for _ in range(min(len(unique), self._patience.parallel))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(_JOIN_S)
        except BaseException:
            self._stop.set()
            raise
        if self._raised:
            raise self._raised.pop()
        if len(replies) < len(unique):
            raise HarnessError(f"a request to {self.name} ended without a reply")
        return tuple(replies[request.digest] for request in requests)

    @property
    def host(self) -> str:
        """The server's name."""
        return self._address.host

    def listed(self) -> tuple[str, ...]:
        """Return the models that the server lists.

        Raises:
            AttemptFailed: It lists none, or cannot be reached.
        """
        try:
            page = self._client.models.list(timeout=_LIST_S)
            return tuple(sorted(str(model.id) for model in page.data or ()))
        except openai.OpenAIError as error:
            raise AttemptFailed(fault_of(error)) from None
        except (ValueError, TypeError, AttributeError):
            raise AttemptFailed(malformed("sent no list of models")) from None

    def explain(self, fault: Fault) -> str:
        """Return a fault in one line that holds no key."""
        message = f"{self.name} at {self._address.host} {fault.message}"
        return self._key.clean_message(message)

    def _open(self) -> openai.OpenAI:
        patience = self._patience
        try:
            http = open_client(
                connect_s=patience.connect_s,
                silence_s=patience.silence_s,
                answer_s=patience.answer_s,
                parallel=patience.parallel + 1,
                surroundings=not self._address.on_this_machine,
            )
            return openai.OpenAI(
                api_key=self._key.reveal() or _NO_KEY_NEEDED,
                base_url=self._address.url,
                max_retries=0,
                http_client=http,
            )
        except (openai.OpenAIError, ValueError, ImportError, OSError) as error:
            said = self._key.clean_message(one_line(str(error)))
            raise UsageError(
                f"no client for {self._address.host} can be made: {said}",
                remedy="look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
            ) from None

    def _work(self, waiting: queue.SimpleQueue[ModelRequest], replies: dict[str, Reply]) -> None:
        while not self._stop.is_set():
            try:
                request = waiting.get_nowait()
            except queue.Empty:
                return
            with self._places:
                reply = self._reply(request)
            try:
                self._done(request, reply)
            except KernelSkillError as error:
                self._raised.append(error)
                return
            replies[request.digest] = reply

    def _reply(self, request: ModelRequest) -> Reply:
        taken = _Taken()
        if self._hopeless is not None:
            return self._failure(request, self._hopeless, taken)
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._patience.attempts),
            wait=self._wait,
            retry=self._goes_on,
            sleep=self._sleep,
            retry_error_callback=_last_outcome,
        )
        try:
            found: Attempt = retrying(self._attempt, request, taken)
        except AttemptFailed as error:
            if error.fault.kind in _HOPELESS and not self._answered:
                self._hopeless = error.fault
            return self._failure(request, error.fault, taken)
        return ModelAnswer(
            request=request.digest,
            model=self.name,
            text=self._key.clean_answer(found.answer),
            usage=taken.usage + self._priced(found.usage(request)),
            truncated=found.finish == "length",
        )

    def _attempt(self, request: ModelRequest, taken: _Taken) -> Attempt:
        """Ask until the form of the request suits the server; what suits is remembered."""
        shape = taken.shape or self._shape
        for _ in range(_MOST_SHAPES):
            self._require_budget(request, taken)
            self._rest.wait(self._stop)
            taken.count += 1
            try:
                found = attempt(self._client, self._address.model, request, shape)
            except AttemptFailed as error:
                fault = error.fault
                taken.last = fault
                taken.took = self._priced(usage_of_fault(fault, request))
                taken.usage += taken.took
                self._reached = self._reached or fault.kind != "unreachable" or fault.cut
                following = (
                    shape.after_refusal(fault.refused, fault.parameter, request) if fault.refused else None
                )
                if following is None:
                    self._try_plainer(shape, fault, request, taken)
                    raise
                shape = following
            else:
                self._learn(shape, taken, formed=request.answer_schema is not None)
                return found
        raise AttemptFailed(
            Fault(kind="server", message="refuses every form of request", remedy="see docs/models.md")
        )

    def _require_budget(self, request: ModelRequest, taken: _Taken) -> None:
        if taken.last is None:
            return
        limit = self._again(request, taken.took)
        if limit:
            raise AttemptFailed(
                Fault(
                    kind="budget",
                    message=f"{taken.last.message}; another attempt would pass the model's budget of {limit}",
                    remedy="raise the limit and resume; everything answered so far is kept",
                )
            )

    def _try_plainer(self, shape: Shape, fault: Fault, request: ModelRequest, taken: _Taken) -> None:
        """Leave out what may break a server that fails again, though it has not named it."""
        taken.shape = shape
        if not shape.stream and self._shape.stream and taken.guessed:
            taken.shape = shape.model_copy(update={"stream": True})  # that was not the reason
            return
        if not fault.broken_form or taken.count < _PLAINER_FROM:
            return
        if shape.stream and not taken.guessed and (fault.cut or fault.kind == "malformed"):
            if self._stream_proven:
                return
            taken.shape = shape.model_copy(update={"stream": False})
        elif request.answer_schema is not None and shape.form != "words" and shape.form != self._shape_proven:
            taken.shape = shape.with_next_form()
        taken.guessed = taken.guessed or taken.shape != shape

    def _learn(self, shape: Shape, taken: _Taken, *, formed: bool) -> None:
        """Remember the shape that worked; one that was only guessed when it has worked twice."""
        self._answered = self._reached = True
        if taken.guessed:
            self._guesses += 1
        if not taken.guessed or self._guesses >= _GUESSES_TO_LEARN:
            self._shape = shape.model_copy(update={"room": None})
            self._shape_proven = shape.form if formed else self._shape_proven
            self._stream_proven = self._stream_proven or shape.stream

    def _failure(self, request: ModelRequest, fault: Fault, taken: _Taken) -> ModelFailure:
        times = f" after {taken.count} attempts" if taken.count > 1 and fault.again else ""
        remedy = self._known_instead() if fault.kind == "unknown_model" else fault.remedy
        return ModelFailure(
            request=request.digest,
            kind=fault.kind,
            message=f"{self.explain(fault)}{times}",
            remedy=one_line(self._key.clean_message(remedy)),
            usage=taken.usage,
        )

    def _known_instead(self) -> str:
        known: tuple[str, ...] = ()
        with suppress(AttemptFailed):
            known = self.listed()
        if not known:
            return "check the model's name with the server"
        near = near_names(self.name, known)
        return f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known[:8])}"

    def _priced(self, usage: Usage) -> Usage:
        if usage.tokens == 0:
            return usage.model_copy(update={"cost_usd": 0.0})
        cost = self._price.cost_usd(usage) if self._price is not None else None
        return usage.model_copy(update={"cost_usd": cost})

    def _goes_on(self, state: tenacity.RetryCallState) -> bool:
        raised = state.outcome.exception() if state.outcome is not None else None
        if not isinstance(raised, AttemptFailed) or not raised.fault.again or self._stop.is_set():
            return False
        fault, patience = raised.fault, self._patience
        if fault.kind == "unreachable" and not self._reached:
            return state.attempt_number < patience.attempts_at_first
        return (fault.after_s or 0.0) <= patience.longest_asked_wait_s

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Return what the server asks to wait, else twice as long each time; both with jitter."""
        patience = self._patience
        raised = state.outcome.exception() if state.outcome is not None else None
        asked = raised.fault.after_s if isinstance(raised, AttemptFailed) else None
        if asked is not None:
            self._rest.begin(asked)
            return asked + self._jitter.uniform(0.0, min(1.0, 0.1 * asked + 0.05))
        longest = min(patience.longest_wait_s, patience.first_wait_s * 2.0 ** (state.attempt_number - 1))
        return self._jitter.uniform(longest / 2, longest)

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)


class _Taken:
    """What one request took so far, and the form it is tried in next."""

    def __init__(self) -> None:
        self.usage = NO_USAGE
        self.took = NO_USAGE
        """What the last attempt took."""
        self.last: Fault | None = None
        self.count = 0
        self.shape: Shape | None = None
        self.guessed = False


def _last_outcome(state: tenacity.RetryCallState) -> Attempt:
    """Return or raise what the last attempt ended with."""
    if state.outcome is None:
        raise HarnessError("a request was not attempted")
    found: Attempt = state.outcome.result()
    return found
