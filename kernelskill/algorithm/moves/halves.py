"""Two points of a thread in each word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.moves.plan import Option, Plan, checked, first_that_fits, pair


class PackIntegers:
    """Compute two results of bytes in the halves of each word, for threads whose windows lie inside."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        rows = ("8x8", "4x16", "8x16", "4x8", "8x4", "2x16")
        points = rows if len(plan.algorithm.axes) > 1 else ("1x16", "1x8", "1x4")
        return first_that_fits(self, plan, (Option("points", points, "points of a thread: rows x columns"),))

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        schedule = plan.schedule
        if not schedule.interior:
            raise IllegalMove("no points were told apart from those at a border: inner_points comes first")
        rows, columns = pair(values["points"])
        axes = schedule.axes
        if len(axes) < 2 and rows > 1:
            raise IllegalMove("there is only one axis")
        shapes = (*axes[:-1], replace(axes[-1], points=columns, vector=columns))
        if len(axes) > 1:
            shapes = (*axes[:-2], replace(axes[-2], points=rows, vector=rows), shapes[-1])
        return checked(Plan(plan.algorithm, replace(schedule, axes=shapes, halves=True)))
