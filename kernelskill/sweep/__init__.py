"""Batches over suites of tasks."""
