"""`atlas`, and `python -m atlas`."""

from typing import NoReturn


def main() -> NoReturn:
    """The entry point: Ctrl-C ends it in silence from the first import on."""
    import sys

    try:
        from atlas.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
