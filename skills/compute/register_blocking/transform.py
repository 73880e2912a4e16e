"""Let each thread compute a block of points."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("block_points")
