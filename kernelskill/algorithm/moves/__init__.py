"""Legal moves on the schedule of an algorithm."""
