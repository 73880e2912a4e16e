"""Build, verify and time candidates; decide."""
