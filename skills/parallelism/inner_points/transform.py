"""Compute inner points without border tests."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("inner_points")
