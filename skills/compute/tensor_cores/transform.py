"""Multiply on tensor cores."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("use_tensor_cores")
