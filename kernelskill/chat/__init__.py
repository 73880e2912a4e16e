"""The workbench: input, output and commands over a session. It decides nothing by itself."""
