"""Let neighbouring threads share the loops of each point."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("share_rows")
