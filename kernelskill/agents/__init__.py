"""Coordinator, profiler, specialists and verifier."""
