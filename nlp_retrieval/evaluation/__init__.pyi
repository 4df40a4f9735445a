"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.evaluation.abstention import risk_coverage as risk_coverage
from nlp_retrieval.evaluation.answers import AnswerEvaluator as AnswerEvaluator
from nlp_retrieval.evaluation.answers import GoldAnswer as GoldAnswer
from nlp_retrieval.evaluation.answers import gold_answers as gold_answers
from nlp_retrieval.evaluation.answers import ragas_lines as ragas_lines
from nlp_retrieval.evaluation.comparison import Comparison as Comparison
from nlp_retrieval.evaluation.comparison import compare as compare
from nlp_retrieval.evaluation.comparison import verdict as verdict
from nlp_retrieval.evaluation.evaluator import Evaluation as Evaluation
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator as RetrievalEvaluator
