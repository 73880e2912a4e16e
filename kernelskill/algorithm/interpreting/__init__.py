"""The parts of the interpreter: values, functions, lanes, reductions and memory."""
