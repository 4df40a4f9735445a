"""Programs for HoVer, whose claims take facts from two to four Wikipedia pages (Jiang et al., Findings of EMNLP 2020)."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
