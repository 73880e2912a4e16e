"""Move neighbouring elements of tiles together."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("wide_access")
