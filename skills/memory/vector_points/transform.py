"""Compute neighbouring points with wide accesses."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("vector_points")
