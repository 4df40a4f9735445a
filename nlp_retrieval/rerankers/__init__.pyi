"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker as CrossEncoderReranker
from nlp_retrieval.rerankers.endpoint import HttpReranker as HttpReranker
from nlp_retrieval.rerankers.late_interaction import LateInteractionReranker as LateInteractionReranker
from nlp_retrieval.rerankers.listwise import ListwiseReranker as ListwiseReranker
from nlp_retrieval.rerankers.multi_signal.features import PatternMatch as PatternMatch
from nlp_retrieval.rerankers.multi_signal.profile import Profile as Profile
from nlp_retrieval.rerankers.multi_signal.profile import ProfileQuestion as ProfileQuestion
from nlp_retrieval.rerankers.multi_signal.profile import SignalWeights as SignalWeights
from nlp_retrieval.rerankers.multi_signal.profile import load_profile as load_profile
from nlp_retrieval.rerankers.multi_signal.reranker import MultiSignalReranker as MultiSignalReranker
from nlp_retrieval.rerankers.multi_signal.tuning import SignalTuningReport as SignalTuningReport
from nlp_retrieval.rerankers.multi_signal.tuning import tune_signals as tune_signals
from nlp_retrieval.rerankers.overlap import OverlapReranker as OverlapReranker
from nlp_retrieval.rerankers.pair_models import PairModel as PairModel
from nlp_retrieval.rerankers.pair_models import TorchPairs as TorchPairs
from nlp_retrieval.rerankers.pair_models import find_pair_model as find_pair_model
from nlp_retrieval.rerankers.pair_models import onnx_pairs as onnx_pairs
