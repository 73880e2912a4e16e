"""Stage tiles of shared operands in shared memory."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("share_tiles")
