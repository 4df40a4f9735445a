"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.judging.agreement import measure_agreement as measure_agreement
from nlp_retrieval.judging.model_judge import ModelJudge as ModelJudge
from nlp_retrieval.judging.pool import JudgingPool as JudgingPool
from nlp_retrieval.judging.project import JudgingProject as JudgingProject
from nlp_retrieval.judging.query_log import sample_log as sample_log
from nlp_retrieval.judging.records import ModelGrade as ModelGrade
from nlp_retrieval.judging.report import JudgingReport as JudgingReport
from nlp_retrieval.judging.report import report_of as report_of
from nlp_retrieval.judging.sequences import DifferenceVerdict as DifferenceVerdict
from nlp_retrieval.judging.sequences import decide as decide
