"""Child processes with limits, locks and the build cache."""
