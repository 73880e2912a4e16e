"""Compute several points a thread."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("coarsen_points")
