"""RoundContext: everything a node may use that is not state. It is handed in, never stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.agents.profiler import Diagnosis
from kernelskill.agents.prompts import PromptLibrary
from kernelskill.agents.steering import Steering
from kernelskill.config import RunConfig
from kernelskill.evaluation.base import Evaluator
from kernelskill.events import Clock, EventLog
from kernelskill.experience.pool import ExperiencePool
from kernelskill.llm.base import Model
from kernelskill.policy.rank import Policy
from kernelskill.runs import RunFolder, StopFlag, fold
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.chat_event import Remeasured
from kernelskill.schema.evaluation import CaseShape, Depth, Evaluation, Request
from kernelskill.schema.event import Answered, Asked, Evaluated, Judged, ModelFailed, Searched
from kernelskill.schema.proposal import Proposal
from kernelskill.schema.run import Budget, Member, Spend
from kernelskill.schema.search import ParameterSearch
from kernelskill.schema.task import Task
from kernelskill.search.budget import exhausted
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext

MEMBERS = "members"
PROPOSALS = "proposals"
DIAGNOSES = "diagnoses"
OFFERS = "offers"
SLATES = "slates"
SEARCHES = "searches"

ANSWERS_SHARE = 0.5
"""Of the device time left when a round begins, what is kept for a model's answers until they are there."""


@dataclass
class RoundContext:
    """The tools and records of one run."""

    run: RunFolder
    run_id: str
    log: EventLog
    clock: Clock
    task: Task
    config: RunConfig
    budget: Budget
    evaluator: Evaluator
    library: SkillLibrary
    policy: Policy
    pool: ExperiencePool | None
    seed_pool: str
    model: Model | None = None
    prompts: PromptLibrary = field(default_factory=lambda: PromptLibrary([]))
    noise: dict[int, float] = field(default_factory=dict)
    """Case index to the half-width that the original showed against itself."""
    shapes: dict[int, CaseShape] = field(default_factory=dict)
    """Case index to the sizes of its buffers; the least that a kernel moves where no cost is given."""
    stop: StopFlag = field(default_factory=StopFlag)
    started_s: float = 0.0
    """Clock reading when this attempt began."""
    earlier_s: float = 0.0
    """Wall seconds of earlier attempts."""

    @property
    def skill_context(self) -> SkillContext:
        """What transformations may know."""
        return SkillContext(task=self.task)

    @property
    def answers_by_hand(self) -> bool:
        """Whether answers come from people, who may take longer than a round."""
        return "mailbox:" in self.config.model

    @property
    def steering(self) -> Steering:
        """What the user asked of the run so far."""
        return Steering(fold(self.log.events).rules)

    def member(self, digest: str) -> Member:
        """Return a member of the frontier by the digest of its candidate."""
        return self.run.get(MEMBERS, digest, Member)

    def proposal(self, proposal: str) -> Proposal:
        """Return a proposal by id."""
        return self.run.get(PROPOSALS, proposal, Proposal)

    def diagnosis(self, digest: str) -> Diagnosis:
        """Return the diagnosis of a candidate."""
        return self.run.get(DIAGNOSES, digest, Diagnosis)

    def request(self, proposal: Proposal, *, depth: Depth = "search") -> Request:
        """Return the evaluation that a proposal asks for: right, and timed against its base."""
        return self.request_for(proposal.candidate, self.member(proposal.base).candidate, depth=depth)

    def request_for(self, candidate: Candidate, incumbent: Candidate, *, depth: Depth = "search") -> Request:
        """Return the evaluation of a candidate, timed against an incumbent."""
        return Request(
            task=self.task.content_digest(),
            candidate=candidate,
            stage="time",
            incumbent=incumbent,
            device=self.evaluator.identity,
            depth=depth,
            seed_pool=self.seed_pool,
        )

    def evaluation(self, proposal: Proposal, depth: Depth | None = None) -> Evaluation:
        """Return the evaluation of a proposal; a finished one costs nothing.

        Args:
            proposal: What is asked about.
            depth: By default that of its last evaluation in this run.
        """
        return self.evaluator.evaluate(self.request(proposal, depth=depth or self.depth_of(proposal)))

    def depth_of(self, proposal: Proposal) -> Depth:
        """Return how deep a proposal was looked at last; what was not evaluated yet is evaluated in full."""
        digest = proposal.candidate.digest
        depths = [e.depth for e in self.log.events if isinstance(e, Evaluated) and e.candidate == digest]
        return depths[-1] if depths else "search"

    def tried(self) -> set[str]:
        """Return the digests of all candidates that were evaluated in this run, or ruled out by the hardware."""
        evaluated = {event.candidate for event in self.log.events if isinstance(event, Evaluated)}
        searches = [event.slate for event in self.log.events if isinstance(event, Searched)]
        trials = [t for slate in searches for t in self.run.get(SEARCHES, slate, ParameterSearch).trials]
        return evaluated | {trial.candidate for trial in trials if trial.outcome == "pruned"}

    def judgements(self, number: int) -> list[Judged]:
        """Return the judgements of one round in order."""
        return [e for e in self.log.events if isinstance(e, Judged) and e.round == number]

    def spend(self) -> Spend:
        """Return what the run has used, by its events and the clock."""
        evaluated = [event for event in self.log.events if isinstance(event, Evaluated)]
        again = [event for event in self.log.events if isinstance(event, Remeasured)]
        return Spend(
            seconds=self.earlier_s + self.clock.seconds() - self.started_s,
            device_seconds=sum(e.seconds for e in evaluated) + sum(e.seconds for e in again),
            evaluations=len(evaluated),
            rounds=max((event.round for event in self.log.events), default=0),
        )

    def is_spent(self) -> bool:
        """Return whether a limit of time or evaluations is used up."""
        return exhausted(self.budget, self.spend()) is not None

    def is_spent_for_now(self) -> bool:
        """Return whether a limit is used up, or what a round may use before the answers it waits for are there."""
        return exhausted(self.budget_for_now(), self.spend()) is not None

    def budget_for_now(self) -> Budget:
        """Return the limits, of device time only a part while a question of the round is open."""
        whole = self.budget.device_seconds
        if whole is None or not self._waits_for_answers():
            return self.budget
        number = self._round_under_way()
        earlier = sum(e.seconds for e in self.log.events if isinstance(e, Evaluated) and e.round < number)
        kept = max(0.0, whole - earlier) * ANSWERS_SHARE
        return self.budget.model_copy(update={"device_seconds": whole - kept})

    def _round_under_way(self) -> int:
        return max((event.round for event in self.log.events), default=0)

    def _waits_for_answers(self) -> bool:
        number = self._round_under_way()
        settled = {e.request for e in self.log.events if isinstance(e, (Answered, ModelFailed))}
        asked = (e for e in self.log.events if isinstance(e, Asked) and e.round == number)
        return any(event.request not in settled for event in asked)
