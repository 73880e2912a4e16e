"""A move on loops that add constants by cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.moves.plan import Option, Plan, accumulations, checked
from kernelskill.algorithm.tallies import with_tallies


class TallyCases:
    """Let steps that add constants by cases note the case only, and count the cases of many steps at once."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        self.apply(plan, {})
        return ()

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        schedule = plan.schedule
        if (
            plan.stages is not None
            or schedule.staged
            or schedule.lanes > 1
            or schedule.interior
            or schedule.loops
        ):
            raise IllegalMove("points are scheduled otherwise already")
        algorithm = with_tallies(plan.algorithm, accumulations(plan.algorithm))
        return checked(replace(plan, algorithm=algorithm))
