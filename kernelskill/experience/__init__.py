"""The pool of outcomes."""
