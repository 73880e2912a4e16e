"""What went wrong between us and a server, in one line, and whether to try again."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping

import openai

from kernelskill.llm.base import FailureKind
from kernelskill.llm.shape import leaves_room
from kernelskill.schema.base import Record

_CONTEXT = re.compile(
    r"context[ _](length|window|size)|maximum context|exceeds? the (available |model'?s? )?context"
    r"|prompt is too long|too many (input )?tokens|input (is )?too long|reduce the length|request too large",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model[^.]{0,80}(not found|does ?n[o']t exist|not exist|unknown|no such|not available|not loaded)"
    r"|(unknown|invalid|no such|unsupported) model|model_not_found|not a valid model",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"content[ _-]?(filter|policy|management)|safety (system|policy)|usage polic", re.IGNORECASE
)
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|balance|credit|funds)|exceeded your current quota|billing", re.I
)
_BUSY = re.compile(r"rate.?limit|overloaded|too many requests|try again|temporar|timed? ?out|capacity", re.I)
_BAD_KEY = re.compile(r"(api|access)[ _-]?(key|token)|unauthorized|authentication", re.IGNORECASE)
_AGAIN = (408, 409, 425, 429)
_LONGEST_MESSAGE = 300
_OTHER_MODEL = "another model may answer"


class Fault(Record):
    """Why one attempt brought no answer."""

    kind: FailureKind
    message: str
    """What is said after the name of the model."""
    remedy: str
    again: bool = False
    """Whether the same request may succeed later."""
    after_s: float | None = None
    """How long the server asks to wait."""
    refused: str = ""
    """What the server said against the request's form; something may be left out then."""
    parameter: str = ""
    """The parameter that it named."""
    broken_form: bool = False
    """Whether the fault may come from asking for the form of an answer, or from streaming it."""
    cut: bool = False
    """Whether an answer had begun."""
    output: str = ""
    """What had come of it."""
    status: int = 0
    """The server's status code, where there was one."""


class AttemptFailed(Exception):
    """One attempt brought no answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def fault_of(error: openai.OpenAIError, *, began: bool = False) -> Fault:
    """Return what an error of the client means.

    Args:
        error: The error.
        began: Whether a part of the answer had come.
    """
    if isinstance(error, openai.APITimeoutError):
        return unreachable("did not answer in time", cut=began)
    if isinstance(error, openai.APIConnectionError):
        if began:
            return unreachable("broke off in the middle of an answer", cut=True)
        return unreachable(f"cannot be reached ({_cause(error)})")
    if isinstance(error, openai.APIStatusError):
        fault = _of_status(error.status_code, _said(error), error, error.response.headers)
        return fault.model_copy(update={"status": error.status_code})
    if isinstance(error, openai.APIResponseValidationError):
        return malformed("sent what is no chat completion", cut=began)
    if isinstance(error, openai.APIError):
        return _of_event(_said(error), error)
    return Fault(
        kind="server", message=f"cannot be asked: {one_line(str(error))}", remedy="see docs/models.md"
    )


def unreachable(what: str, *, cut: bool = False) -> Fault:
    """Return the fault of a connection."""
    remedy = "check that the server runs, the base URL and the network"
    return Fault(kind="unreachable", message=what, remedy=remedy, again=True, cut=cut, broken_form=cut)


def malformed(what: str, *, again: bool = True, cut: bool = False) -> Fault:
    """Return the fault of an answer that says nothing."""
    remedy = "try another model or server, or a larger limit of output tokens"
    return Fault(kind="malformed", message=what, remedy=remedy, again=again, cut=cut, broken_form=again)


def web_page() -> Fault:
    """Return the fault of an address that shows pages."""
    remedy = "check the base URL; most end in /v1"
    return Fault(kind="unreachable", message="sent a web page instead of an answer", remedy=remedy)


def refusal(what: str) -> Fault:
    """Return the fault of a model that declines."""
    shown = f": {one_line(what)}" if what.strip() else ""
    return Fault(kind="refusal", message=f"declined to answer{shown}", remedy=_OTHER_MODEL)


def one_line(text: str) -> str:
    """Return a text on one line, not too long."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= _LONGEST_MESSAGE else flat[: _LONGEST_MESSAGE - 4].rstrip() + " ..."


def _of_status(status: int, said: str, error: openai.APIStatusError, headers: Mapping[str, str]) -> Fault:
    named = f"{error.code or ''} {error.type or ''} {said}"
    shown = f"({status}): {one_line(said)}" if said else f"({status})"
    if status == 429 or status >= 500:
        return _busy(status, named, shown, headers)
    permanent = _permanent(status, named, shown)
    if permanent is not None:
        return permanent
    if status in _AGAIN:
        return _busy(status, named, shown, headers)
    if 300 <= status < 400:
        return Fault(
            kind="unreachable",
            message=f"redirects ({status})",
            remedy="give the address that it redirects to as the base URL",
        )
    return Fault(
        kind="server",
        message=f"refused the request {shown}",
        remedy="the server does not take requests of this form; see docs/models.md",
        refused=said or str(status),
        parameter=error.param or "",
    )


def _permanent(status: int, named: str, shown: str) -> Fault | None:
    """Return the fault that no second attempt mends, where it is one."""
    if status == 402 or (status in (400, 403) and _NO_CREDIT.search(named)):
        return Fault(
            kind="bad_key", message=f"wants payment {shown}", remedy="add credit to the key's account"
        )
    if _REFUSAL.search(named) and status in (400, 403, 422):
        return Fault(kind="refusal", message=f"declined to answer {shown}", remedy=_OTHER_MODEL)
    if status in (400, 413, 422) and _CONTEXT.search(named):
        return None if leaves_room(named) else _overflow(shown)
    if status == 413:
        return _overflow(shown)
    if status in (401, 403) or (status == 400 and _BAD_KEY.search(named)):
        return Fault(
            kind="bad_key",
            message=f"does not accept the key {shown}",
            remedy="set OPENAI_API_KEY (or KERNELSKILL_API_KEY) to a key of this server with access to the model",
        )
    if (status == 404 and "model" in named.lower()) or (
        status in (400, 422) and _UNKNOWN_MODEL.search(named)
    ):
        return Fault(kind="unknown_model", message=f"has no such model {shown}", remedy="")
    if status in (404, 405):
        return Fault(
            kind="unreachable",
            message=f"has no chat completions at this address {shown}",
            remedy="check the base URL; most end in /v1",
        )
    return None


def _overflow(shown: str) -> Fault:
    return Fault(
        kind="context_overflow",
        message=f"cannot take so long a request {shown}",
        remedy="use a model with a longer context, or start the server with a larger one",
    )


def _busy(status: int, named: str, shown: str, headers: Mapping[str, str]) -> Fault:
    if status in (402, 429) and _NO_CREDIT.search(named):
        return Fault(
            kind="bad_key", message=f"wants payment {shown}", remedy="add credit to the key's account"
        )
    if _CONTEXT.search(named):
        return _overflow(shown)
    what = "limits the rate of requests" if status == 429 else "failed"
    after_s = wait_asked_for(headers, now=time.time())
    asks = f"; it asks to wait {after_s:.0f} s" if after_s is not None and after_s >= 1 else ""
    return Fault(
        kind="server",
        message=f"{what} {shown}{asks}",
        remedy="try again later, or ask with fewer requests at once (KERNELSKILL_MODEL_PARALLEL=1)",
        again=headers.get("x-should-retry", "").lower() != "false",
        after_s=after_s,
        broken_form=status in (500, 501),
    )


def _of_event(said: str, error: openai.APIError) -> Fault:
    """Return what an error event inside a stream means; the status was 200 already."""
    named = f"{error.code or ''} {error.type or ''} {said}"
    shown = f": {one_line(said)}" if said else ""
    if _CONTEXT.search(named):
        return _overflow(f"({one_line(said)})")
    if _REFUSAL.search(named):
        return refusal(said)
    if _NO_CREDIT.search(named) and not _BUSY.search(named):
        return Fault(
            kind="bad_key", message=f"wants payment{shown}", remedy="add credit to the key's account"
        )
    return Fault(
        kind="server",
        message=f"failed while it answered{shown}",
        remedy="try again later",
        again=True,
        cut=True,
        broken_form=True,
    )


def wait_asked_for(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds that `Retry-After` asks for: milliseconds, seconds or a date.

    Args:
        headers: Of the response.
        now: Seconds since 1970, for dates.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if 0 <= seconds < 1e6:
            return seconds
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, moment.timestamp() - now)


def _said(error: openai.APIError) -> str:
    """Return what the server itself said, without the client's own words."""
    body = error.body
    if isinstance(body, dict):
        for name in ("message", "detail", "error", "msg"):
            if body.get(name):
                return (
                    body[name] if isinstance(body[name], str) else json.dumps(body[name], ensure_ascii=False)
                )
        return json.dumps(body, ensure_ascii=False)
    if isinstance(body, str):
        return _text_of_page(body)
    return "" if body is None else str(body)


def _text_of_page(text: str) -> str:
    """Return the words of an error page."""
    if "<" not in text:
        return text
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    return title[1] if title else re.sub(r"<[^>]*>", " ", text)


def _cause(error: BaseException) -> str:
    """Return what the system says about a connection, from the innermost cause."""
    inner = error
    while inner.__cause__ is not None or inner.__context__ is not None:
        inner = inner.__cause__ or inner.__context__ or inner
    return one_line(str(inner)) or type(inner).__name__
