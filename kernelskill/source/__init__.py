"""CUDA source: parse, find, edit by exact ranges."""
