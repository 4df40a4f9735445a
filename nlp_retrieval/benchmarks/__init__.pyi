"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.benchmarks.cost import Cost as Cost
from nlp_retrieval.benchmarks.cost import LanguageModelCost as LanguageModelCost
from nlp_retrieval.benchmarks.cost import ModelPrice as ModelPrice
from nlp_retrieval.benchmarks.cost import Prices as Prices
from nlp_retrieval.benchmarks.results import FailedConfiguration as FailedConfiguration
from nlp_retrieval.benchmarks.runs import SavedRun as SavedRun
from nlp_retrieval.benchmarks.runs import read_sources as read_sources
from nlp_retrieval.benchmarks.settings import BenchmarkConfig as BenchmarkConfig
from nlp_retrieval.benchmarks.settings import MlflowSettings as MlflowSettings
from nlp_retrieval.benchmarks.settings import read_benchmark_config as read_benchmark_config
