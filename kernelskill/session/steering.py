"""SteeringDesk: the user's wishes as rules of the run, and what was understood of them."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.agents.steering import Steering, describe
from kernelskill.errors import UnknownNameError, UsageError
from kernelskill.graph.context import MEMBERS
from kernelskill.graph.learning import stated_preferences
from kernelskill.registry import near_names
from kernelskill.schema import chat_event
from kernelskill.schema.event import Ranked
from kernelskill.schema.steering import Action, Rule
from kernelskill.session.clauses import cleaned
from kernelskill.session.records import Preferred, RuleView, ShownProposal, Steered, SteeringNames, Unknown
from kernelskill.session.shown import find_proposal, shown_in
from kernelskill.session.vocabulary import Topic, Vocabulary, vocabulary_of
from kernelskill.session.wording import Wish, read_wish
from kernelskill.session.workbench import Workbench
from kernelskill.source.unit import SourceUnit

_LONGEST = 4000


class SteeringDesk:
    """Takes wishes, and keeps them with the run."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of this run."""
        return vocabulary_of(self._bench.context.library.all(), self._kernels())

    def say(self, text: str) -> Steered:
        """Take a wish in plain words: what is understood holds from now on, and the rest is named.

        Raises:
            UsageError: There is no text, or far too much.
        """
        text = cleaned(text)
        said = " ".join(text.split())
        if not said:
            raise UsageError("nothing was said", remedy='say for example "leave shared memory alone"')
        if len(said) > _LONGEST:
            raise UsageError(
                f"the wish has {len(said)} characters, more than {_LONGEST}", remedy="say it in fewer words"
            )
        vocabulary = self.vocabulary
        reading = read_wish(text, vocabulary)
        noted = bool(reading.unknown) and self._bench.context.model is not None
        return self._take(said, reading.wishes, reading.unknown, vocabulary, noted=noted)

    def ban(self, name: str) -> Steered:
        """Leave a skill, a specialist, a direction or a kernel alone.

        Raises:
            UnknownNameError: Nothing is called so.
        """
        return self._named("ban", name)

    def allow(self, name: str) -> Steered:
        """Permit again what was banned.

        Raises:
            UnknownNameError: Nothing is called so.
        """
        return self._named("allow", name)

    def rules(self) -> tuple[RuleView, ...]:
        """Return what holds now, the oldest first."""
        return tuple(_view(rule) for rule in self._bench.state.rules)

    def forget(self, number: int) -> RuleView:
        """Take one rule back.

        Raises:
            UnknownNameError: No rule has that number.
        """
        rules = {rule.number: rule for rule in self._bench.state.rules}
        if number not in rules:
            known = ", ".join(map(str, rules)) or "none"
            raise UnknownNameError(f"no rule has the number {number}", remedy=f"rules that hold: {known}")
        self._forget((number,))
        return _view(rules[number])

    def proposals(self, number: int | None = None) -> tuple[ShownProposal, ...]:
        """Return the slate of a round, the best first.

        Args:
            number: The round; the last one that has a slate by default.

        Raises:
            UsageError: There is none.
        """
        return tuple(named.shown for named in shown_in(self._bench.context, number))

    def prefer(self, better: str, worse: str) -> Preferred:
        """Say that one shown proposal is better than another; the policy learns from it.

        Args:
            better: Name of a proposal, for example `p2.1`.
            worse: Name of another one of the same round.

        Raises:
            UnknownNameError: No proposal is called so.
            UsageError: They are of different rounds, or the same.
        """
        context = self._bench.context
        first, second = find_proposal(context, better), find_proposal(context, worse)
        if first.slate != second.slate:
            raise UsageError(
                f"{first.shown.name} and {second.shown.name} were not offered together",
                remedy="compare proposals of one round",
            )
        if first.identity == second.identity:
            raise UsageError(f"{first.shown.name} cannot be better than itself", remedy="name two proposals")
        bench = self._bench
        bench.end_round("the user stated a preference")
        bench.context.log.emit(
            chat_event.Preferred(
                number=bench.number, slate=first.slate, better=first.identity, worse=second.identity
            )
        )
        bench.context.policy.state(stated_preferences(bench.context))
        return Preferred(better=first.shown, worse=second.shown)

    def find(self, name: str) -> ShownProposal:
        """Return a shown proposal by name.

        Raises:
            UnknownNameError: None is called so.
        """
        return find_proposal(self._bench.context, name).shown

    def preferences(self) -> tuple[Preferred, ...]:
        """Return every stated preference, the oldest first."""
        events = [e for e in self._bench.context.log.events if isinstance(e, chat_event.Preferred)]
        found = []
        for event in events:
            ranked = next(
                e for e in self._bench.context.log.events if isinstance(e, Ranked) and e.slate == event.slate
            )
            by_id = {named.identity: named.shown for named in shown_in(self._bench.context, ranked.round)}
            found.append(Preferred(better=by_id[event.better], worse=by_id[event.worse]))
        return tuple(found)

    def names(self) -> SteeringNames:
        """Return what a wish may speak of."""
        library, vocabulary = self._bench.context.library, self.vocabulary
        topics = vocabulary.topics
        return SteeringNames(
            skills=tuple(skill.id for skill in library.all()),
            specialists=library.specialists(),
            kernels=self._kernels(),
            directions=tuple(topic.name for topic in topics if not topic.specialists),
            parameters=tuple(sorted({name for topic in topics for name in topic.parameters})),
        )

    def _named(self, action: Action, name: str) -> Steered:
        said = " ".join(cleaned(name).split())
        vocabulary = self.vocabulary
        said_of = [said, *(said.removeprefix(word) for word in ("kernel ", "the kernel ", "the "))]
        topic = next((topic for name in said_of if (topic := vocabulary.topic(name))), None)
        if topic is None:
            near = near_names(said, vocabulary.spellings())
            remedy = (
                f"did you mean {' or '.join(near)}?"
                if near
                else "name a skill, a specialist, a kernel or a direction"
            )
            raise UnknownNameError(f"nothing that can be steered is called {name!r}", remedy=remedy)
        return self._take(f"{action} {said}", (Wish(action, (topic,), topic.kernels),), (), vocabulary)

    def _take(
        self,
        text: str,
        wishes: Sequence[Wish],
        unknown: Sequence[str],
        vocabulary: Vocabulary,
        *,
        noted: bool = False,
    ) -> Steered:
        state = self._bench.state
        rules = [rule for wish in wishes for rule in _rules(wish, text)]
        withdrawn, rules, notes = self._settled(rules)
        if noted:
            rules.append(Rule(number=0, action="note", topic="a note", text=text))
        rules = [rule.model_copy(update={"number": state.last_rule + 1 + i}) for i, rule in enumerate(rules)]
        lifted = tuple(_view(rule).shown for rule in state.rules if rule.number in withdrawn)
        if rules or withdrawn:
            self._bench.end_round("the user steered")
        if withdrawn:
            self._forget(withdrawn)
        if rules:
            bench = self._bench
            bench.context.log.emit(
                chat_event.Steered(number=bench.number, text=text, rules=tuple(rules), unknown=tuple(unknown))
            )
        return Steered(
            text=text,
            rules=tuple(_view(rule) for rule in rules),
            unknown=tuple(Unknown(text=part, near=_near(part, vocabulary)) for part in unknown),
            noted=noted,
            notes=(*notes, *self._consequences(rules)),
            withdrawn=withdrawn,
            lifted=lifted,
        )

    def _settled(self, rules: list[Rule]) -> tuple[tuple[int, ...], list[Rule], list[str]]:
        """Return the rules that new ones withdraw, those of the new ones that are needed, and notes."""
        withdrawn: list[int] = []
        kept: list[Rule] = []
        notes: list[str] = []
        for rule in rules:
            if rule.action in ("only", "prefer", "later") and not (rule.skills or rule.kernels):
                notes.append(f"no skill of this run is about {rule.topic}, so that changes nothing")
                continue
            if rule.action == "only":
                # Whoever wants a thing alone does not want it banned any more.
                withdrawn += [
                    r.number for r in self._bench.state.rules if r.action == "ban" and _covers(r, rule)
                ]
            if rule.action != "allow":
                kept.append(rule)
                continue
            left = [r for r in self._bench.state.rules if r.number not in withdrawn]
            covered = [r.number for r in left if r.action == "ban" and _covers(rule, r)]
            withdrawn += covered
            rest = Steering(tuple(r for r in left if r.number not in covered))
            if _is_declined(rule, rest):
                kept.append(rule)
            elif not covered:
                notes.append(f"{rule.topic} was not banned")
        return tuple(withdrawn), kept, notes

    def _consequences(self, rules: Sequence[Rule]) -> list[str]:
        """Return what the user should know of new rules: what they leave, and what stands already."""
        context, state = self._bench.context, self._bench.state
        steering = context.steering
        notes = []
        mechanical = [skill.id for skill in context.library.all() if skill.mechanical]
        if rules and mechanical and all(steering.declines(skill) for skill in mechanical):
            notes.append("nothing is left that may be tried; allow something, or take a rule back")
        for rule in rules:
            if rule.action in ("prefer", "larger", "smaller") and rule.skills:
                reasons = [steering.declines(skill) for skill in rule.skills]
                if all(reasons):
                    notes.append(f"{rule.topic} stays banned: {reasons[0]}")
        if state.best and context.run.has(MEMBERS, state.best):
            steps = context.member(state.best).lineage.steps
            new = Steering(tuple(rule for rule in rules if rule.action in ("ban", "only")))
            against = [step.label for step in steps if new.declines_steps([step])]
            if against:
                notes.append(f"the head holds {', '.join(against)} already; undo goes back behind a change")
        return notes

    def _forget(self, numbers: tuple[int, ...]) -> None:
        bench = self._bench
        bench.end_round("the user steered")
        bench.context.log.emit(chat_event.Forgot(number=bench.number, rules=numbers))

    def _kernels(self) -> tuple[str, ...]:
        """Return the kernels of the original and of the head."""
        context, state = self._bench.context, self._bench.state
        candidates = [self._bench.assembly.original]
        if state.best and context.run.has(MEMBERS, state.best):
            candidates.append(context.member(state.best).candidate)
        units = [SourceUnit.parse(file.text, file.path) for c in candidates for file in c.files]
        return tuple(dict.fromkeys(kernel.name for unit in units for kernel in unit.kernels))


def _rules(wish: Wish, text: str) -> list[Rule]:
    """Return the rules of one wish; several topics are one rule, except where each has parameters of its own."""
    by_parameter = wish.action in ("at_most", "at_least", "exactly", "larger", "smaller")
    groups = [(topic,) for topic in wish.topics] if by_parameter else [wish.topics]
    found = []
    for group in groups:
        named = {kernel for topic in group for kernel in topic.kernels}
        kernels = tuple(dict.fromkeys((*(k for t in group for k in t.kernels), *wish.kernels)))
        found.append(
            Rule(
                number=0,
                action=wish.action,
                topic=" and ".join(dict.fromkeys(topic.name for topic in group)),
                skills=_skills(group, by_parameter=by_parameter),
                specialists=tuple(dict.fromkeys(s for topic in group for s in topic.specialists)),
                kernels=kernels,
                parameters=tuple(dict.fromkeys(p for t in group for p in t.parameters))
                if by_parameter
                else (),
                value=wish.value,
                measure=group[0].measure if by_parameter else "side",
                words=tuple(dict.fromkeys(w for topic in group for w in topic.source)) if not named else (),
                text=text,
            )
        )
    return found


def _skills(group: Sequence[Topic], *, by_parameter: bool) -> tuple[str, ...]:
    """Return the ids of a group; the parameters of a topic count wherever they occur, unless it was narrowed."""
    if by_parameter:
        return () if any(topic.words and not topic.own for topic in group) else group[0].skills
    return tuple(dict.fromkeys(skill for topic in group for skill in topic.skills))


def _covers(wide: Rule, narrow: Rule) -> bool:
    """Return whether one rule speaks of everything that another speaks of."""
    if wide.kernels or narrow.kernels:
        same_place = bool(narrow.kernels) and set(narrow.kernels) <= set(wide.kernels)
        return same_place and (not wide.skills or set(narrow.skills) <= set(wide.skills))
    return bool(narrow.skills) and set(narrow.skills) <= set(wide.skills)


def _is_declined(rule: Rule, steering: Steering) -> bool:
    """Return whether something that a rule allows is declined by others."""
    if not rule.skills:
        return any(steering.declines("", kernel) for kernel in rule.kernels)
    places = rule.kernels or ("",)
    return any(steering.declines(skill, kernel) for skill in rule.skills for kernel in places)


def _view(rule: Rule) -> RuleView:
    return RuleView(
        number=rule.number,
        strength=rule.strength,
        shown=f"{rule.strength}: {describe(rule)}",
        text=rule.text,
        skills=rule.skills,
        kernels=rule.kernels,
        parameters=rule.parameters,
    )


def _near(text: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return words that are understood and look like a part of a text."""
    words = text.lower().split()
    spellings = vocabulary.spellings()
    found: list[str] = []
    for length in (3, 2, 1):
        for begin in range(len(words) - length + 1):
            part = " ".join(words[begin : begin + length])
            if len(part) > 3 and vocabulary.topic(part) is None:
                found += near_names(part, spellings)[:1]
    return tuple(dict.fromkeys(found))[:3]
