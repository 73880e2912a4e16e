#pragma once

// Matrices are stored row by row.
#define AT(row, col, cols) ((size_t)(row) * (cols) + (col))
