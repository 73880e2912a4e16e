"""Let several blocks share each long reduction, with kernels for the parts, their combination and the rest."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("split_over_blocks")
