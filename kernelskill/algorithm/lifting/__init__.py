"""Read a launch of a kernel as an algorithm, by symbolic execution of one thread."""

from kernelskill.algorithm.lifting.lift import Lifted, lift, lift_kernel

__all__ = ["Lifted", "lift", "lift_kernel"]
