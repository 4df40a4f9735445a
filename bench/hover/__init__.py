"""HoVer, system by system: sweeps, the script that runs them and writes ``bench/HOVER.md``, and one that optimises."""
