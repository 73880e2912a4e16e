"""Members of records: their types where the file tells them."""

from __future__ import annotations

import pytest

from kernelskill.source.members import member_type
from kernelskill.source.unit import SourceUnit

TEXT = """
struct Body { float m, w; double wide; float at[3]; const float *p; Body *next; void pull(float q); };
typedef struct { unsigned int age; } Seen, *Pointer;
class Cell { public: int n; };
namespace a { struct Twice { float v; }; }
namespace b { struct Twice { double v; }; }
struct Later;
template <typename T, int V> struct alignas(16) Pack { T at[V]; T first; int used[2][V]; };
template <int N, class A, class B = float> struct Mixed { A a; B b; };
"""


@pytest.mark.parametrize(
    ("record", "member", "kind"),
    [
        ("Body", "w", "float"),
        ("Body", "wide", "double"),
        ("Seen", "age", "unsigned int"),
        ("Cell", "n", "int"),
        ("Body", "at", "float*"),
        ("Pack<float, 16>", "at", "float*"),
        ("Pack<float, 16>", "first", "float"),
        ("Pack<float, 16>", "used", "int**"),
        ("Pack<Pair<int, float>, 16>", "first", "Pair<int, float>"),
        ("Pack", "first", ""),
        ("Mixed<(1 << 2), unsigned char, double>", "a", "unsigned char"),
        ("Mixed<4, unsigned char, double>", "b", "double"),
        ("Mixed<4, unsigned char>", "b", ""),
        *[("Body", name, "") for name in ("p", "next", "pull", "missing")],
        ("Pointer", "age", ""),
        ("Twice", "v", ""),
        ("Later", "v", ""),
        ("", "", ""),
    ],
)
def test_member_types(record: str, member: str, kind: str) -> None:
    assert member_type(SourceUnit.parse(TEXT), record, member) == kind
