"""Devices: build, record, run, time, trace."""
