"""The user's folders, where they can and cannot be made."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelskill.errors import HarnessError
from kernelskill.resources import cache_dir, data_dir


@pytest.mark.parametrize(("folder", "variable"), [(cache_dir, "XDG_CACHE_HOME"), (data_dir, "XDG_DATA_HOME")])
def test_a_folder_that_cannot_be_made_is_named_with_a_remedy(
    home: Path, folder: Callable[[], Path], variable: str
) -> None:
    assert folder().is_dir()
    (home / "file").write_text("")
    os.environ[variable] = str(home / "file")
    with pytest.raises(HarnessError) as refused:
        folder()
    assert str(home / "file" / "kernelskill") in refused.value.message
    assert refused.value.remedy == f"set {variable} to a folder that you can write"
