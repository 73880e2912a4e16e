"""Compute two bytes in the halves of one word."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("pack_integers")
