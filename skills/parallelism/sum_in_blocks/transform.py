"""Accumulate in registers, lanes and blocks before the atomic."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("sum_in_blocks")
