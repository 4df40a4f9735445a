"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.rerankers.multi_signal.features import PatternMatch as PatternMatch
from nlp_retrieval.rerankers.multi_signal.profile import Profile as Profile
from nlp_retrieval.rerankers.multi_signal.profile import ProfileQuestion as ProfileQuestion
from nlp_retrieval.rerankers.multi_signal.profile import SignalWeights as SignalWeights
from nlp_retrieval.rerankers.multi_signal.profile import load_profile as load_profile
from nlp_retrieval.rerankers.multi_signal.tuning import SignalTuningReport as SignalTuningReport
from nlp_retrieval.rerankers.pair_models import PairModel as PairModel
from nlp_retrieval.rerankers.pair_models import PairPrecision as PairPrecision
from nlp_retrieval.rerankers.pair_models import TorchPairs as TorchPairs
from nlp_retrieval.rerankers.pair_models import find_pair_model as find_pair_model
from nlp_retrieval.rerankers.pair_models import onnx_pairs as onnx_pairs
from nlp_retrieval.rerankers.pair_models import require_precision as require_precision
