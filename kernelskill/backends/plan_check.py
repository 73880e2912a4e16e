"""Decide whether a plan may be carried out with a build. A plan is outside input, wherever it comes from."""

from __future__ import annotations

from kernelskill.errors import HarnessError
from kernelskill.schema.build import Build
from kernelskill.schema.launch_plan import LaunchPlan


class PlanRefused(HarnessError):
    """A plan that may not be carried out."""


def check_plan(plan: LaunchPlan, build: Build) -> None:
    """Return if the plan may be carried out."""
    if plan.device_code != build.device_code:
        raise PlanRefused("the plan belongs to another build")
