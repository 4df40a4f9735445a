"""HippoRAG 2, its ablations and its fusions on MuSiQue: the script that measures them and writes ``bench/HIPPORAG.md``."""
