"""Numbers of names are left out only where the plain name is free."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.lowering.tidying import tidied


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            "for (int j = 0; j < n; ++j) { a(j); } for (int j_2 = 0; j_2 < n; ++j_2) a(j_2);",
            "for (int j = 0; j < n; ++j) { a(j); } for (int j = 0; j < n; ++j) a(j);",
        ),
        ("{ int t = 1; a(t); } { int t_2 = 2; a(t_2); }", "{ int t = 1; a(t); } { int t = 2; a(t); }"),
        ("int t = 1; { int t_2 = t; a(t_2); }", None),
        ("int t = 1; { int t_2 = 2; a(t_2); } a(t);", None),
        ("{ int t_2 = 2; { int t = 3; a(t, t_2); } }", None),
        ("{ int t_2 = 2; a(t_2); } int t = 1; a(t);", None),
        ("int n_2 = n; a(n_2);", None),
        (
            "for (int i = 0; i < n; ++i) for (int i_2 = 0; i_2 < i; ++i_2) a(i_2);",
            None,
        ),
        (
            "for (int i = 0; i < n; ++i) a(i); int i_2 = 0; a(i_2);",
            None,
        ),
        ("{ int s_2 = 1; a(p.s, s_2); }", "{ int s = 1; a(p.s, s); }"),
        ("{ int t_2 = 1; /* t */ a(t_2); } // t_2", "{ int t = 1; /* t */ a(t); } // t_2"),
        ("{ int taken_2 = 1; a(taken_2); }", None),
        ("a(own_2);", None),
        (
            "{ int t_2 = 0; a(t_2); } { int t_3 = 0; { int t_2 = 1; a(t_2, t_3); } }",
            "{ int t = 0; a(t); } { int t_3 = 0; { int t = 1; a(t, t_3); } }",
        ),
    ],
)
def test_names_are_shortened_where_nothing_else_is_meant(body: str, wanted: str | None) -> None:
    kernel = "__global__ void k(int n) { %s }\n"
    found = tidied(kernel % body, {"taken", "own_2"})
    assert found == kernel % (wanted if wanted is not None else body)
