"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.encoders.backends import require_device as require_device
from nlp_retrieval.encoders.base import BaseEncoder as BaseEncoder
from nlp_retrieval.encoders.base import BaseSparseEncoder as BaseSparseEncoder
from nlp_retrieval.encoders.base import BaseTokenEncoder as BaseTokenEncoder
from nlp_retrieval.encoders.base import TermWeights as TermWeights
from nlp_retrieval.encoders.base import Vectors as Vectors
from nlp_retrieval.encoders.colbert import ColbertEncoder as ColbertEncoder
from nlp_retrieval.encoders.endpoint import HttpEncoder as HttpEncoder
from nlp_retrieval.encoders.endpoint import OpenAIEncoder as OpenAIEncoder
from nlp_retrieval.encoders.models import ModelFolder as ModelFolder
from nlp_retrieval.encoders.models import ModelHolder as ModelHolder
from nlp_retrieval.encoders.models import find_model as find_model
from nlp_retrieval.encoders.models import require_dense_extra as require_dense_extra
from nlp_retrieval.encoders.passages import write_passages as write_passages
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder as SentenceTransformerEncoder
from nlp_retrieval.encoders.sentence_transformer import as_encoder as as_encoder
from nlp_retrieval.encoders.splade import SpladeEncoder as SpladeEncoder
from nlp_retrieval.encoders.static import StaticEncoder as StaticEncoder
from nlp_retrieval.encoders.word_vectors import WordVectorEncoder as WordVectorEncoder
from nlp_retrieval.encoders.word_vectors import train_word_vectors as train_word_vectors
