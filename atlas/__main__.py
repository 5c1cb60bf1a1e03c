"""`python -m atlas`."""

from atlas.cli import main

if __name__ == "__main__":
    main()
