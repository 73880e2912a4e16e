"""Note the case of every step in a word, and count cases a word at a time."""

from kernelskill.skills.schedule_moves import move_skill

sites, rewrite = move_skill("tally_cases")
