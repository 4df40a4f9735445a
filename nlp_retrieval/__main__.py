"""``python -m nlp_retrieval``: the command line."""

from nlp_retrieval.cli.app import main

if __name__ == "__main__":
    main()
