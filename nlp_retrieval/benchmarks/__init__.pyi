"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.benchmarks.benchmarker import Benchmarker as Benchmarker
from nlp_retrieval.benchmarks.benchmarker import compare_systems as compare_systems
from nlp_retrieval.benchmarks.comparing import best_by_folds as best_by_folds
from nlp_retrieval.benchmarks.comparing import compare_runs as compare_runs
from nlp_retrieval.benchmarks.entrants import TrecRun as TrecRun
from nlp_retrieval.benchmarks.results import BenchmarkReport as BenchmarkReport
from nlp_retrieval.benchmarks.results import BenchmarkRun as BenchmarkRun
from nlp_retrieval.benchmarks.runs import read_run_folder as read_run_folder
from nlp_retrieval.benchmarks.runs import read_sources as read_sources
from nlp_retrieval.benchmarks.settings import BenchmarkConfig as BenchmarkConfig
from nlp_retrieval.benchmarks.settings import MlflowSettings as MlflowSettings
from nlp_retrieval.benchmarks.settings import WandbSettings as WandbSettings
from nlp_retrieval.benchmarks.settings import read_benchmark_config as read_benchmark_config
