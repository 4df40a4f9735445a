"""Programs for HoVer, whose claims take facts from two to four Wikipedia pages (Jiang et al., Findings of EMNLP 2020)."""
