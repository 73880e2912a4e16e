"""Stage overlapping windows in shared memory."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("halo_tiles")
