import numpy as np

CASES = [
    dict(width=1, height=1, generations=1),
    dict(width=33, height=7, generations=3),
    dict(width=50, height=61, generations=4),
    dict(width=16384, height=16384, generations=1, time=True),
]
SCRATCH = {"other": lambda width, height: width * height}


def make_inputs(rng, width, height, generations):
    return {
        "start": rng.integers(0, 2, (height, width), np.uint8),
        "width": width,
        "height": height,
        "generations": generations,
    }


def next_board(board):
    rows = board.copy()
    rows += np.roll(board, 1, axis=0)
    rows += np.roll(board, -1, axis=0)
    total = rows + np.roll(rows, 1, axis=1)
    total += np.roll(rows, -1, axis=1)
    # The sum holds the cell itself: 3 with it or without, or 4 with it.
    after = total == 3
    total *= board
    after |= total == 4
    return after.view(np.uint8)


def reference(start, generations):
    board = start
    for _ in range(generations):
        board = next_board(board)
    return {"cells": board}


def cost(width, height, generations):
    """The timed case has one generation, which reads and writes the board once."""
    return dict(bytes=2 * width * height * generations)
