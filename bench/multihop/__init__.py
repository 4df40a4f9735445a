"""Multi-hop retrieval by the link graph: a sweep, and the script that runs it and writes ``bench/MULTIHOP.md``."""
