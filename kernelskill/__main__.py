"""`python -m kernelskill` is the same as `kernelskill`."""

from kernelskill.cli.main import main

if __name__ == "__main__":
    main()
