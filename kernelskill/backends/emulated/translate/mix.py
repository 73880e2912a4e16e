"""What the instructions of a basic block are, for the time model."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.backends.emulated.translate.opcode import Op


@dataclass(slots=True)
class BasicBlock:
    """One basic block: its instructions in order and the access sites among them."""

    kernel: str
    ops: list[Op] = field(default_factory=list)
    sites: list[int] = field(default_factory=list)

    def add(self, op: Op) -> None:
        """Append an instruction."""
        self.ops.append(op)


def block_figures(block: BasicBlock) -> dict[str, object]:
    """Return the instruction mix of a basic block as JSON values."""
    return {"kernel": block.kernel, "sites": block.sites}
