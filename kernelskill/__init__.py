"""kernelskill takes a CUDA kernel that is right but slow and returns one that is right and fast."""

__version__ = "0.1.0"
