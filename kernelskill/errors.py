"""The exceptions of kernelskill and the exit code each one ends the program with.

A kernel that fails is data (`schema.evaluation.Status`); only a wrong use, a missing tool or a
failing harness is an exception.

    KernelSkillError              1
      UsageError                  2   the command, the files or the configuration are wrong
        ConfigError               2
        TaskError                 2   the kernel or its test.py cannot be used
        SkillError                2   a skill folder is malformed
        UnknownNameError          2   no skill, device, suite or run of that name
      ToolchainError              3   something needed is not installed or not permitted
        CompilerMissing           3
        DeviceUnavailable         3
        ProfilerUnavailable       3
        ModelUnavailable          3
      JobsWaiting                 4   work was handed to other machines and is not answered yet
      AnswersWaiting              5   only a model's answers are missing
      HarnessError                6   our own machinery failed
        WorkerDied                6
        ArtifactCorrupt           6
      RunInterrupted              130
"""

from __future__ import annotations


class KernelSkillError(Exception):
    """Base of every error that kernelskill raises on purpose.

    Args:
        message: One sentence stating the fact, with the offending value.
        remedy: What the user can do next; shown on a line of its own.
    """

    exit_code = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(KernelSkillError):
    """The command line, a file or a setting is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """`kernelskill.toml` or an option holds a value that cannot be used."""


class TaskError(UsageError):
    """The kernel or its `test.py` cannot be used as a task."""


class SkillError(UsageError):
    """A skill folder is malformed."""


class UnknownNameError(UsageError):
    """A name given by the user matches nothing."""


class ToolchainError(KernelSkillError):
    """A tool or device that is needed is missing or may not be used."""

    exit_code = 3


class CompilerMissing(ToolchainError):
    """No usable `nvcc` or host compiler was found."""


class DeviceUnavailable(ToolchainError):
    """The requested device cannot be used on this machine."""


class ProfilerUnavailable(ToolchainError):
    """Nsight Compute is missing or may not read the counters."""


class ModelUnavailable(ToolchainError):
    """The model cannot be asked at all: a wrong key, a wrong name, or nobody answers."""


class JobsWaiting(KernelSkillError):
    """Jobs wait in a spool folder; a later resume takes up their answers."""

    exit_code = 4


class AnswersWaiting(KernelSkillError):
    """A model was asked and has not answered yet; a later resume takes up its answers."""

    exit_code = 5


class HarnessError(KernelSkillError):
    """Our own machinery failed; never the fault of a candidate."""

    exit_code = 6


class WorkerDied(HarnessError):
    """A trusted worker process ended without an answer."""


class ArtifactCorrupt(HarnessError):
    """A file that kernelskill wrote or collected cannot be read back."""


class RunInterrupted(KernelSkillError):
    """The user interrupted the run; everything finished is kept."""

    exit_code = 130
