"""What a build is made of: constructs that a task may forbid, found in source, host object and device code."""

from kernelskill.backends.composition.find import find_constructs

__all__ = ["find_constructs"]
