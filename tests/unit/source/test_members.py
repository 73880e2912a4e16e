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
"""


@pytest.mark.parametrize(
    ("record", "member", "kind"),
    [
        ("Body", "w", "float"),
        ("Body", "wide", "double"),
        ("Seen", "age", "unsigned int"),
        ("Cell", "n", "int"),
        *[("Body", name, "") for name in ("at", "p", "next", "pull", "missing")],
        ("Pointer", "age", ""),
        ("Twice", "v", ""),
        ("Later", "v", ""),
        ("", "", ""),
    ],
)
def test_member_types(record: str, member: str, kind: str) -> None:
    assert member_type(SourceUnit.parse(TEXT), record, member) == kind
