"""Fetch the next tile while the present one is used."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("overlap_copies")
