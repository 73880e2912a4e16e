"""Whether a model can be asked, found out without asking it anything."""

from __future__ import annotations

from kernelskill.config import process_environment
from kernelskill.errors import KernelSkillError
from kernelskill.llm.address import parse_address
from kernelskill.llm.base import Model
from kernelskill.llm.keys import KEY_VARIABLES, NO_KEY, find_key
from kernelskill.llm.models import open_model, price_of
from kernelskill.registry import near_names
from kernelskill.schema.base import Record


class Outlook(Record):
    """What can be said of a model beforehand."""

    usable: bool
    detail: str
    remedy: str = ""


def look_at_key() -> Outlook:
    """Say where the key comes from that would be sent to the server of `openai:` models; never the key."""
    try:
        address = parse_address("any", process_environment())
        key = find_key(address.host, process_environment())
    except KernelSkillError as error:
        return Outlook(usable=False, detail=error.message, remedy=error.remedy)
    if key is NO_KEY:
        names = " or ".join(KEY_VARIABLES)
        return Outlook(usable=True, detail=f"none in {names} or the keyring; the mechanical skills need none")
    return Outlook(usable=True, detail=f"from {key.origin}, for {address.host}")


def look_at_model(spec: str) -> Outlook:
    """Open a model and, where it has a server, ask that for its list of models.

    Args:
        spec: As for `open_model`.
    """
    try:
        model = open_model(spec)
        price = price_of(spec)
    except KernelSkillError as error:
        return Outlook(usable=False, detail=error.message, remedy=error.remedy)
    if model is None:
        return Outlook(usable=True, detail="none set; name one with --model (docs/models.md)")
    if not spec.strip().startswith("openai:"):
        return Outlook(usable=True, detail=spec)
    found = _look_at_server(model)
    note = "" if price is not None else "; its price is not known"
    return found.model_copy(update={"detail": found.detail + note})


def _look_at_server(model: Model) -> Outlook:
    from kernelskill.llm.faults import AttemptFailed  # noqa: PLC0415 - the client is slow to load
    from kernelskill.llm.openai_client import OpenAIModel  # noqa: PLC0415 - as above

    if not isinstance(model, OpenAIModel):
        return Outlook(usable=True, detail=model.name)
    where = f"{model.name} at {model.host}"
    try:
        names = model.listed()
    except AttemptFailed as error:
        failure = model.explain(error.fault)
        unlisted = error.fault.status in (404, 405)
        return Outlook(
            usable=unlisted,
            detail=f"{where}; the server lists no models, so it was not tried" if unlisted else failure,
            remedy="" if unlisted else error.fault.remedy,
        )
    if not names or model.name in names:
        return Outlook(usable=True, detail=f"{where}, which {'answers' if not names else 'has it'}")
    near = near_names(model.name, names) or names[:6]
    return Outlook(
        usable=False, detail=f"{where}, which does not list it", remedy=f"it has {', '.join(near)}"
    )
