"""Lower an algorithm under a schedule to CUDA text."""
