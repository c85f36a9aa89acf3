"""The program ``quercus``, also as ``python -m quercus``.

Loading the command line takes 0.15 s. Ctrl-C ends it then as it ends a command.
"""

def main() -> None:
    """Load the command line, and run it."""
    try:
        from quercus.cli.main import main as run  # noqa: PLC0415  (here Ctrl-C is handled)

        run()
    except KeyboardInterrupt:  # before, between or after what `run` handles
        from quercus.cli.failures import end_interrupted  # noqa: PLC0415

        end_interrupted()


if __name__ == "__main__":
    main()
