"""Frontier and budget strategies."""
