"""Keep rows in registers between the loops that read them."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("keep_rows")
