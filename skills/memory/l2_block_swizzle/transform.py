"""Order the blocks for reuse in L2."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("walk_in_bands")
