"""Profiles, rooflines and diagnoses."""
