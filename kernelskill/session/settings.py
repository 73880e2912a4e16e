"""Settings of a run that change on the way: its model and its limits. They are kept with the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelskill.agents.prompts import PromptLibrary
from kernelskill.config import RunConfig, parse_duration
from kernelskill.errors import ConfigError
from kernelskill.graph.context import RoundContext
from kernelskill.llm.base import NO_USAGE, Usage
from kernelskill.llm.budget import ModelBudget, ModelLimits
from kernelskill.llm.models import absolute_spec, open_budgeted
from kernelskill.report.usage import usage_by_role
from kernelskill.schema.chat_event import Configured
from kernelskill.search.budget import budget_of
from kernelskill.session.records import BudgetView, ModelView
from kernelskill.session.workbench import Workbench

LIMITS = {
    "device": "budget_s",
    "wall": "wall_s",
    "evaluations": "evaluations",
    "rounds": "rounds",
    "patience": "patience",
    "roof": "near_roof",
    "tokens": "model_tokens",
    "usd": "model_usd",
    "requests": "model_requests",
}
"""What a limit is called in a session, and the setting that it is."""
_DURATIONS = ("device", "wall")
_ASKING = ("model", "samples", "repairs", "plan")
_NEVER_NONE = ("rounds", "patience", "roof")
_OF_REASON: dict[str, tuple[str, ...]] = {
    "evaluations": ("evaluations",),
    "seconds": ("wall",),
    "device_seconds": ("device",),
    "model_budget": ("tokens", "usd", "requests"),
}


class Settings:
    """Shows and changes them."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def model(self) -> ModelView:
        """Return the model and what it took so far."""
        context = self._bench.context
        config = context.config
        budgeted = isinstance(context.model, ModelBudget)
        usage = context.model.usage() if isinstance(context.model, ModelBudget) else _used_before(context)
        return ModelView(
            spec=config.model if budgeted else "none",
            tokens=usage.tokens,
            usd=usage.cost_usd,
            requests=usage.requests,
            limits=_limits(config),
            samples=config.samples,
            repairs=config.repairs,
            plan=config.plan,
        )

    def set_model(
        self,
        spec: str | None = None,
        *,
        samples: int | None = None,
        repairs: int | None = None,
        plan: bool | None = None,
    ) -> ModelView:
        """Ask another model from now on, or the same in another way; what is None stays.

        Args:
            spec: The model; `none` asks nobody.
            samples: Answers for each specialist and round.
            repairs: Times that a change that failed may be mended.
            plan: Whether it is asked first which of the directions to try.

        Raises:
            UsageError: No model is spelled so, or one of its files cannot be used.
            ConfigError: A number is out of range.
        """
        given: dict[str, Any] = {"samples": samples, "repairs": repairs, "plan": plan}
        if spec is not None:
            given["model"] = absolute_spec(spec.strip() or "none", Path.cwd())
        self._apply({name: value for name, value in given.items() if value is not None})
        return self.model()

    def keep(self, changes: Mapping[str, Any]) -> None:
        """Keep settings with which the run was taken up again, so that they hold the next time too."""
        if changes:
            bench = self._bench
            bench.context.log.emit(Configured(number=bench.number, changes=dict(changes)))

    def budget(self) -> BudgetView:
        """Return the limits and what was used of them."""
        context = self._bench.context
        return BudgetView(budget=context.budget, spend=context.spend(), model=self.model())

    def set_budget(self, **changes: str | float | int | None) -> BudgetView:
        """Change limits; None lifts one.

        Args:
            changes: `device` and `wall` as times (`40s`, `2m`, `+1m` for more than was used), `rounds`,
                `patience`, `roof`, `evaluations`, and `tokens`, `usd`, `requests` of the model.

        Raises:
            ConfigError: No limit is called so, or the value cannot be used.
        """
        values: dict[str, Any] = {}
        for name, value in changes.items():
            if name not in LIMITS:
                raise ConfigError(f"no limit is called {name!r}", remedy=f"limits are {', '.join(LIMITS)}")
            values[LIMITS[name]] = self._value(name, value)
        self._apply(values)
        return self.budget()

    def extend(self, reason: str, given: str, *, lift: bool) -> None:
        """Let a budget that is used up be passed.

        Args:
            reason: Which, as a reason to stop.
            given: The new limit, for example `+2m`; empty: as much again as there was.
            lift: Whether the limit goes altogether.

        Raises:
            ConfigError: The new limit cannot be used.
        """
        config = self._bench.context.config
        names = [name for name in _OF_REASON.get(reason, ()) if getattr(config, LIMITS[name]) is not None]
        if lift:
            self.set_budget(**dict.fromkeys(names))
        elif given:
            self.set_budget(**{names[0]: given})
        else:
            before = {name: getattr(config, LIMITS[name]) for name in names}
            first = self._bench.state.started
            own = first.config if first is not None else {}
            more = {name: value + (own.get(LIMITS[name]) or value) for name, value in before.items()}
            self._apply({LIMITS[name]: value for name, value in more.items()})

    def _value(self, name: str, value: str | float | int | None) -> Any:
        if isinstance(value, str) and value.strip().lower() in ("none", "no", "off", "unlimited", ""):
            value = None
        if value is None:
            if name in _NEVER_NONE:
                raise ConfigError(f"{name} needs a value", remedy=f"give a number; {name} can be large")
            return None
        text = str(value).strip()
        used = 0.0
        if text.startswith("+"):
            text, used = text[1:], self._used(name)
        if name in _DURATIONS:
            return used + parse_duration(text)
        try:
            number = float(text.rstrip("%$"))
        except ValueError:
            raise ConfigError(
                f"{name} {str(value)!r} is no number", remedy="give a number, or none"
            ) from None
        number = number / 100 if text.endswith("%") else number
        if name in ("roof", "usd"):
            return used + number
        if not number.is_integer():
            raise ConfigError(
                f"{name} {str(value)!r} is no whole number", remedy="give a whole number, or none"
            )
        return int(used + number)

    def _used(self, name: str) -> float:
        """Return what was used of a limit."""
        spend, model = self._bench.context.spend(), self.model()
        used = {
            "device": spend.device_seconds,
            "wall": spend.seconds,
            "evaluations": float(spend.evaluations),
            "rounds": float(self._bench.state.rounds),
            "tokens": float(model.tokens),
            "usd": model.usd or 0.0,
            "requests": float(model.requests),
        }
        return used.get(name, 0.0)

    def _apply(self, changes: dict[str, Any]) -> None:
        """Set, keep and put to use; nothing of it where one value cannot be used."""
        context = self._bench.context
        config = _checked(context.config, changes)
        if config.model != context.config.model:
            open_budgeted(config.model, _limits(config), folder=None)  # what cannot be opened changes nothing
        if any(getattr(config, name) != getattr(context.config, name) for name in _ASKING):
            self._bench.end_round("the model was changed, or how it is asked")
        if any(name.startswith("model") for name in changes):
            model = open_budgeted(config.model, _limits(config), folder=context.run.root)
            context.model = model
            if model is not None and not context.prompts.roles():
                context.prompts = PromptLibrary.load()
        context.config, context.budget = config, budget_of(config)
        context.log.emit(Configured(number=self._bench.number, changes=changes))


def _used_before(context: RoundContext) -> Usage:
    """Return what models took of a run that has none now."""
    rows = usage_by_role(context.log.events)
    if not rows:
        return NO_USAGE
    whole = rows[-1]
    return Usage(
        input_tokens=whole.input_tokens,
        output_tokens=whole.output_tokens,
        requests=whole.asked,
        cost_usd=whole.cost_usd,
    )


def _checked(config: RunConfig, changes: dict[str, Any]) -> RunConfig:
    try:
        return RunConfig.model_validate({**config.model_dump(), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        known = {setting: name for name, setting in LIMITS.items()}
        name = known.get(str(first["loc"][0]), str(first["loc"][0]))
        raise ConfigError(
            f"{name}: {first['msg']}",
            remedy="give another value" + ("; none lifts the limit" if name in known.values() else ""),
        ) from None


def _limits(config: RunConfig) -> ModelLimits:
    return ModelLimits(tokens=config.model_tokens, usd=config.model_usd, requests=config.model_requests)
