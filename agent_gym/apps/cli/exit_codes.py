"""What the exit code of a command says; see the table in ``docs/cli.md``."""

EXIT_OK, EXIT_USAGE, EXIT_DATA, EXIT_RUN = 0, 2, 3, 4
EXIT_STOPPED = 130  # what a shell gives a program that Ctrl-C has ended
