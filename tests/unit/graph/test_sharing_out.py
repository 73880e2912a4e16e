"""How many points each family of a round may build."""

from collections.abc import Callable
from typing import Any

from kernelskill.graph.searching import shared_out
from kernelskill.schema.proposal import Choice, Proposal
from tests.records import proposal, step


def family(name: str, values: int) -> Proposal:
    choices = (Choice(name="factor", values=tuple(str(n) for n in range(values)), steps=(0,)),)
    made = proposal(f"// {name}\n", steps=[step("compute/unroll", factor="0")])
    return made.model_copy(update={"choices": choices})


def shared(context: Any, left: int, *sizes: int) -> list[int]:
    families = [family(f"{place}", values) for place, values in enumerate(sizes)]
    return [limit for _, limit in shared_out(context, left, families)]


def test_the_best_family_gets_what_the_others_leave_where_forecasts_lead(shop: Callable[..., Any]) -> None:
    context = shop(budget_s=1000.0, forecasts=4).context()
    assert shared(context, 12, 40) == [8]
    assert shared(context, 12, 40, 40) == [7, 5]
    assert shared(context, 12, 40, 40, 40) == [5, 5, 2]
    assert shared(context, 12, 6, 3) == [6, 3]
    assert shared(context, 11, 40, 40, 40) == [6, 5]


def test_without_forecasts_every_family_gets_the_same(shop: Callable[..., Any]) -> None:
    context = shop(forecasts=4).context()
    assert shared(context, 20, 40, 40) == [6, 6]
    assert shared(context, 7, 40, 40) == [6]
    assert shared(context, 20, 1, 40) == [6]
