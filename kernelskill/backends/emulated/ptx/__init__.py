"""PTX as the compiler writes it: tokens, syntax tree, parser."""
