"""A move on results that are too few to fill a GPU: blocks share each of them, several kernels in a row."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.algorithm.fused_sums import with_singles_first
from kernelskill.algorithm.lowering.kernel import LaunchFacts
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.moves.plan import Option, Plan, first_that_fits, number, pair
from kernelskill.algorithm.running import without_running
from kernelskill.algorithm.stages.emission import emit_stages
from kernelskill.algorithm.stages.groups import groups_of
from kernelskill.algorithm.stages.points import PointShape
from kernelskill.algorithm.stages.sharing import Width
from kernelskill.algorithm.stages.splitting import split_over_blocks


class SplitOverBlocks:
    """Let several blocks share each long reduction; later kernels combine the parts and use the results."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        by_columns = any(group.by_columns for group in groups_of(without_running(plan.algorithm)))
        # Where results lie side by side, so do the elements that use them: rows are as short as results are few.
        shapes = "16x16 32x8 1x256" if by_columns else "1x256 8x32 16x16"
        offered: tuple[Option, ...] = (
            Option("blocks", ("2048", "1024", "4096"), "blocks that are aimed at for all results together"),
            Option("threads", ("256", "512"), "threads of a block that shares a result"),
            Option(
                "shape", tuple(shapes.split()), "threads where elements stand by themselves: rows x columns"
            ),
            Option("vector", ("4", "8"), "neighbouring elements of a thread there"),
        )
        if by_columns:
            offered += (Option("columns", ("32", "8"), "neighbouring results of a block"),)
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        schedule = plan.schedule
        if schedule.staged or schedule.lanes > 1 or schedule.tensor or plan.stages is not None:
            raise IllegalMove("points are scheduled otherwise already")
        threads = number(values["threads"])
        if threads & (threads - 1) or not 64 <= threads <= 1024:
            raise IllegalMove("the number of threads must be a power of two, from 64 to 1024")
        shape = PointShape(*pair(values["shape"]), number(values["vector"]))
        algorithm = with_singles_first(without_running(plan.algorithm))
        columns = number(values.get("columns", "32"))
        if columns & (columns - 1) or columns > 32:
            raise IllegalMove("the number of columns must be a power of two, up to 32")
        width = Width(threads, columns, number(values["blocks"]))
        stages = split_over_blocks(algorithm, width, shape)
        names = {parameter.name: parameter.name for parameter in algorithm.parameters}
        emit_stages(stages, LaunchFacts(names))
        return Plan(algorithm, schedule, stages)
