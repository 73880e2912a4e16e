from pathlib import Path

import pytest

from kernelskill.config import RunConfig, load_config, parse_duration
from kernelskill.errors import ConfigError, UnknownNameError
from kernelskill.registry import unknown_name


def load(
    folder: Path, overrides: dict[str, object] | None = None, env: dict[str, str] | None = None
) -> RunConfig:
    return load_config(overrides or {}, folder=folder, environment=env or {})


def test_later_sources_win(tmp_path: Path) -> None:
    (tmp_path / "kernelskill.toml").write_text('[run]\nrounds = 3\npatience = 4\nbudget = "40s"\n')
    folder = tmp_path / "deeper"
    folder.mkdir()
    config = load(folder, {"rounds": 5, "device": None}, {"KERNELSKILL_PATIENCE": "6"})
    assert (config.rounds, config.patience, config.budget_s, config.device) == (5, 6, 40.0, "auto")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[run]\nroundz = 3", "roundz"),
        ("[run]\nrounds = -1", "rounds"),
        ("rounds = 3", "rounds"),
        ("[run\n", "kernelskill.toml"),
        ('[run]\nbudget = "soon"', "soon"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, names: str) -> None:
    (tmp_path / "kernelskill.toml").write_text(text)
    with pytest.raises(ConfigError, match=names) as error:
        load(tmp_path)
    assert error.value.exit_code == 2
    assert error.value.remedy


@pytest.mark.parametrize(
    ("text", "seconds"), [("40s", 40), ("2m", 120), ("1.5h", 5400), ("300ms", 0.3), ("7", 7)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0s", "-3s", "40 parsecs", "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="duration"):
        parse_duration(text)


def test_unknown_names_come_with_near_ones() -> None:
    error = unknown_name("skill", "unrol", ["unroll", "block_shape"])
    assert isinstance(error, UnknownNameError)
    assert "unroll" in error.remedy
