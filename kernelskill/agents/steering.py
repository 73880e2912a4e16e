"""Steering: the user's rules, as those who propose changes ask about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from math import prod

from kernelskill.agents.families import Family
from kernelskill.schema.candidate import Candidate, Step
from kernelskill.schema.proposal import Choice, Proposal, Refusal, Skill
from kernelskill.schema.steering import Rule
from kernelskill.skills.parsed_files import parsed
from kernelskill.source.tokens import TokenKind, tokens

PREFERRED = 1.0
"""ln(speedup) by which a preferred change moves in the order, and one that is to come last the other way."""
DIRECTED = 0.3
"""The same of a change one of whose parameters is to be larger or smaller."""
_RANGES = ("at_most", "at_least", "exactly")
_WORDS = {"at_most": "at most", "at_least": "at least", "exactly": ""}
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True)
class Steering:
    """Everything that holds now."""

    rules: tuple[Rule, ...] = ()

    def declines(self, skill: str, kernel: str = "", specialist: str = "") -> str:
        """Return why a skill may not be used, or an empty text; the latest rule that speaks of it decides.

        Args:
            skill: Its id.
            kernel: Where; empty for anywhere at all.
            specialist: Whose idea it is, where it is outside all skills.
        """
        reason = ""
        for rule in self._in_force():
            if not (rule.skills or rule.kernels) or rule.parameters:
                continue
            about = _speaks_of(rule, skill, kernel, specialist)
            if rule.action == "ban" and about:
                reason = asked_for(rule)
            elif rule.action == "allow" and about:
                reason = ""
            elif rule.action == "only" and not about and not (rule.kernels and not kernel):
                reason = asked_for(rule)
        return reason

    def declines_specialist(self, name: str, skills: Iterable[Skill]) -> bool:
        """Return whether all skills of a specialist are declined."""
        own = [skill.id for skill in skills if skill.specialist == name]
        return bool(own) and all(self.declines(skill) for skill in own)

    def declines_steps(self, steps: Iterable[Step]) -> str:
        """Return why one of the steps may not be taken, or an empty text."""
        for step in steps:
            reason = self.declines(step.skill, step.site.partition("/")[0])
            if reason:
                return reason
        return ""

    def restricted(self, family: Family) -> Family | Refusal:
        """Return a family with the values of its parameters that are asked for, in the order that is."""
        steps, choices = list(family.steps), list(family.choices)
        reason = self.declines_steps(steps)
        if not reason:
            for rule in self._in_force():
                reason = reason or _narrow(rule, steps, choices)
        if reason:
            first = family.steps[0]
            return Refusal(skill=first.skill, kernel=first.site.partition("/")[0], reason=reason)
        return Family(steps=tuple(steps), choices=tuple(choices), reason=family.reason)

    def objection(self, base: Candidate, made: Candidate) -> str:
        """Return why what a change wrote is not what was asked for, or an empty text."""
        rules = [rule for rule in self._in_force() if rule.action in ("ban", "allow", "only")]
        banned: dict[str, Rule] = {}
        for rule in rules:
            for word in rule.words:
                if rule.action == "ban" and not rule.kernels:
                    banned[word] = rule
                elif rule.action == "allow":
                    banned.pop(word, None)
        for word, rule in banned.items():
            if _count(made, word) > _count(base, word):
                return f"it adds {word.strip('*.')}; {asked_for(rule)}"
        return self._touched(base, made, [rule for rule in rules if rule.kernels and not rule.skills])

    def shift(self, proposal: Proposal) -> float:
        """Return by how much a proposal moves in the order, in ln(speedup)."""
        moved = 0.0
        for rule in self._in_force():
            if rule.action in ("prefer", "later") and _any_about(rule, proposal):
                place = int(rule.value) if rule.value.isdigit() else 1
                moved += PREFERRED / place if rule.action == "prefer" else -PREFERRED
            elif rule.action in ("larger", "smaller") and _has_parameter(rule, proposal.steps):
                moved += DIRECTED
        return max(-PREFERRED, min(PREFERRED, moved))

    def lines(self) -> tuple[str, ...]:
        """Return what holds, a line a rule, for whoever writes changes."""
        return tuple(describe(rule) for rule in self._in_force())

    def _in_force(self) -> tuple[Rule, ...]:
        """Return the rules without an `only` that a later one replaces."""
        kept: list[Rule] = []
        for rule in self.rules:
            if rule.action == "only":
                by_kernel = bool(rule.kernels)
                kept = [r for r in kept if r.action != "only" or bool(r.kernels) is not by_kernel]
            kept.append(rule)
        return tuple(kept)

    def _touched(self, base: Candidate, made: Candidate, rules: Sequence[Rule]) -> str:
        if not rules or base.digest == made.digest:
            return ""
        before, after = _kernel_texts(base), _kernel_texts(made)
        for name in (name for name, text in before.items() if after.get(name) != text):
            reason = Steering(tuple(rules)).declines("", name)
            if reason:
                return f"it changes the kernel {name!r}; {reason}"
        return ""


def asked_for(rule: Rule) -> str:
    """Return a rule as the reason of a refusal."""
    return f"you asked for it: {rule.text!r}"


def describe(rule: Rule) -> str:
    """Return a rule in our words."""
    topic = rule.topic
    where = f" in {_named_kernels(rule)}" if rule.kernels and rule.skills else ""
    match rule.action:
        case "ban":
            return (
                f"no change of {topic}"
                if rule.kernels and not rule.skills
                else f"nothing that uses {topic}{where}"
            )
        case "allow":
            return f"{topic} may be used again{where}"
        case "only":
            return f"only {topic}"
        case "prefer":
            return f"{topic} first{where}" if rule.value in ("", "1") else f"{topic} next{where}"
        case "later":
            return f"{topic} last{where}"
        case "larger" | "smaller":
            return f"{rule.action} {topic} first"
        case "note":
            return rule.text
        case _:
            value = rule.value.replace("|", " or ")
            return f"{topic}: {_WORDS[rule.action]} {value}".replace("  ", " ")


def measured(value: str, rule: Rule) -> tuple[int, ...]:
    """Return the numbers of a parameter's value that a range speaks of; none where it is no number."""
    sides = [int(found) for found in _NUMBERS.findall(value)] if not re.search(r"[a-z]{2}", value) else []
    if not sides:
        return ()
    if rule.measure == "product":
        return (prod(sides),)
    return tuple(side for side in sides if side > 1) or (1,)


def _speaks_of(rule: Rule, skill: str, kernel: str, specialist: str) -> bool:
    by_skill = not rule.skills or skill in rule.skills or specialist in rule.specialists
    by_kernel = not rule.kernels or kernel in rule.kernels
    return by_skill and by_kernel


def _any_about(rule: Rule, proposal: Proposal) -> bool:
    kernels = {step.site.partition("/")[0] for step in proposal.steps} or {proposal.kernel}
    if rule.kernels and not kernels & set(rule.kernels):
        return False
    if not rule.skills:
        return True
    if not proposal.steps:
        return proposal.specialist in rule.specialists or any(
            skill.rsplit("/", 1)[-1] in proposal.title for skill in rule.skills
        )
    return any(step.skill in rule.skills for step in proposal.steps)


def _has_parameter(rule: Rule, steps: Sequence[Step]) -> bool:
    return any(name in rule.parameters for step in steps for name in _own(rule, step))


def _own(rule: Rule, step: Step) -> dict[str, str]:
    """Return the parameters of a step that a rule may speak of."""
    by_kernel = not rule.kernels or step.site.partition("/")[0] in rule.kernels
    fits = by_kernel and (not rule.skills or step.skill in rule.skills)
    return {name: value for name, value in step.parameters if name in rule.parameters} if fits else {}


def _narrow(rule: Rule, steps: list[Step], choices: list[Choice]) -> str:
    """Apply a rule about parameters to steps and choices in place; returns why nothing is left, or nothing."""
    if not rule.parameters or rule.action not in (*_RANGES, "larger", "smaller"):
        return ""
    for position, step in enumerate(steps):
        for name, value in _own(rule, step).items():
            index = next((i for i, c in enumerate(choices) if c.name == name and position in c.steps), None)
            values = (value,) if index is None else choices[index].values
            kept = _ordered(rule, [v for v in values if _within(rule, v)])
            if not kept:
                offered = ", ".join(values)
                return f"{name} is offered as {offered} only; {asked_for(rule)}"
            if index is not None:
                choices[index] = choices[index].model_copy(update={"values": kept})
                for other in choices[index].steps:
                    steps[other] = _with_value(steps[other], name, kept[0])
    return ""


def _within(rule: Rule, value: str) -> bool:
    sides, limit = measured(value, rule), measured(rule.value, rule)
    if not sides or not limit or rule.action not in _RANGES:
        return True
    if rule.action == "at_most":
        return max(sides) <= max(limit)
    if rule.action == "at_least":
        return min(sides) >= min(limit)
    return any(value == part or set(sides) == set(measured(part, rule)) for part in rule.value.split("|"))


def _ordered(rule: Rule, values: list[str]) -> tuple[str, ...]:
    if rule.action not in ("larger", "smaller"):
        return tuple(values)
    sign = -1 if rule.action == "larger" else 1
    return tuple(sorted(values, key=lambda value: sign * prod(measured(value, rule) or (0,))))


def _with_value(step: Step, name: str, value: str) -> Step:
    parameters = {**dict(step.parameters), name: value}
    return step.model_copy(update={"parameters": tuple(sorted(parameters.items()))})


def _count(candidate: Candidate, word: str) -> int:
    """Return how often a word stands in a candidate; one with a dot is looked for in strings, as of `asm`."""
    found = 0
    for file in candidate.files:
        names, strings = _words_of(file.text)
        if "." in word:
            found += sum(text.count(word.rstrip("*")) for text in strings)
        else:
            found += sum(times for name, times in names.items() if fnmatchcase(name, word))
    return found


@lru_cache(maxsize=256)
def _words_of(text: str) -> tuple[Counter[str], tuple[str, ...]]:
    """Return how often every name stands in a source, and its strings."""
    names: Counter[str] = Counter()
    strings = []
    for token in tokens(text):
        if token.kind is TokenKind.STRING:
            strings.append(token.text)
        elif token.kind is TokenKind.IDENTIFIER:
            names[token.text] += 1
    return names, tuple(strings)


def _kernel_texts(candidate: Candidate) -> dict[str, str]:
    units = [parsed(file.text, file.path) for file in candidate.files]
    return {kernel.name: unit.text_of(kernel.span) for unit in units for kernel in unit.kernels}


def _named_kernels(rule: Rule) -> str:
    return f"the kernel{'s' if len(rule.kernels) > 1 else ''} {', '.join(rule.kernels)}"
