"""The program: `kernelskill`, or `python -m kernelskill`."""

import sys


def main() -> None:
    """Run the command line and exit with its code; Ctrl-C while it is loaded ends it as quietly as later."""
    try:
        from kernelskill.cli.main import main as program  # noqa: PLC0415 - within the reach of `except`

        program()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
