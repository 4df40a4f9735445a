"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.cli.console import Trust as Trust
from nlp_retrieval.cli.console import built as built
from nlp_retrieval.cli.console import say as say
from nlp_retrieval.cli.demo import yaml_value as yaml_value
from nlp_retrieval.cli.indexes import Corpus as Corpus
from nlp_retrieval.cli.indexes import Loader as Loader
from nlp_retrieval.cli.indexes import LoaderOptions as LoaderOptions
from nlp_retrieval.cli.indexes import corpus_loader as corpus_loader
from nlp_retrieval.cli.search import parse_filter as parse_filter
from nlp_retrieval.cli.search import plain_answer as plain_answer
from nlp_retrieval.cli.search import print_answer as print_answer
from nlp_retrieval.cli.search import print_hits as print_hits
from nlp_retrieval.cli.search import print_json_line as print_json_line
