"""Policy: orders a slate of proposals, with uncertainty, and chooses what to evaluate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from kernelskill.experience.preferences import preferences
from kernelskill.policy.features import FEATURE_NAMES, SCHEMA_VERSION, feature_row
from kernelskill.policy.focus import Focus, focus_of
from kernelskill.policy.forecasts import Expected, best_elsewhere, is_far_behind, joined, worthwhile
from kernelskill.policy.model import Array, PreferenceModel, fit
from kernelskill.profiling.potential import Potential
from kernelskill.schema.device import Evidence
from kernelskill.schema.experience import Experience, Preference
from kernelskill.schema.profile import Bottleneck
from kernelskill.schema.proposal import Proposal, RankedProposal

_CHANCE_DRAWS = 200


class ExperienceSource(Protocol):
    """Where outcomes come from; the experience pool is one."""

    def experiences(
        self, *, schema_version: int | None = None, evidence: tuple[Evidence, ...] = (), limit: int = 4000
    ) -> list[Experience]:
        """Return outcomes of a feature schema and of some kinds of evidence."""


class Policy:
    """Ranks slates by Thompson sampling from a preference model.

    Args:
        evidence: What this run's outcomes are. Estimates never move the ranking of measured runs.
        source: Earlier outcomes; None starts from the skills' priors and learns within the run.
    """

    def __init__(self, evidence: Evidence, source: ExperienceSource | None = None) -> None:
        # A candidate that failed has no time and counts wherever it failed: "none" is always read.
        self._kinds: tuple[Evidence, ...] = (
            ("none", "measured") if evidence == "measured" else ("none", "measured", "estimated")
        )
        self._source = source
        self._own: dict[str, Experience] = {}
        self._stated: list[Preference] = []
        self._model = self._fit()

    @property
    def name(self) -> str:
        """Name and state, for example `preference-1 (240 pairs)`."""
        return f"preference-{SCHEMA_VERSION} ({self._model.pairs} pairs)"

    @property
    def model(self) -> PreferenceModel:
        """The current weights."""
        return self._model

    def rank(
        self,
        proposals: Sequence[Proposal],
        bottlenecks: Mapping[str, Sequence[Bottleneck]],
        contexts: Mapping[str, Mapping[str, float]],
        *,
        take: int,
        rng: np.random.Generator,
        potentials: Mapping[str, Mapping[str, Potential]] | None = None,
        shifts: Mapping[str, float] | None = None,
        forecasts: Mapping[str, float] | None = None,
        paid: Collection[str] = (),
        least_paid: int = 0,
    ) -> list[RankedProposal]:
        """Order proposals, the most promising draw first, and mark those to evaluate.

        Args:
            proposals: The slate.
            bottlenecks: By digest of the base that a proposal starts from.
            contexts: Context features by digest of the base.
            take: How many to choose at most.
            rng: Makes the draws; equal state, equal order.
            potentials: By digest of the base: what can be won in each of its kernels. Where there are
                several, a change is worth what it wins for all of them together.
            shifts: Id of a proposal to what the user's wishes add to its draws, in ln(speedup). They move the
                order only; what is expected of a proposal stays as it is.
            forecasts: Id of a proposal to the ln(speedup) that an estimate gives it. With any, proposals that
                can hardly be the best are not chosen, but for the best of other kernels, which get a third of the
                places at most.
            paid: Ids of proposals that cost something already. Where fewer than `least_paid` of them are among the
                best `take`, the next best are chosen too, but for those that a forecast puts far behind.
            least_paid: How many of them.
        """
        if not proposals:
            return []
        rows = np.array([feature_row(p, bottlenecks[p.base], contexts[p.base]) for p in proposals])
        focus = [focus_of(p, bottlenecks[p.base], (potentials or {}).get(p.base, {})) for p in proposals]
        expected = self._expected(proposals, rows, focus, rng)
        forecast = [(forecasts or {}).get(proposal.id) for proposal in proposals]
        kept = [index for index, proposal in enumerate(proposals) if proposal.id in paid]
        wishes = np.array([(shifts or {}).get(proposal.id, 0.0) for proposal in proposals])
        open_to: Collection[int] = range(len(proposals))
        apart: list[int] = []
        if forecasts:
            expected = joined(expected, forecast)
            open_to = worthwhile(expected, wishes)
            apart = best_elsewhere(expected, [p.kernels for p in proposals])[: take // 3]
            # What cannot be traced, since it does not build say, is mended only if it is tried.
            kept = [index for index in kept if forecast[index] is None or not is_far_behind(expected, index)]
        draws = expected.draws + wishes
        names = _names(proposals)
        spread = [_with_apart(_spread(draw, names, take, open_to), apart, take) for draw in draws]
        picks = [_with_paid(d, chosen, kept, least_paid) for d, chosen in zip(draws, spread, strict=True)]
        ranked = _ranked(proposals, rows, expected, draws[0], picks, forecast)
        return sorted(ranked, key=lambda r: (not r.chosen, -r.sampled, r.proposal))

    def update(self, outcomes: Sequence[Experience]) -> None:
        """Learn from outcomes of this run and fit again."""
        self._own.update({outcome.id: outcome for outcome in outcomes})
        self._model = self._fit()

    def state(self, preferences: Sequence[Preference]) -> None:
        """Take what the user said of pairs of proposals, in place of what was said before, and fit again."""
        self._stated = list(preferences)
        self._model = self._fit()

    def _expected(
        self, proposals: Sequence[Proposal], rows: Array, focus: Sequence[Focus], rng: np.random.Generator
    ) -> Expected:
        """Return draws, means and deviations of what proposals win for the whole launcher."""
        means, deviations = self._model.utilities(rows), self._model.deviations(rows)
        # The skill's own spread covers what no feature explains, such as how far its gain can reach.
        spread = np.array([p.predicted.deviation for p in proposals]) * rows[:, 1]
        draws = self._draws(rows, spread, rng)
        draws = np.stack([each.whole(draws[:, index]) for index, each in enumerate(focus)], axis=1)
        means = np.array([float(each.whole(means[index : index + 1])[0]) for index, each in enumerate(focus)])
        shares = np.array([each.share for each in focus])
        return Expected(draws, means, np.hypot(deviations, spread) * shares)

    def _draws(self, rows: Array, spread: Array, rng: np.random.Generator) -> Array:
        """Return draws of shape (1 + _CHANCE_DRAWS, proposals); the first decides."""
        draws = self._model.sample(rows, rng, _CHANCE_DRAWS + 1)
        return draws + spread * rng.standard_normal(draws.shape)

    def _fit(self) -> PreferenceModel:
        known: dict[str, Experience] = {}
        if self._source is not None:
            for experience in self._source.experiences(schema_version=SCHEMA_VERSION, evidence=self._kinds):
                known[experience.id] = experience
        known.update({key: e for key, e in self._own.items() if e.evidence in self._kinds})
        return fit([*preferences(known.values()), *self._stated])


def _ranked(
    proposals: Sequence[Proposal],
    rows: Array,
    expected: Expected,
    draw: Array,
    picks: Sequence[Sequence[int]],
    forecast: Sequence[float | None],
) -> list[RankedProposal]:
    """Return the proposals with what is known of each; the first of `picks` decides, the others give the chances."""
    chances = Counter(index for pick in picks[1:] for index in pick)
    chosen = set(picks[0])
    return [
        RankedProposal(
            proposal=proposal.id,
            steps=proposal.steps,
            specialist=proposal.specialist,
            features=tuple(float(value) for value in rows[index]),
            mean=float(expected.means[index]),
            deviation=float(expected.deviations[index]),
            sampled=float(draw[index]),
            chance=chances[index] / _CHANCE_DRAWS,
            chosen=index in chosen,
            origin=proposal.origin,
            forecast=forecast[index],
        )
        for index, proposal in enumerate(proposals)
    ]


def choose(
    values: Array, proposals: Sequence[Proposal], take: int, open_to: Collection[int] | None = None
) -> list[int]:
    """Return the indices of the best draws, spread over skills; of those in `open_to`, where it is given.

    Two thirds of the places go to different skills, and no skill gets more than two while others are
    left: values of one skill's parameters rise and fall together, so that a slate full of them would
    learn one thing only.
    """
    return _spread(values, _names(proposals), take, open_to)


def _names(proposals: Sequence[Proposal]) -> list[tuple[str, str]]:
    """Return id and kind of each; made once for many draws, since an id is a digest of whole sources."""
    return [(proposal.id, _kind(proposal)) for proposal in proposals]


def _spread(
    values: Array, names: Sequence[tuple[str, str]], take: int, open_to: Collection[int] | None
) -> list[int]:
    candidates = range(len(names)) if open_to is None else open_to
    order = sorted(candidates, key=lambda i: (-values[i], names[i][0]))
    used: Counter[str] = Counter()
    chosen: list[int] = []
    for places, most in ((-(-2 * take // 3), 1), (take, 2), (take, len(names))):
        for index in order:
            skill = names[index][1]
            if len(chosen) < places and index not in chosen and used[skill] < most:
                chosen.append(index)
                used[skill] += 1
    return sorted(chosen, key=order.index)


def _with_apart(chosen: list[int], apart: Sequence[int], take: int) -> list[int]:
    """Return `apart`, and what was chosen for the places that are left."""
    return [*apart, *(index for index in chosen if index not in apart)][:take]


def _with_paid(values: Array, chosen: list[int], paid: Sequence[int], least: int) -> list[int]:
    """Return what was chosen and the best of `paid`, until so many of them are among it."""
    missing = max(0, least - sum(index in paid for index in chosen))
    others = sorted((index for index in paid if index not in chosen), key=lambda index: -values[index])
    return [*chosen, *others[:missing]]


def _kind(proposal: Proposal) -> str:
    """Return what a proposal counts as where places are spread: its skill, or the chains that begin with one."""
    skills = list(dict.fromkeys(step.skill for step in proposal.steps))
    if len(skills) > 1:
        return f"{skills[0]} and others"
    return skills[0] if skills else proposal.specialist


__all__ = ["FEATURE_NAMES", "SCHEMA_VERSION", "ExperienceSource", "Policy", "choose"]
