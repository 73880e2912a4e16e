"""Turn the order of elements through a tile in shared memory."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("turn_tiles")
