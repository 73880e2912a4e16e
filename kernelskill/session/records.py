"""What a session answers: records for whoever shows them."""

from __future__ import annotations

from typing import Literal

from kernelskill.agents.profiler import Diagnosis
from kernelskill.llm.budget import ModelLimits
from kernelskill.schema.base import Record
from kernelskill.schema.device import Evidence
from kernelskill.schema.run import Budget, Spend
from kernelskill.schema.steering import Strength


class TreeNode(Record):
    """One candidate of a run: the original, a change that was judged, or one of the user's own."""

    number: int
    """Its name in the run; the original is 0."""
    digest: str
    parent: int | None
    label: str
    origin: Literal["original", "mechanical", "model", "combined", "user"]
    round: int
    """0 outside the rounds."""
    verdict: str
    """Empty for the original."""
    reason: str
    speedup: float | None
    """Against the original; None where nothing was timed."""
    gain: float | None
    """Over its base."""
    estimated: bool
    is_head: bool
    is_best: bool
    """Whether it is the fastest right one of the whole run."""
    on_line: bool
    """Whether it is the head or on the way there."""
    kept: bool
    """Whether it is right and can become the head."""
    depth: int


class CaseTime(Record):
    """One timed case of a candidate."""

    label: str
    original_ms: float
    ms: float
    speedup: float
    roof_fraction: float | None
    evidence: Evidence


class SessionStatus(Record):
    """Where a session stands."""

    task: str
    device: str
    gpu: str
    clock_mhz: float | None
    evidence: Evidence
    estimated: bool
    original_ms: float | None
    """Of the case that takes longest, as `best_ms`; None before the baseline."""
    best_ms: float | None
    speedup: float
    roof_fraction: float | None
    round: int
    """Finished rounds."""
    open_round: int | None
    head: int
    spend: Spend
    budget: Budget
    model: str
    model_tokens: int
    model_usd: float | None
    rules: int
    confirmed: bool
    folder: str


class BaselineView(Record):
    """The original, measured."""

    cases: tuple[CaseTime, ...]
    notes: tuple[str, ...]


class StepResult(Record):
    """What a call that runs rounds did."""

    round: int
    """The last round that it worked on."""
    rounds: int
    """Rounds that it finished."""
    finished: bool
    """Whether it did all that was asked."""
    stopped: str
    """Empty, `interrupted`, `refused` (at a border) or the reason why no further round makes sense."""
    detail: str
    """One sentence."""
    accepted: tuple[TreeNode, ...]
    head: TreeNode
    speedup: float
    estimated: bool


class BestView(Record):
    """The head: what rounds start from and what is exported."""

    node: TreeNode
    cases: tuple[CaseTime, ...]
    changes: tuple[str, ...]
    assumptions: tuple[str, ...]
    exact: bool
    confirmed: bool
    faster: TreeNode | None
    """A right candidate off the present line that was faster."""


class SourceView(Record):
    """A candidate's text."""

    node: TreeNode
    path: str
    text: str
    files: tuple[tuple[str, str], ...]
    """Path and text of every file."""


class DiffView(Record):
    """What sets two candidates apart."""

    first: TreeNode
    second: TreeNode
    text: str
    """Unified; empty where they are equal."""


class Moved(Record):
    """The head went elsewhere."""

    before: TreeNode
    after: TreeNode
    can_undo: bool
    can_redo: bool
    notes: tuple[str, ...] = ()


class Pinned(Record):
    """What became of a text of the user's own."""

    node: TreeNode
    accepted: bool
    """Whether it was found right and permitted."""
    moved: bool
    """Whether it is the head now."""
    status: str
    reason: str
    gain: float | None
    """Over the head that it was compared with."""
    known: bool
    """Whether that text was judged before."""


class RuleView(Record):
    """One rule that holds."""

    number: int
    strength: Strength
    shown: str
    """In our words."""
    text: str
    """In the user's."""
    skills: tuple[str, ...]
    kernels: tuple[str, ...]
    parameters: tuple[str, ...]


class Unknown(Record):
    """A part of what was said that was not understood."""

    text: str
    near: tuple[str, ...] = ()
    """Words that are understood and look alike."""


class Steered(Record):
    """What was understood of a wish."""

    text: str
    rules: tuple[RuleView, ...]
    unknown: tuple[Unknown, ...]
    noted: bool
    """Whether a model is told the words as they are."""
    notes: tuple[str, ...] = ()
    withdrawn: tuple[int, ...] = ()
    """Rules that no longer hold."""
    lifted: tuple[str, ...] = ()
    """The same in words."""


class SteeringNames(Record):
    """What a wish may speak of."""

    skills: tuple[str, ...]
    specialists: tuple[str, ...]
    kernels: tuple[str, ...]
    directions: tuple[str, ...]
    parameters: tuple[str, ...]


class ShownProposal(Record):
    """A proposal as it stood in the slate of a round."""

    name: str
    """For example `p2.1`: round 2, the first."""
    label: str
    specialist: str
    mean: float
    """Expected speedup over its base."""
    chosen: bool
    outcome: str
    """What became of it, in words; empty where it was not tried."""
    number: int | None
    """In the tree, where it was judged."""
    skills: tuple[str, ...]


class Preferred(Record):
    """A choice of the user's between two proposals."""

    better: ShownProposal
    worse: ShownProposal


class Explanation(Record):
    """An answer, in lines for people."""

    subject: Literal["run", "change", "limit", "skill", "question"]
    name: str
    lines: tuple[str, ...]
    skills: tuple[str, ...] = ()
    source: Literal["evidence", "model"] = "evidence"
    understood: bool = True


class ProfileView(Record):
    """A candidate's profile."""

    node: TreeNode
    diagnosis: Diagnosis


class SkillRow(Record):
    """A skill as it stands in this run."""

    id: str
    title: str
    specialist: str
    mechanical: bool
    fit: float
    """Confidence of the limits of the head that it removes, 0 to 1."""
    state: Literal["offered", "declined", "banned", "not asked"]
    reason: str
    tried: int
    won: int
    summary: str
    text: str


class ModelView(Record):
    """The model of a run and what it took."""

    spec: str
    tokens: int
    usd: float | None
    """None where no price is known."""
    requests: int
    limits: ModelLimits
    samples: int
    """Answers asked for each specialist and round."""
    repairs: int
    """Times that a change that failed may be mended."""
    plan: bool
    """Whether it is asked first which of the directions to try."""


class BudgetView(Record):
    """The limits of a run and what was used of them."""

    budget: Budget
    spend: Spend
    model: ModelView


class Written(Record):
    """Files that were written."""

    files: tuple[str, ...]
    refused: bool = False
    detail: str = ""
    confirmed: bool = False
    """Whether what was written was measured with fresh seeds."""


class Remeasured(Record):
    """A candidate was timed again."""

    node: TreeNode
    cases: tuple[CaseTime, ...]
    before_ms: float
    """Of the case that takes longest, as `after_ms`."""
    after_ms: float
    speedup: float
    """Against the original, which was timed in the same turns."""
    verdict: str
    reason: str


class Confirmation(Record):
    """The head against the original, with fresh seeds in fresh processes."""

    verdict: str
    reason: str
    speedup: float | None
    cases: tuple[CaseTime, ...]


class Said(Record):
    """What became of free text."""

    kind: Literal["steering", "answer", "note", "nothing"]
    steered: Steered | None = None
    explanation: Explanation | None = None
