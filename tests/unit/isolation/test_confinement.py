import os
from pathlib import Path

import pytest

from kernelskill.isolation.child import Limits, private_folder, run_child
from kernelskill.isolation.confinement import Confinement, confinement_level

pytestmark = pytest.mark.skipif(confinement_level() < 1, reason="this kernel cannot confine processes")
LIMITS = Limits(wall_s=20)


@pytest.fixture
def folder():
    with private_folder() as path:
        yield path


@pytest.fixture
def secret():
    with private_folder() as path:
        (path / "test.py").write_text("SECRET = 1\n")
        (path / "test.py").chmod(0o644)
        path.chmod(0o755)
        yield path / "test.py"


@pytest.mark.parametrize("unprivileged", [True, False])
def test_only_what_is_named_can_be_read_and_changed(folder, secret, unprivileged):
    text = f"cat {secret}; ls {secret.parent}; echo x > {secret.parent}/y; mkdir d; echo z > d/z; mv d/z z; cat z"
    result = run_child(
        ["/bin/sh", "-c", text],
        limits=LIMITS,
        cwd=folder,
        unprivileged=unprivileged,
        confinement=Confinement.around(folder),
    )
    assert result.stdout == "z\n"
    assert result.stderr.count("Permission denied") == 3


def test_what_is_named_can_be_read(folder, secret):
    result = run_child(
        ["/bin/cat", str(secret)], limits=LIMITS, cwd=folder, confinement=Confinement.around(folder, secret)
    )
    assert result.stdout == "SECRET = 1\n"


def test_a_missing_path_does_no_harm(folder):
    confinement = Confinement.around(folder, Path("/no/such/place"))
    assert run_child(["/bin/true"], limits=LIMITS, cwd=folder, confinement=confinement).returncode == 0


@pytest.mark.skipif(confinement_level() < 6, reason="this kernel does not confine signals")
def test_no_process_outside_can_be_signalled(folder):
    text = f"kill -0 {os.getpid()} || echo refused"
    result = run_child(
        ["/bin/sh", "-c", text], limits=LIMITS, cwd=folder, confinement=Confinement.around(folder)
    )
    assert result.stdout == "refused\n"
