"""Documents: a file or page in any format, read once, to blocks and text; and folders and manifests of them."""

from nlp_retrieval._public_names import public_names

__getattr__, __dir__ = public_names(__name__, globals())
