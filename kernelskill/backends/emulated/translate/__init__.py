"""PTX syntax trees to C++ for the emulated device's runtime; one module a family of instructions."""
