"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.documents.blocks import Document as Document
from nlp_retrieval.documents.blocks import Piece as Piece
from nlp_retrieval.documents.blocks import Reference as Reference
from nlp_retrieval.documents.blocks import TextBlock as TextBlock
from nlp_retrieval.documents.blocks import clean_text as clean_text
from nlp_retrieval.documents.blocks import clean_title as clean_title
from nlp_retrieval.documents.blocks import suspicious as suspicious
from nlp_retrieval.documents.blocks import web_address as web_address
from nlp_retrieval.documents.loader import MANIFESTS as MANIFESTS
from nlp_retrieval.documents.loader import Described as Described
from nlp_retrieval.documents.loader import files_in as files_in
from nlp_retrieval.documents.loader import read_manifest as read_manifest
from nlp_retrieval.documents.markdown import read_markdown as read_markdown
from nlp_retrieval.documents.reading import LARGEST_TEXT as LARGEST_TEXT
from nlp_retrieval.documents.reading import bibliography_of as bibliography_of
from nlp_retrieval.documents.reading import decode_text as decode_text
from nlp_retrieval.documents.reading import read_document as read_document
from nlp_retrieval.documents.reading import read_file as read_file
