"""Lift CUDA to an Algorithm, schedule it and emit CUDA again."""
