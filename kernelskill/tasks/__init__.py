"""The task contract: test.py, cases and data."""
