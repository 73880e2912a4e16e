"""Let rows of threads share the loops of each column."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("share_columns")
